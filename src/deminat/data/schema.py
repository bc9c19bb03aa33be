"""What the columns of a sample are: to check new rows by, and to report."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..records import RunDescription, SideDescription
from ..runtime.environment import versions
from .sample import UNNAMED, Sample

__all__ = ["Schema", "describe_run"]

_NAMES = 5  # of a side, in messages and descriptions


@dataclass(frozen=True)
class Schema:
    """Shapes and names of the columns of a fit, to check new rows by."""

    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    names: tuple[tuple[str, ...], tuple[str, ...]]

    @classmethod
    def of(cls, sample: Sample) -> Self:
        """Return the schema of a sample."""
        return cls((sample.x.shape[1:], sample.y.shape[1:]), (sample.x_names, sample.y_names))

    def check(self, sample: Sample) -> None:
        """Refuse rows of another shape or with other columns than those of the fit."""
        other = Schema.of(sample)
        sides = zip("XY", self.shapes, other.shapes, self.names, other.names, strict=True)
        for side, shape, new_shape, names, new_names in sides:
            if new_shape != shape:
                raise DataError(
                    f"{side} has {new_shape[0]} features, but deminat is expecting {shape[0]} "
                    f"features as input: rows of shape {shape} as in the fit, not {new_shape}"
                )
            if new_names != names and UNNAMED not in (names[0], new_names[0]):
                raise DataError(
                    f"{side} has columns {', '.join(new_names[:_NAMES])}; the fit had "
                    f"{', '.join(names[:_NAMES])}: pass the same, in the same order"
                )


def describe_run(sample: Sample, seed: int, known: Sample | None = None) -> RunDescription:
    """Return the data and settings behind a result; `known` pairs x with what is given."""
    groups = None if sample.labels is sample.copies else sample.labels
    return RunDescription(
        seed=seed,
        x=_describe_side(sample.x, sample.x_names),
        y=_describe_side(sample.y, sample.y_names),
        given=None if known is None else _describe_side(known.y, known.y_names),
        dropped=sample.dropped,
        groups=None if groups is None else len(np.unique(groups)),
        gap=None if sample.times is None else sample.gap,
        versions=versions(),
    )


def _describe_side(a: NDArray[np.float64], names: Sequence[str]) -> SideDescription:
    unnamed = a.ndim > 2 or names[:1] == (UNNAMED,)
    return SideDescription(tuple(a.shape[1:]), () if unnamed else tuple(names[:_NAMES]))
