"""Early stopping: when to stop, by the loss of held-out rows, and which weights to return."""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import nn

from .callbacks import current_listener

__all__ = ["EarlyStopping", "Watch"]


@dataclass(frozen=True)
class EarlyStopping:
    """When to stop, by the loss of rows that were not trained on.

    Args:
        held_out: Share of the training rows that is held out for it.
        every: Steps between two evaluations of the held-out loss.
        patience: Evaluations without an improvement after which training ends.
        initial_patience: The same as long as nothing was learnt.
        min_delta: How much the held-out loss must fall to count as an improvement.
        plateau: Times `min_delta`: how much it must fall so that something was learnt.
        to_beat: A loss that is known already. Training ends after the trial if it is not below it.
        trial: Evaluations of the trial.
    """

    held_out: float = 1 / 6
    every: int = 50
    patience: int = 6
    initial_patience: int = 6
    min_delta: float = 2e-4
    plateau: float = 1.0
    to_beat: float = math.inf
    trial: int = 12

    def is_over(self, losses: Sequence[float], stale: int) -> bool:
        """Tell whether to stop, from the loss at each evaluation and those since the last best."""
        learns_nothing = min(losses) >= losses[0] - self.plateau * self.min_delta
        if len(losses) > self.trial and min(losses) > self.to_beat and not learns_nothing:
            return True
        return stale >= (self.initial_patience if learns_nothing else self.patience)


class Watch:
    """Stores the weights with the lowest held-out loss, or the last ones without held-out rows."""

    def __init__(
        self,
        module: nn.Module,
        stopping: EarlyStopping | None,
        held_loss: Callable[[nn.Module], float] | None,
    ):
        self.stopping = stopping if held_loss else None
        self.held_loss = held_loss
        self.listener = current_listener()
        self.losses: list[float] = []
        self.best_loss, self.stale = math.inf, 0
        self.store(module, step=0)
        self.evaluate(module, step=0)

    def store(self, module: nn.Module, step: int) -> None:
        """Store the weights of `module` as the best ones."""
        self.best, self.step = copy.deepcopy(module.state_dict()), step

    def is_due(self, step: int, steps: int) -> bool:
        """Tell whether it is time for an evaluation."""
        return self.stopping is not None and (step % self.stopping.every == 0 or step == steps)

    def evaluate(self, module: nn.Module, step: int) -> bool:
        """Evaluate the held-out loss of `module`; return whether to stop."""
        if self.stopping is None or self.held_loss is None:
            return False
        module.eval()
        self.losses.append(self.held_loss(module))
        self.listener.report("on_evaluation", step, self.losses[-1])
        module.train()
        if self.losses[-1] < self.best_loss - self.stopping.min_delta:
            self.best_loss, self.stale = self.losses[-1], 0
            self.store(module, step)
        else:
            self.stale += 1
        return self.stopping.is_over(self.losses, self.stale)
