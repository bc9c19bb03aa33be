"""Which columns of a table may be paired, and which pairs there are."""

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, printable
from .arrays import as_rows
from .files.columns import MICROSECONDS, format_names
from .labels import Discrete

__all__ = [
    "ColumnPairs",
    "Variables",
    "as_table",
    "check_names",
    "listed_labels",
    "pairs_of",
    "usable_columns",
    "usable_or_warned",
    "with_days",
]

Places = NDArray[np.int64]


def as_table(data: Any) -> nw.DataFrame[Any]:
    """Return a frame of any kind, whose columns have different names."""
    names = [str(name) for name in getattr(data, "columns", ())]
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise DataError(f"two columns are called {printable(repeated)}: rename or drop one")
    return nw.from_native(data, eager_only=True)


def check_names(known: Sequence[str], names: Iterable[str]) -> None:
    """Refuse names of no column."""
    for name in set(names).difference(known):
        raise DataError(f"no column {name!r}; there are {', '.join(known[:20])}")


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
            stacklevel=4,
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


@dataclass(frozen=True)
class Variables:
    """What is paired: columns of a table, and units of several columns.

    Args:
        table: The columns.
        units: The columns of each unit, by its name.
    """

    table: nw.DataFrame[Any]
    units: Mapping[str, Sequence[str]]

    def __post_init__(self) -> None:
        for name, columns in self.units.items():
            if name in self.table.columns:
                raise DataError(f"{name!r} is a column already: give the unit another name")
            if not columns:
                raise DataError(f"the unit {name!r} has no columns")
            check_names(self.table.columns, columns)

    def check(self, names: Iterable[str]) -> None:
        """Refuse names of neither columns nor units."""
        check_names([*self.units, *self.table.columns], names)

    def usable(self, apart: Sequence[str]) -> list[str]:
        """Return all units, and other columns that are numbers or categories; warn of the rest."""
        in_units = chain.from_iterable(self.units.values())
        others = self.table.drop(list({*apart, *in_units}))
        return [*usable_or_warned(others), *self.units]

    def columns_of(self, name: str) -> Sequence[str]:
        """Return the columns of a unit, or one column."""
        return self.units.get(name, (name,))

    def values(self, name: str) -> Any:
        """Return a column as a series, or a unit as a frame, of the caller's kind."""
        if name in self.units:
            return self.table.select(list(self.units[name])).to_native()
        return self.table[name].to_native()


@dataclass(frozen=True)
class ColumnPairs:
    """Pairs of different columns, each once; only their two lists of names are in memory.

    Args:
        x: Names, all different.
        y: Names, all different. Of two columns that are in both lists, the one that is later in x
            is the x of their pair.
        is_square: Whether each column is paired with each: then y is x, and the earlier one is the
            x of a pair.
    """

    x: tuple[str, ...]
    y: tuple[str, ...]
    is_square: bool = False

    def __len__(self) -> int:
        if self.is_square:
            return len(self.x) * (len(self.x) - 1) // 2
        both = int((self._twins >= 0).sum())
        return len(self.x) * len(self.y) - both * (both + 1) // 2

    def __iter__(self) -> Iterator[tuple[str, str]]:
        columns = np.arange(len(self.y))
        for i, name in enumerate(self.x):
            for j in np.flatnonzero(self.mask(np.array([i]), columns)[0]):
                yield name, self.y[j]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(dict.fromkeys(self.x + self.y))

    @cached_property
    def _twins(self) -> Places:
        """The places in x of the names of y, -1 where there is none."""
        place = {name: i for i, name in enumerate(self.x)}
        return np.array([place.get(name, -1) for name in self.y], dtype=np.int64)

    def mask(self, rows: Places, columns: Places) -> NDArray[np.bool_]:
        """Return which of some places of x (a,) and of y (b,) are pairs, (a, b)."""
        twins = columns if self.is_square else self._twins[columns]
        if self.is_square:
            return np.less.outer(rows, twins)
        in_both = np.isin(rows, self._twins)
        return ~np.logical_and.outer(in_both, twins >= 0) | np.greater.outer(rows, twins)

    def without(self, names: Collection[str]) -> "ColumnPairs":
        """Return the pairs of other columns."""
        x, y = (tuple(n for n in side if n not in names) for side in (self.x, self.y))
        return replace(self, x=x, y=y)

    def places(self, pairs: Iterable[tuple[str, str]]) -> list[int]:
        """Return where pairs stand in the order of all."""
        x, y = ({name: i for i, name in enumerate(side)} for side in (self.x, self.y))
        return [x[a] * len(self.y) + y[b] for a, b in pairs]

    def having(self, names: Collection[str]) -> list[tuple[str, str]]:
        """Return the pairs of which a column is named."""
        named, others = (
            [i for i, n in enumerate(self.x) if (n in names) == chosen] for chosen in (True, False)
        )
        of_y = [j for j, n in enumerate(self.y) if n in names]
        return [*self._among(named, range(len(self.y))), *self._among(others, of_y)]

    def _among(self, rows: Sequence[int], columns: Sequence[int]) -> Iterator[tuple[str, str]]:
        mask = self.mask(np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64))
        return ((self.x[rows[i]], self.y[columns[j]]) for i, j in np.argwhere(mask))


def pairs_of(x: Sequence[str], y: Sequence[str] | None) -> ColumnPairs:
    """Return the pairs of different columns of x, or of those with others."""
    xs = tuple(dict.fromkeys(x))
    pairs = ColumnPairs(xs, xs if y is None else tuple(dict.fromkeys(y)), is_square=y is None)
    if not len(pairs):
        raise DataError("there is no pair of different columns: name at least two")
    return pairs


def with_days(frame: nw.DataFrame[Any], apart: Collection[str]) -> nw.DataFrame[Any]:
    """Return a table whose dates are numbers of days."""
    dates = [
        name
        for name, dtype in frame.schema.items()
        if name not in apart and dtype in (nw.Date, nw.Datetime)
    ]
    days = [
        (nw.col(name).cast(nw.Datetime("us")).dt.timestamp("us") / MICROSECONDS).alias(name)
        for name in dates
    ]
    return frame.with_columns(*days) if days else frame
