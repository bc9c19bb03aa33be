"""Which columns are labels: their values name something, and the order of the values means nothing.

Text and categories are labels always: they are columns of zeros and ones, one for each level. A
column of numbers is a label if it is declared to be one. If nothing is declared, its values decide:
few values, each repeated often, are codes rather than measurements. Whoever reads codes as labels
has the same answer whatever the codes are. A warning names the columns that were read so.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, printable
from ..results import Caution
from .arrays import UNNAMED, SideRows

__all__ = [
    "Declared",
    "Discrete",
    "check_discrete",
    "declared_labels",
    "describe_labels",
    "discrete_columns",
    "is_one_label",
]

Array = NDArray[np.float64]
Discrete: TypeAlias = bool | Sequence[str] | None
_Place: TypeAlias = tuple[str, int]  # a side, and the number of a column
Declared: TypeAlias = tuple[bool | None, ...]  # of each column; None where its values decide

_MOST_VALUES = 256  # of a byte; what is measured more finely has an order that matters
_ROWS_PER_VALUE = 10  # the frequency of a value is then known to a third
_FIRST_ROWS = 1_000  # they show of most measurements that they take many values
_COLUMNS = 1_024  # that are looked at together: bounds the memory
_SHOWN = 5  # names in a message
_LONGEST = 1_000  # letters of a name with its side
_BINARY = 2  # values, of which any two codes are linear maps of each other


def check_discrete(discrete: Discrete) -> None:
    """Refuse what is neither a truth value nor a list of names."""
    if discrete is None or isinstance(discrete, bool | np.bool_):
        return
    listed = isinstance(discrete, Collection) and not isinstance(discrete, str)
    if not listed or not all(isinstance(name, str) for name in discrete):
        raise ValueError(
            "discrete must be True, False or a list of names of columns, such as ['zip'], got "
            f"{discrete!r}"
        )


def declared_labels(sides: Mapping[str, SideRows], discrete: Discrete) -> list[Declared]:
    """Return which columns of each side are declared labels; an image has none.

    Args:
        sides: The rows of x, y and, if given, z, by the name of the side.
        discrete: `True` or `False` for all columns of numbers; the names of columns or of sides;
            or `None`, so that values decide.
    """
    if discrete is None or isinstance(discrete, bool | np.bool_):
        whole = None if discrete is None else bool(discrete)
        return [_of_numbers(side, [whole] * len(side.names)) for side in sides.values()]
    columns = {name: _columns(side) for name, side in sides.items()}
    places = _places(columns)
    wanted: set[_Place] = set()
    for name in discrete:
        found = places.get(printable(name)) or places.get(printable(name, _LONGEST))
        if not found:
            there = "; ".join(f"{side} has {_listed(names)}" for side, names in columns.items())
            raise DataError(f"discrete names '{printable(name)}', which is no column: {there}")
        wanted |= found
    return [
        _of_numbers(side, [(name, j) in wanted for j in range(len(columns[name]))])
        for name, side in sides.items()
    ]


def discrete_columns(rows: Array, declared: Declared) -> tuple[bool, ...]:
    """Return which columns of rows (n, ...) are labels; none of images, which are declared ()."""
    undecided = np.array([known is None for known in declared], dtype=bool)
    found = np.array([bool(known) for known in declared], dtype=bool)
    if undecided.any():
        found[undecided] = _takes_few_values(rows[:, undecided] if not undecided.all() else rows)
    return tuple(found.tolist())


def describe_labels(
    sides: Mapping[str, tuple[Array, tuple[str, ...], tuple[bool, ...]]],
) -> tuple[Caution, ...]:
    """Return a warning of the columns of numbers that are read as labels, if there are any.

    Columns of two values are read alike either way, and indicators are such columns.

    Args:
        sides: Rows (n, ...), names of columns and which of them are labels, by the name of the
            side. Nothing may have been declared.
    """
    found = []
    for side, (rows, names, discrete) in sides.items():
        for j in np.flatnonzero(discrete):
            count = len(np.unique(rows[:, j]))
            if count > _BINARY:
                name = side if names == (UNNAMED,) else f"{names[j]} of {side}"
                found.append((name, count))
    if not found:
        return ()
    if len(found) == 1:
        (name, count), *_ = found
        message = f"{name} takes {count} distinct values and is read as a label: its codes"
    else:
        shown = ", ".join(f"{name} ({count} values)" for name, count in found[:_SHOWN])
        more = f" and {len(found) - _SHOWN} more columns" if len(found) > _SHOWN else ""
        message = f"{shown}{more} are read as labels: their codes"
    advice = (
        "Pass discrete=False (--discrete none) if they are measurements, or the names of those "
        "that are labels"
    )
    return (Caution("labels", f"{message} may be in any order", advice),)


def _columns(side: SideRows) -> tuple[str, ...]:
    """Return the name of each column, for levels that of their category; () for images."""
    if side.rows.ndim > 2:
        return ()
    pairs = zip(side.names, side.categories, strict=True)
    return tuple(name if category is None else category for name, category in pairs)


def _of_numbers(side: SideRows, declared: Sequence[bool | None]) -> Declared:
    """Return what is declared of numbers, and True of categories; () for images."""
    if side.rows.ndim > 2:
        return ()
    pairs = zip(side.categories, declared, strict=True)
    return tuple(known if category is None else True for category, known in pairs)


def _places(columns: Mapping[str, tuple[str, ...]]) -> dict[str, set[_Place]]:
    """Return what each name stands for: columns first, then columns of a side, then sides."""
    places: dict[str, set[_Place]] = {}
    for name_of in ("{column}", "{column} of {side}", "{side}"):
        found: dict[str, set[_Place]] = {}
        for side, names in columns.items():
            for j, column in enumerate(names):
                found.setdefault(name_of.format(column=column, side=side), set()).add((side, j))
        places = found | places
    return places


def _listed(columns: Sequence[str]) -> str:
    """Return the first names of columns."""
    names = list(dict.fromkeys(columns))
    if not names:
        return "an image"
    more = f", … ({len(names)} in all)" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _takes_few_values(a: Array) -> NDArray[np.bool_]:
    """Tell which columns of rows (n, d) take few values, each repeated often on average."""
    most = min(_MOST_VALUES, len(a) // _ROWS_PER_VALUE)
    first = a[:_FIRST_ROWS].T
    parts = range(0, len(first), _COLUMNS)
    few = np.concatenate([_distinct(first[i : i + _COLUMNS]) <= most for i in parts])
    if len(a) > _FIRST_ROWS:
        for j in np.flatnonzero(few):
            few[j] = len(np.unique(a[:, j])) <= most
    return np.asarray(few)


def _distinct(columns: Array) -> NDArray[np.int64]:
    """Return the number of distinct values of each of some columns (d, n)."""
    ordered = np.sort(np.ascontiguousarray(columns), axis=1)
    return np.asarray(1 + (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1))


def is_one_label(a: NDArray[np.float64]) -> bool:
    """Tell whether rows (n, d) are the indicators of a single label."""
    return bool(((a == 0) | (a == 1)).all() and (a.sum(axis=1) == 1).all())
