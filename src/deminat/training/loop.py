"""The training loop: batches in, trained weights out.

The loop knows nothing of pairs or mutual information. It is given a module, an endless stream of
batches, and a function from a batch to a loss. So critics and flows share it.

With `EarlyStopping` the weights with the lowest held-out loss, the untrained ones included, are
restored at the end. A loss that is not finite restores them too, and training goes on at half the
rate, three times at most.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from torch import nn

from ..errors import TrainingError
from ..runtime.progress import Progress
from .callbacks import History, current_listener
from .config import Training
from .early_stopping import Watch
from .optim import AdamW, Average, clip

__all__ = ["Descent", "train"]

T = TypeVar("T")

_RESTARTS = 3
_REPORT_EVERY = 20
# A loss is still falling if its last fifth, of so many steps, is so many standard errors and such a
# share below the fifth before.
_FIFTH, _CLEAR, _WORTH = 30, 4.0, 0.02


class Descent(Protocol):
    """A loss with its gradient: a scalar tensor, or one whose gradient was written by hand."""

    def item(self) -> float:
        """Return the loss."""
        ...

    def backward(self) -> None:
        """Leave the gradients in the weights."""
        ...


def train(
    module: nn.Module,
    loss: Callable[[T], Descent],
    batches: Iterator[T],
    epoch_steps: int,
    settings: Training,
    *,
    held_loss: Callable[[nn.Module], float] | None = None,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> History:
    """Train `module` in place, leave its best weights in it, and return the history.

    Args:
        module: What to train.
        loss: Loss of a batch under the current weights.
        batches: Endless stream of batches.
        epoch_steps: Steps that make an epoch.
        settings: How to train.
        held_loss: Loss of the held-out rows under a module; needed for early stopping.
        deadline: When to stop at the latest, on the monotonic clock.
        progress: Called with the share of the steps that is done.
    """
    listener = current_listener()
    listener.begin()
    watch = Watch(module, settings.stopping, held_loss)
    steps = settings.steps or settings.epochs * epoch_steps
    for restarts in range(_RESTARTS + 1):
        try:
            losses = _descend(
                module, loss, batches, steps, settings, 0.5**restarts, watch, deadline, progress
            )
        except _NotFiniteError:
            module.load_state_dict(watch.best)
            continue
        module.load_state_dict(watch.best)
        module.eval()
        history = _history(losses, watch, restarts, falling=len(losses) == steps)
        listener.report("on_end", history)
        return history
    raise TrainingError(
        f"training diverged {_RESTARTS + 1} times, at ever lower rates; "
        "look for extreme values, or lower the learning rate"
    )


def _history(losses: Sequence[float], watch: Watch, restarts: int, falling: bool) -> History:
    """Return what happened; `falling` if it matters that the loss still falls."""
    recent = losses[-100:] or [math.nan]
    return History(
        len(losses),
        watch.step,
        sum(recent) / len(recent),
        tuple(watch.losses),
        restarts,
        falling=falling and _is_falling(losses),
    )


def _is_falling(losses: Sequence[float]) -> bool:
    """Tell whether the last fifth of the losses is clearly below the fifth before."""
    size = len(losses) // 5
    if size < _FIFTH:
        return False
    before, last = losses[-2 * size : -size], losses[-size:]
    drop = statistics.fmean(before) - statistics.fmean(last)
    noise = math.sqrt((statistics.variance(before) + statistics.variance(last)) / size)
    return drop > max(_CLEAR * noise, _WORTH * abs(statistics.fmean(last)))


class _NotFiniteError(Exception):
    """The loss was NaN or infinite."""


def _descend(
    module: nn.Module,
    loss: Callable[[T], Descent],
    batches: Iterator[T],
    steps: int,
    settings: Training,
    slower: float,
    watch: Watch,
    deadline: float | None,
    progress: Progress | None,
) -> list[float]:
    """Take the steps and return the loss of each; the best weights are left in `watch`."""
    optimizer = AdamW(module, settings.weight_decay)
    average = None if settings.average is None else Average(module)
    averaged = module if average is None else average.module
    losses: list[float] = []
    module.train()
    for step, batch in zip(range(1, steps + 1), batches, strict=False):
        optimizer.zero_grad()
        value = loss(batch)
        losses.append(value.item())
        if not math.isfinite(losses[-1]):
            raise _NotFiniteError
        watch.listener.report("on_step", step, losses[-1])
        value.backward()
        if settings.clip is not None:
            clip(optimizer.weights, settings.clip)
        optimizer.step(slower * settings.rate(step - 1, steps))
        if average is not None and settings.average is not None:
            average.move(min(settings.average, (step + 1) / (step + 10)))
        if progress is not None and step % _REPORT_EVERY == 0:
            progress(step / steps)
        late = deadline is not None and time.monotonic() > deadline
        if ((late or watch.is_due(step, steps)) and watch.evaluate(averaged, step)) or late:
            break
    if watch.stopping is None:
        watch.store(averaged, len(losses))
    return losses
