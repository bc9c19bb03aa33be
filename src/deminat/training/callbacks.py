"""What a training reports: steps and evaluations while it runs, its history at the end.

Callbacks see all trainings of a fold, but not those of the independence test. If folds are trained
by other processes, events are recorded there and replayed here when the fold is finished: callbacks
live in one process, whatever n_jobs is.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from ..errors import DataError, printable
from ..records import Diagnostics, LearningCurve, Stage

__all__ = [
    "Callback",
    "History",
    "Listener",
    "Recorder",
    "TensorBoard",
    "current_listener",
    "listen",
    "training_diagnostics",
]

_DIGITS = 6  # of a loss in a curve


@dataclass(frozen=True)
class History:
    """What happened in a training.

    Args:
        steps: Steps taken.
        best_step: The step whose weights were kept.
        loss: Mean training loss of the last hundred steps. Where DEMI uses all pairs of a batch, a
            step reports unpaired scores of its first 16 rows only; gradients are those of all.
        held_out: Loss of the held-out rows at each evaluation, the first before any step.
        restarts: How often the loss was not finite and the rate was halved.
        falling: Whether the loss was still falling when the steps were used up.
        stage: What the network saw; `None` where there are no stages.
        stages: The history of each stage, where there were several.
        recipe: What was chosen, in words.
    """

    steps: int
    best_step: int
    loss: float
    held_out: tuple[float, ...]
    restarts: int
    falling: bool = False
    stage: Stage | None = None
    stages: "tuple[History, ...]" = ()
    recipe: str = ""

    def curve(self) -> LearningCurve:
        """Return the held-out loss at each evaluation, in nats."""
        losses = tuple(round(loss, _DIGITS) for loss in self.held_out)
        return LearningCurve(self.stage, self.best_step, losses)


def training_diagnostics(histories: Sequence[History]) -> Diagnostics:
    """Return what results report of trainings."""
    curves = ((s.curve() for s in h.stages or (h,) if s.held_out) for h in histories)
    return Diagnostics(
        steps=tuple(h.steps for h in histories),
        kept_steps=tuple(h.best_step for h in histories),
        training_loss=tuple(h.loss for h in histories),
        restarts=sum(h.restarts for h in histories),
        recipe=tuple(h.recipe for h in histories),
        learning=tuple(tuple(fold) for fold in curves),
    )


class Callback(Protocol):
    """Methods that are called while an estimate trains its critics, in the order of the folds."""

    def on_begin(self, fold: int, training: int) -> None:
        """A training begins: the fold, and which of its trainings, both counted from 0."""
        ...

    def on_step(self, step: int, loss: float) -> None:
        """A step was taken; steps restart at 1 if the loss was not finite. See `History.loss`."""
        ...

    def on_evaluation(self, step: int, held_out: float) -> None:
        """The loss of the held-out rows after `step` steps."""
        ...

    def on_end(self, history: History) -> None:
        """The training is over."""
        ...


class Listener:
    """Passes the events of the trainings of a fold to callbacks.

    Args:
        fold: Counted from 0.
        callbacks: All are called.
    """

    def __init__(self, fold: int = 0, callbacks: Sequence[Callback] = ()):
        self.fold, self.callbacks, self.trainings = fold, tuple(callbacks), 0

    def begin(self) -> None:
        """Report that a training begins."""
        self.report("on_begin", self.fold, self.trainings)
        self.trainings += 1

    def report(self, event: str, *values: Any) -> None:
        """Call a method of all callbacks."""
        for callback in self.callbacks:
            getattr(callback, event)(*values)


_LISTENER: ContextVar[Listener | None] = ContextVar("_LISTENER", default=None)


def current_listener() -> Listener:
    """Return the current listener, or one without callbacks."""
    return _LISTENER.get() or Listener()


@contextmanager
def listen(fold: int, callbacks: Sequence[Callback]) -> Iterator[None]:
    """Let callbacks hear the trainings inside."""
    token = _LISTENER.set(Listener(fold, callbacks))
    try:
        yield
    finally:
        _LISTENER.reset(token)


class Recorder:
    """A callback that records events, to replay them in another process."""

    def __init__(self) -> None:
        self.events: list[tuple[str, tuple[Any, ...]]] = []

    def on_begin(self, fold: int, training: int) -> None:
        """Record the beginning of a training."""
        self.events.append(("on_begin", (fold, training)))

    def on_step(self, step: int, loss: float) -> None:
        """Record a step."""
        self.events.append(("on_step", (step, loss)))

    def on_evaluation(self, step: int, held_out: float) -> None:
        """Record an evaluation."""
        self.events.append(("on_evaluation", (step, held_out)))

    def on_end(self, history: History) -> None:
        """Record the end of a training."""
        self.events.append(("on_end", (history,)))

    def replay(self, callbacks: Sequence[Callback]) -> None:
        """Pass all recorded events to callbacks."""
        for event, values in self.events:
            Listener(callbacks=callbacks).report(event, *values)


class TensorBoard:
    """Writes the losses of trainings for TensorBoard: a run for each training of each fold.

    `deminat.estimate(x, y, callbacks=[deminat.TensorBoard("logs")])`, then
    `tensorboard --logdir logs`. Tags are `loss`, of each step; `held_out`, of the rows that decide
    when to stop; and `kept_step`, the step whose weights were kept.

    Args:
        logdir: Folder to write to; what it holds already stays.
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
