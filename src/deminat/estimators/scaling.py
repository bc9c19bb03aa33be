"""How both sides of a sample become features: maps and a baseline, fitted on training rows."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from ..critics.baselines import Baseline, Frames
from ..critics.features import Features
from ..data.sample import Sample
from ..data.schema import Schema
from ..data.transforms import Transform, Views

__all__ = ["Scales"]


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
        frames = Frames() if baseline is None else baseline.frames
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
        self.schema.check(sample)
        baseline, frames, dtype = self.baseline, self.frames, torch.float32
        seen = self.x_map(frames.of_x(sample.x)), self.y_map(frames.of_y(sample.y))
        known = (np.empty((len(sample), 0)),) * 2
        if baseline is not None:
            known = baseline.left(sample.x), baseline.right(sample.y)
            # At high information the factors nearly cancel, and then float32 is too coarse.
            precise = self.precise or not baseline.informative
            dtype = torch.float64 if precise else torch.float32
        x, y, left, right = (torch.from_numpy(a).to(dtype) for a in (*seen, *known))
        return Features(x, left), Features(y, right)

    @property
    def frames(self) -> Frames:
        """The frames of the baseline."""
        return Frames() if self.baseline is None else self.baseline.frames
