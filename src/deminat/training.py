"""One visible loop: batches in, better weights out.

The loop knows nothing of pairs or mutual information: it is given a module, an endless stream
of batches, and a function from a batch to a loss. So critics and flows share it.

With `EarlyStopping` the loss of held-out rows is watched and the weights that were best there,
the untrained ones included, are restored. A loss that is not finite restores them too and goes
on at half the rate, three times at most.
"""

import copy
import math
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import nn

from .descent import AdamW, Average, clip
from .errors import TrainingError
from .history import History, listener

__all__ = [
    "Descent",
    "EarlyStopping",
    "History",
    "Progress",
    "Training",
    "one_thread",
    "share_of",
    "train",
]

T = TypeVar("T")
Progress = Callable[[float], None]

_ALONE = threading.RLock()
_RESTARTS = 3
_REPORT_EVERY = 20
_FIFTH, _CLEAR, _WORTH = 30, 4.0, 0.02  # losses, standard errors, and share that make a fall


class Descent(Protocol):
    """A loss that knows its way down: a scalar tensor, or a gradient written by hand."""

    def item(self) -> float:
        """Return the loss."""
        ...

    def backward(self) -> None:
        """Leave the gradients in the weights."""
        ...


@dataclass(frozen=True)
class EarlyStopping:
    """When to stop, by the loss of rows that were not trained on.

    Args:
        held_out: Share of the training rows that is held out for it.
        every: Steps between two looks.
        patience: Looks without a gain after which training ends.
        hope: Looks after which it ends if the loss has not even fallen by half a gain.
        gain: What the held-out loss must fall by to count.
    """

    held_out: float = 1 / 6
    every: int = 50
    patience: int = 6
    hope: int = 6
    gain: float = 2e-4

    def is_over(self, losses: Sequence[float], stale: int) -> bool:
        """Tell whether to stop, from the loss at each look and the looks since the last gain."""
        hopeless = len(losses) > self.hope and min(losses) > losses[0] - self.gain / 2
        return hopeless or stale >= self.patience


@dataclass(frozen=True)
class Training:
    """How to train; the defaults are the paper's, with the learning rates of its code.

    The paper's mini-batch of 64 examples holds 32 joint and 32 unpaired pairs, and its 20 epochs
    over as many examples as there are pairs are 10 passes over the pairs.

    Args:
        batch: Joint pairs a step.
        negatives: Unpaired partners for each; one less than `batch` takes all others of the
            batch. `None` does so where the critic is separable, and otherwise takes 4.
        epochs: Passes over the training pairs.
        steps: Number of steps, instead of `epochs`.
        learning_rate: Of Adam, at its highest.
        halve_at: Shares of the training after which the rate is halved: 6 and 13 epochs of 20
            in the authors' code, though not in the paper's text; `()` keeps it constant.
        cosine: Warm up over 50 steps, then let the rate fall to 0 along a cosine.
        weight_decay: Decoupled, as in AdamW.
        clip: Largest norm of the gradient; `None` does not clip.
        average: Decay of a moving average of the weights, which then are the outcome.
        stopping: Early stopping; `None` trains to the end.
    """

    batch: int = 32
    negatives: int | None = 1
    epochs: int = 10
    steps: int | None = None
    learning_rate: float = 5e-4
    halve_at: tuple[float, ...] = (0.3, 0.65)
    cosine: bool = False
    weight_decay: float = 0.0
    clip: float | None = None
    average: float | None = None
    stopping: EarlyStopping | None = None

    def rate(self, step: int, steps: int) -> float:
        """Return the learning rate of a step, counted from 0."""
        rate = self.learning_rate * 0.5 ** sum(step >= share * steps for share in self.halve_at)
        if self.cosine:
            rate *= min(1, (step + 1) / 50) * 0.5 * (1 + math.cos(math.pi * step / steps))
        return rate


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
    """Train `module` in place, leave its best weights in it, and tell what happened.

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
    told = listener()
    told.begin()
    watch = _Watch(module, settings.stopping, held_loss)
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
        recent = losses[-100:] or [math.nan]
        held_out = tuple(watch.losses)
        history = History(
            len(losses),
            watch.step,
            sum(recent) / len(recent),
            held_out,
            restarts,
            falling=len(losses) == steps and _is_falling(losses),
        )
        told.end(history)
        return history
    raise TrainingError(
        f"training diverged {_RESTARTS + 1} times, at ever lower rates; "
        "look for extreme values, or lower the learning rate"
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


def share_of(progress: Progress | None, i: int, count: int) -> Progress | None:
    """Return the progress of the i-th of `count` like parts of a work."""
    return None if progress is None else lambda share: progress((i + share) / count)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: for small networks faster than several, and repeatable.

    Threads of a process share that number, and seeds: those that call this wait for each other.
    """
    with _ALONE:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


class _NotFiniteError(Exception):
    """The loss was NaN or infinite."""


class _Watch:
    """Keeps the weights that did best on held-out rows, or the last ones without any."""

    def __init__(
        self,
        module: nn.Module,
        stopping: EarlyStopping | None,
        held_loss: Callable[[nn.Module], float] | None,
    ):
        self.stopping = stopping if held_loss else None
        self.held_loss = held_loss
        self.told = listener()
        self.losses: list[float] = []
        self.best_loss, self.stale = math.inf, 0
        self.keep(module, step=0)
        self.look(module, step=0)

    def keep(self, module: nn.Module, step: int) -> None:
        self.best, self.step = copy.deepcopy(module.state_dict()), step

    def is_due(self, step: int, steps: int) -> bool:
        """Tell whether it is time for a look."""
        return self.stopping is not None and (step % self.stopping.every == 0 or step == steps)

    def look(self, module: nn.Module, step: int) -> bool:
        """Judge the weights of `module`; return whether to stop."""
        if self.stopping is None or self.held_loss is None:
            return False
        module.eval()
        self.losses.append(self.held_loss(module))
        self.told.look(step, self.losses[-1])
        module.train()
        if self.losses[-1] < self.best_loss - self.stopping.gain:
            self.best_loss, self.stale = self.losses[-1], 0
            self.keep(module, step)
        else:
            self.stale += 1
        return self.stopping.is_over(self.losses, self.stale)


def _descend(
    module: nn.Module,
    loss: Callable[[T], Descent],
    batches: Iterator[T],
    steps: int,
    settings: Training,
    slower: float,
    watch: _Watch,
    deadline: float | None,
    progress: Progress | None,
) -> list[float]:
    """Take the steps and return the loss of each; the weights to keep are left in `watch`."""
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
        watch.told.step(step, losses[-1])
        value.backward()
        if settings.clip is not None:
            clip(optimizer.grads(), settings.clip)
        optimizer.step(slower * settings.rate(step - 1, steps))
        if average is not None and settings.average is not None:
            average.move(min(settings.average, (step + 1) / (step + 10)))
        if progress is not None and step % _REPORT_EVERY == 0:
            progress(step / steps)
        late = deadline is not None and time.monotonic() > deadline
        if ((late or watch.is_due(step, steps)) and watch.look(averaged, step)) or late:
            break
    if watch.stopping is None:
        watch.keep(averaged, len(losses))
    return losses
