"""How both sides of a sample become tensors."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from ..critics.baselines import Baseline, Frames
from ..data.sample import Sample, Schema
from ..data.transforms import Transform

__all__ = ["Scales"]


@dataclass(frozen=True)
class Scales:
    """How both sides of a sample become tensors: maps fitted on training rows.

    Args:
        schema: Of those rows.
        x_map: Map of x.
        y_map: Map of y.
        start: A log ratio in closed form, whose two halves stand in the last columns.
    """

    schema: Schema
    x_map: Transform
    y_map: Transform
    start: Baseline | None = None

    @classmethod
    def fit(cls, scaling: type[Transform], sample: Sample, start: Baseline | None = None) -> Self:
        """Return the scales that suit the rows of a sample, seen from the frames of the start."""
        frames = Frames() if start is None else start.frames
        maps = scaling.fit(frames.of_x(sample.x)), scaling.fit(frames.of_y(sample.y))
        return cls(Schema.of(sample), *maps, start)

    @property
    def halves(self) -> int:
        """How many of the last columns a side belong to the start."""
        if self.start is None:
            return 0
        (columns,) = self.schema.shapes[0]
        return int(self.start.left(np.zeros((1, columns))).shape[1])

    def __call__(self, sample: Sample) -> tuple[Tensor, Tensor]:
        """Return x and y (n, ...) as tensors on the fitted scales."""
        self.schema.check(sample)
        if self.start is None:
            x, y = self.x_map(sample.x), self.y_map(sample.y)
        else:
            frames = self.start.frames
            x = np.hstack([self.x_map(frames.of_x(sample.x)), self.start.left(sample.x)])
            y = np.hstack([self.y_map(frames.of_y(sample.y)), self.start.right(sample.y)])
        # At high information the halves nearly cancel, and then float32 is too coarse.
        blind = self.start is not None and not self.start.informative
        dtype = torch.float64 if blind else torch.float32
        return torch.from_numpy(x).to(dtype), torch.from_numpy(y).to(dtype)
