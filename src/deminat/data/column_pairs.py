"""Which columns of a table may be paired, and which pairs there are."""

import warnings
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import narwhals as nw
import numpy as np

from ..errors import DataError
from .arrays import as_rows
from .files.columns import format_names
from .labels import Discrete

__all__ = ["check_names", "listed_labels", "pairs_of", "usable_columns", "usable_or_warned"]


def check_names(frame: nw.DataFrame[Any], names: Sequence[str]) -> None:
    """Refuse names of no column."""
    known = set(frame.columns)
    for name in names:
        if name not in known:
            raise DataError(f"no column {name!r}; there are {', '.join(frame.columns[:20])}")


def listed_labels(discrete: Discrete) -> Sequence[str]:
    """Return the columns that are named as labels."""
    return () if discrete is None or isinstance(discrete, bool | np.bool_) else discrete


def usable_columns(frame: nw.DataFrame[Any]) -> list[str]:
    """Return the columns that are numbers or categories."""
    return [name for name in frame.columns if _is_usable(frame[name])]


def usable_or_warned(frame: nw.DataFrame[Any]) -> list[str]:
    """Return the columns that are numbers or categories; warn of the others."""
    usable = usable_columns(frame)
    others = [name for name in frame.columns if name not in set(usable)]
    if others:
        warnings.warn(
            f"left out: {format_names(others)} (neither numbers nor labels)",
            stacklevel=3,
        )
    return usable


def _is_usable(column: nw.Series[Any]) -> bool:
    """Tell whether `estimate` accepts a column; only of objects and text all must be read."""
    all_matter = column.dtype in (nw.Object, nw.String)
    try:
        as_rows((column if all_matter else column.head(1)).to_native(), "")
    except DataError:
        return False
    return True


def pairs_of(x: Sequence[str], y: Sequence[str] | None) -> list[tuple[str, str]]:
    """Return the pairs of different columns, each once: two on both sides, the later x first."""
    place = {name: i for i, name in enumerate(dict.fromkeys(x))}
    if y is None:
        pairs = list(combinations(place, 2))
    else:
        both = place.keys() & set(y)
        pairs = [
            (b, a) if a in both and b in both else (a, b)
            for a, b in product(place, dict.fromkeys(y))
            if a not in both or b not in both or place[a] < place[b]
        ]
    if not pairs:
        raise DataError("there is no pair of different columns: name at least two")
    return pairs
