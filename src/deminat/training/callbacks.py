"""What a training tells: steps and looks while it goes on, its history when it is over.

Whoever wants to follow an estimate passes callbacks. All trainings of a fold are heard, not those
of the test beside it. Where folds are trained by other processes, what these tell is recorded
there and passed on here when the fold is finished: callbacks live in one process, whatever n_jobs.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from ..errors import DataError, printable

__all__ = [
    "Callback",
    "History",
    "Listener",
    "Recorder",
    "TensorBoard",
    "current_listener",
    "listen",
    "told",
]


@dataclass(frozen=True)
class History:
    """What happened in a training.

    Args:
        steps: Steps taken.
        best_step: The step whose weights were kept.
        loss: Mean training loss of the last hundred steps.
        held_out: Loss of the held-out rows at each look, the first before any step.
        restarts: How often the loss was not finite and the rate was halved.
        falling: Whether the loss was still falling when the steps were used up.
        chose: What the training was of and what became of it, in words.
        stages: The same of each stage, where there were several.
    """

    steps: int
    best_step: int
    loss: float
    held_out: tuple[float, ...]
    restarts: int
    falling: bool = False
    chose: str = ""
    stages: "tuple[History, ...]" = ()


class Callback(Protocol):
    """What is called while an estimate trains its critics, in the order of the folds."""

    def on_begin(self, fold: int, training: int) -> None:
        """A training begins: the fold, and which of its trainings, both counted from 0."""
        ...

    def on_step(self, step: int, loss: float) -> None:
        """A step was taken; steps begin again at 1 if the loss was not finite."""
        ...

    def on_evaluation(self, step: int, held_out: float) -> None:
        """The held-out rows had this loss after so many steps."""
        ...

    def on_end(self, history: History) -> None:
        """The training is over."""
        ...


class Listener:
    """Passes on what the trainings of a fold tell.

    Args:
        fold: Counted from 0.
        callbacks: Who is told.
    """

    def __init__(self, fold: int = 0, callbacks: Sequence[Callback] = ()):
        self.fold, self.callbacks, self.trainings = fold, tuple(callbacks), 0

    def begin(self) -> None:
        """Say that a training begins."""
        for callback in self.callbacks:
            callback.on_begin(self.fold, self.trainings)
        self.trainings += 1

    def step(self, step: int, loss: float) -> None:
        """Say that a step was taken."""
        for callback in self.callbacks:
            callback.on_step(step, loss)

    def look(self, step: int, held_out: float) -> None:
        """Say how the held-out rows fared."""
        for callback in self.callbacks:
            callback.on_evaluation(step, held_out)

    def end(self, history: History) -> None:
        """Say that the training is over."""
        for callback in self.callbacks:
            callback.on_end(history)


_LISTENER: ContextVar[Listener | None] = ContextVar("_LISTENER", default=None)


def current_listener() -> Listener:
    """Return who is to be told; where nobody listens, one who tells nobody."""
    return _LISTENER.get() or Listener()


@contextmanager
def listen(fold: int, callbacks: Sequence[Callback]) -> Iterator[None]:
    """Let callbacks hear the trainings within."""
    token = _LISTENER.set(Listener(fold, callbacks))
    try:
        yield
    finally:
        _LISTENER.reset(token)


class Recorder:
    """A callback that remembers, to tell others later."""

    def __init__(self) -> None:
        self.events: list[tuple[str, tuple[Any, ...]]] = []

    def on_begin(self, fold: int, training: int) -> None:
        """Remember the beginning of a training."""
        self.events.append(("on_begin", (fold, training)))

    def on_step(self, step: int, loss: float) -> None:
        """Remember a step."""
        self.events.append(("on_step", (step, loss)))

    def on_evaluation(self, step: int, held_out: float) -> None:
        """Remember a look."""
        self.events.append(("on_evaluation", (step, held_out)))

    def on_end(self, history: History) -> None:
        """Remember the end of a training."""
        self.events.append(("on_end", (history,)))

    def replay(self, callbacks: Sequence[Callback]) -> None:
        """Tell callbacks all that was heard."""
        for name, arguments in self.events:
            for callback in callbacks:
                getattr(callback, name)(*arguments)


class TensorBoard:
    """Writes the losses of trainings to a folder, as `fold 1/training 1` and so on.

    Tags are `loss`, of each step; `held_out`, of the rows that decide when to stop; and
    `kept_step`, the step whose weights were kept, when a training is over.

    Args:
        logdir: Where to; what is there already stays.
    """

    def __init__(self, logdir: PathLike[str] | str):
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise DataError(
                "TensorBoard is not installed: pip install 'deminat[tensorboard]'"
            ) from error
        self.logdir = Path(logdir)
        self._open: Any = SummaryWriter
        self._writer: Any = None

    def on_begin(self, fold: int, training: int) -> None:
        """Begin a run."""
        self._close()  # of a training that failed
        folder = self.logdir / f"fold {fold + 1}" / f"training {training + 1}"
        try:
            self._writer = self._open(str(folder))
        except OSError as error:
            raise DataError(f"cannot write to {printable(folder, 300)}: {error}") from error

    def on_step(self, step: int, loss: float) -> None:
        """Write the loss of a step."""
        self._writer.add_scalar("loss", loss, step)

    def on_evaluation(self, step: int, held_out: float) -> None:
        """Write the loss of held-out rows."""
        self._writer.add_scalar("held_out", held_out, step)

    def on_end(self, history: History) -> None:
        """End the run; what was written is on disk."""
        self._writer.add_scalar("kept_step", history.best_step, history.steps)
        self._close()

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


_DIGITS = 6  # of a loss in a curve


def told(histories: Sequence[History]) -> dict[str, Any]:
    """Return what results tell of trainings."""
    return {
        "steps": [h.steps for h in histories],
        "kept_steps": [h.best_step for h in histories],
        "training_loss": [h.loss for h in histories],
        "restarts": sum(h.restarts for h in histories),
        "recipe": [h.chose for h in histories],
        "learning": [[_curve(s) for s in h.stages or (h,) if s.held_out] for h in histories],
    }


def _curve(history: History) -> dict[str, Any]:
    """Return the held-out loss of a stage, look by look, in nats."""
    losses = [round(loss, _DIGITS) for loss in history.held_out]
    return {"stage": history.chose, "kept_step": history.best_step, "held_out": losses}
