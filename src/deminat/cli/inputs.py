"""What commands are about: two sides of rows, and what is known of the rows."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import DataError, printable
from .console import say

__all__ = ["row_column_names", "row_columns", "scan_sides"]

# What --order may be but a column of times.
_ORDERS = {None: None, "rows": True, "none": False, "None": False}


def scan_sides(
    file: Path,
    y_file: Path | None,
    x: str | None,
    y: str | None,
    categorical: str | Sequence[str],
    given: str | None = None,
    *,
    scored: bool = False,
) -> tuple[Any, Any, Any]:
    """Return both sides and what is given, from columns of one file or from two files.

    Rows that are to be `scored` may be few, and no category need occur twice.
    """
    from ..data import files
    from ..data.files.columns import parse_names

    names = parse_names(categorical) if isinstance(categorical, str) else categorical
    labels = [name for name in names if name]
    if y_file is None:
        found = files.scan(file, x, y, given=given, categorical=labels)
    elif x is None and y is None and given is None:
        found = files.scan_pair(file, y_file, categorical=labels)
    else:
        raise _two_files(file, y_file, {"--x": x, "--y": y, "--given": given})
    _look(found, scored)
    first, second, *known = found
    return first, second, known[0] if known else None


def _two_files(file: Path, y_file: Path, columns: dict[str, str | None]) -> DataError:
    """Return the error for columns of two files; what is no file was meant to be a column."""
    for path in (file, y_file):
        if not os.path.exists(path):
            ways = " or ".join(f"{side} {v},{path}" for side, v in columns.items() if v is not None)
            return DataError(
                f"'{printable(path)}' is no file; name several columns as {printable(ways, 200)}"
            )
    return DataError(
        "two files stand for x and y whole; leave --x, --y and --given out, or one file"
    )


def _look(found: Sequence[Any], scored: bool) -> None:
    """Say in which order folders are read, unless a column does; refuse identifiers."""
    import numpy as np

    from ..data.files.npy_folder import Folder
    from ..data.files.sources import Columns, check_recurring

    for side in found:
        if isinstance(side, Folder) and side.named_by is None:
            first = ", ".join(printable(path.name) for path in side.files[:3])
            more = " ..." if len(side) > 3 else ""
            say(
                f"{printable(side.path, 200)}/: {len(side)} files, a row each, in this order: "
                f"{first}{more}"
            )
        if isinstance(side, Columns):
            side.take(np.arange(1))  # text is refused now, before anything heavy is loaded
            if not scored:
                check_recurring(side)


def row_column_names(groups: str | None, order: str | None) -> list[str]:
    """Return the columns that --groups and --order name."""
    named = [groups, None if order in _ORDERS else order]
    return [name for name in named if name is not None]


def row_columns(
    file: Path, y_file: Path | None, groups: str | None, order: str | None
) -> dict[str, Any]:
    """Return groups and order, from columns of the file."""
    from ..data import files

    if y_file is not None and (groups is not None or order not in _ORDERS):
        raise DataError("--groups and --order name columns of one file; put x and y into one")
    return {
        "groups": None if groups is None else files.scan_labels(file, groups),
        "order": _ORDERS[order] if order in _ORDERS else files.scan_times(file, str(order)),
    }
