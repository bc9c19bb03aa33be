"""What a run was: which columns, how they belong together, the seed, the versions."""

import platform
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import scipy
import sklearn
import torch
from numpy.typing import NDArray

from . import __version__
from .inputs import UNNAMED, Sample

__all__ = ["described"]

_NAMES = 5  # of a side that are told


def described(sample: Sample, seed: int, known: Sample | None = None) -> dict[str, Any]:
    """Return what results tell of the data that they are of, as JSON can hold it.

    Args:
        sample: Pairs.
        seed: Of all randomness.
        known: Pairs of x with what is known already, if anything is.
    """
    groups = None if sample.labels is sample.copies else sample.labels
    return {
        "seed": seed,
        "x": _side(sample.x, sample.x_names),
        "y": _side(sample.y, sample.y_names),
        "given": None if known is None else _side(known.y, known.y_names),
        "dropped": sample.dropped,
        "groups": None if groups is None else len(np.unique(groups)),
        "gap": None if sample.times is None else sample.gap,
        "versions": versions(),
    }


@cache
def versions() -> dict[str, str]:
    """Return those of what the numbers depend on."""
    packages = {"numpy": np, "scipy": scipy, "scikit-learn": sklearn, "torch": torch}
    told = {"deminat": __version__, "python": platform.python_version()}
    return told | {name: str(package.__version__) for name, package in packages.items()}


def _side(a: NDArray[np.float64], names: Sequence[str]) -> dict[str, Any]:
    """Return the shape of a row and the first names, if its columns have names of their own."""
    unnamed = a.ndim > 2 or names[:1] == (UNNAMED,)
    return {"shape": list(a.shape[1:]), "names": [] if unnamed else list(names[:_NAMES])}
