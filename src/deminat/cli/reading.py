"""What commands are about: two sides of rows, and what is known of the rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import DataError

__all__ = ["beside", "sides"]

_ROWS = "rows"  # what --order calls the order of the file


def sides(
    file: Path,
    y_file: Path | None,
    x: str | None,
    y: str | None,
    categorical: str | Sequence[str],
    given: str | None = None,
) -> tuple[Any, Any, Any]:
    """Return both sides and what is given, from columns of one file or from two files."""
    from .. import files

    names = categorical.split(",") if isinstance(categorical, str) else categorical
    labels = [name for name in names if name]
    if y_file is None:
        first, second, *known = files.scan(file, x, y, given=given, categorical=labels)
        return first, second, known[0] if known else None
    if x is not None or y is not None or given is not None:
        raise DataError(
            "two files stand for x and y whole; leave --x, --y and --given out, or one file"
        )
    return *files.scan_pair(file, y_file, categorical=labels), None


def beside(
    file: Path, y_file: Path | None, groups: str | None, order: str | None
) -> dict[str, Any]:
    """Return groups and order, from columns of the file."""
    from .. import files

    if y_file is not None and (groups is not None or order not in (None, _ROWS)):
        raise DataError("--groups and --order name columns of one file; put x and y into one")
    times = None if order in (None, _ROWS) else files.scan_times(file, str(order))
    return {
        "groups": None if groups is None else files.scan_labels(file, groups),
        "order": True if order == _ROWS else times,
    }
