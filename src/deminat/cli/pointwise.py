"""Which rows carry the information: `--pointwise` and `--figure`."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DataError, printable
from .console import say
from .options import Unit

if TYPE_CHECKING:
    from ..results import MIResult

__all__ = ["Figure", "Pointwise", "check_paths", "write_pointwise"]

_LONGEST = 300  # characters of a path on the screen
_FEW = 20  # columns that are read again to be told
_DRAWN = (".png", ".svg", ".pdf")

Pointwise = Annotated[
    Path | None, typer.Option(help="Write the nats of each row to this .parquet or .csv file.")
]
Figure = Annotated[
    Path | None, typer.Option(help="Draw which pairs carry the information: .png, .svg or .pdf.")
]


def check_paths(pointwise: Path | None, figure: Path | None) -> None:
    """Refuse at once, not after minutes of work, what cannot be written."""
    from ..report.pointwise import check_path
    from ..runtime.atomic import check_writable

    if pointwise is not None:
        check_path(pointwise)
    if figure is not None:
        check_writable(figure, _DRAWN, "a figure")
        if find_spec("matplotlib") is None:
            raise DataError("a figure needs matplotlib: pip install 'deminat[plot]'")


def write_pointwise(
    results: list["MIResult"],
    sides: tuple[Any, Any],
    pointwise: Path | None,
    figure: Path | None,
    unit: Unit,
) -> None:
    """Write the rows and their nats, and draw them, where asked."""
    if pointwise is None and figure is None:
        return
    told = _told(sides, results[0].rows)
    if pointwise is not None:
        from ..report.pointwise import save, table

        save(pointwise, table(results, told))
        say(f"pointwise: {printable(pointwise, _LONGEST)}{_carried(results[0], unit)}")
    if figure is not None:
        _draw(figure, results[0], told)
        say(f"figure: {printable(figure, _LONGEST)}")


def _carried(result: "MIResult", unit: Unit) -> str:
    """Return which rows carry the information, in words."""
    if result.half is None:
        return ""
    from ..results import nats_to

    (row, *_), (nats, *_) = result.top(1)
    return (
        f"; half of the information is in {result.half:.0%} of the rows, most in row {row}, "
        f"counted from 0 ({nats_to(unit.value, nats):.3f} {unit.value})"
    )


def _told(sides: tuple[Any, Any], rows: Any) -> list[Any]:
    """Return both sides of some rows, if they have few columns."""
    import numpy as np
    import polars as pl

    from ..data.files.sources import Columns
    from ..data.source import take_rows, width

    if sum(map(width, sides)) > _FEW:
        return []
    found = []
    for side in sides:
        values = take_rows(side, rows)
        if isinstance(side, Columns) and isinstance(values, np.ndarray):
            values = pl.DataFrame(values, schema=side.names)
        found.append(values)
    return found


def _draw(path: Path, result: "MIResult", told: list[Any]) -> None:
    """Draw the pairs, if each is two numbers, and what they carry."""
    from ..report.plots import save_information
    from ..report.pointwise import table
    from ..runtime.atomic import write_atomically

    frame = table([result], told)
    names = frame.columns[1:-1]
    numeric = len(names) == 2 and all(frame[name].dtype.is_numeric() for name in names)
    pair = (frame[names[0]].to_numpy(), frame[names[1]].to_numpy()) if numeric else None
    labels = (printable(names[0]), printable(names[1])) if numeric else ("x", "y")
    kind = path.suffix.lower().removeprefix(".")
    write_atomically(path, lambda draft: save_information(draft, result, pair, labels, kind))
