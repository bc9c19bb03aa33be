"""How both sides of a sample become features: maps and a baseline, fitted on training rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from ..critics.baselines import Baseline, Frames
from ..critics.features import Features
from ..data.sample import Sample
from ..data.schema import Schema
from ..data.transforms import Array, NoColumns, Transform, Views

__all__ = ["Scales", "remembered_features"]

_MOST = 5_000_000  # numbers of one side's features that are remembered

# By scales, rows and side: the scales and rows themselves, so that their ids stay theirs, and the
# features.
_Memory = dict[tuple[int, int, str], tuple[object, Sample, Features]]
_memory: ContextVar[_Memory | None] = ContextVar("features", default=None)


@contextmanager
def remembered_features() -> Iterator[None]:
    """Within it, features of the same rows are found once."""
    token = _memory.set({})
    try:
        yield
    finally:
        _memory.reset(token)


@dataclass(frozen=True)
class Scales:
    """Maps of both sides.

    Args:
        schema: Of the training rows.
        x_map: Map of x.
        y_map: Map of y.
        baseline: A log ratio in closed form.
        precise: Whether features are float64 in any case.
    """

    schema: Schema
    x_map: Transform
    y_map: Transform
    baseline: Baseline | None = None
    precise: bool = False

    @classmethod
    def fit(
        cls, scaling: type[Transform], sample: Sample, baseline: Baseline | None = None
    ) -> Self:
        """Return the scales that suit the rows of a sample, in the frames of the baseline."""
        frames = Frames() if baseline is None or scaling is NoColumns else baseline.frames
        x, y = frames.of_x(sample.x), frames.of_y(sample.y)
        if scaling is Views:
            maps: tuple[Transform, Transform] = (
                Views.fit(x, sample.x_discrete),
                Views.fit(y, sample.y_discrete),
            )
        else:
            maps = scaling.fit(x), scaling.fit(y)
        return cls(Schema.of(sample), *maps, baseline)

    def __call__(self, sample: Sample) -> tuple[Features, Features]:
        """Return the features of x and of y."""
        return self.of_x(sample), self.of_y(sample)

    def of_x(self, sample: Sample) -> Features:
        """Return the features of x."""
        return self._remembered("x", sample, self._of_x)

    def of_y(self, sample: Sample) -> Features:
        """Return the features of y."""
        return self._remembered("y", sample, self._of_y)

    def _of_x(self, sample: Sample) -> Features:
        known = None if self.baseline is None else self.baseline.left(sample.x)
        return self._features(self.x_map(self.frames.of_x(sample.x)), known)

    def _of_y(self, sample: Sample) -> Features:
        known = None if self.baseline is None else self.baseline.right(sample.y)
        return self._features(self.y_map(self.frames.of_y(sample.y)), known)

    def _remembered(
        self, side: str, sample: Sample, find: Callable[[Sample], Features]
    ) -> Features:
        memory, key = _memory.get(), (id(self), id(sample), side)
        if memory is not None and key in memory:
            return memory[key][2]
        self.schema.check(sample)
        found = find(sample)
        if memory is not None and found.seen.numel() + found.baseline.numel() <= _MOST:
            memory[key] = self, sample, found
        return found

    def _features(self, seen: Array, known: Array | None) -> Features:
        # At high information the factors nearly cancel, and then float32 is too coarse.
        precise = self.baseline is not None and (self.precise or not self.baseline.informative)
        dtype = torch.float64 if precise else torch.float32
        known = np.empty((len(seen), 0)) if known is None else known
        return Features(torch.from_numpy(seen).to(dtype), torch.from_numpy(known).to(dtype))

    @property
    def frames(self) -> Frames:
        """The frames of the baseline, if any columns are seen."""
        unseen = self.baseline is None or isinstance(self.x_map, NoColumns)
        return Frames() if unseen or self.baseline is None else self.baseline.frames
