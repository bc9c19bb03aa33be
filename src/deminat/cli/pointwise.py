"""`--pointwise` and `--figure` of `deminat estimate`: the contribution of each row.

The mutual information is the mean log ratio of the rows, so each row has its own contribution.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from ..errors import printable
from .console import format_path, say
from .inputs import check_installed
from .options import Unit

if TYPE_CHECKING:
    from ..results import MIResult

__all__ = ["Figure", "Pointwise", "check_paths", "write_pointwise"]

_MAX_COLUMNS = 20  # of x and y together that are written beside the contributions
_FIGURE_SUFFIXES = (".png", ".svg", ".pdf")

Pointwise = Annotated[
    Path | None,
    Option(help="Write the nats that each row contributes to this .parquet or .csv file."),
]
Figure = Annotated[
    Path | None, Option(help="Draw the contribution of each row to this .png, .svg or .pdf.")
]


def check_paths(report: Path | None, pointwise: Path | None, figure: Path | None) -> None:
    """Refuse output files that cannot be written, before the work starts."""
    if report is not None:
        from ..report import check_path

        check_path(report)
    if pointwise is not None:
        from ..report.pointwise import check_path as check_table_path

        check_table_path(pointwise)
    if figure is not None:
        from ..runtime.atomic import check_writable

        check_writable(figure, _FIGURE_SUFFIXES, "a figure")
        check_installed("matplotlib", "a figure")


def write_pointwise(
    results: list["MIResult"],
    sides: tuple[Any, Any],
    pointwise: Path | None,
    figure: Path | None,
    unit: Unit,
) -> None:
    """Write the table and the figure of contributions, where a path is given."""
    if pointwise is None and figure is None:
        return
    values = _values(sides, results[0].rows)
    if pointwise is not None:
        from ..report.pointwise import save, table

        save(pointwise, table(results, values))
        say(f"wrote pointwise table: {format_path(pointwise)}{_summary(results[0], unit)}")
    if figure is not None:
        _draw(figure, results[0], values)
        say(f"wrote figure: {format_path(figure)}")


def _summary(result: "MIResult", unit: Unit) -> str:
    """Return which rows contribute most, in words."""
    if result.half is None:
        return ""
    from ..results import nats_to

    (row, *_), (nats, *_) = result.top(1)
    return (
        f"; half of the information is in {result.half:.0%} of the rows, most in row {row}, "
        f"counted from 0 ({nats_to(unit.value, nats):.3f} {unit.value})"
    )


def _values(sides: tuple[Any, Any], rows: Any) -> list[Any]:
    """Return both sides of the rows; an empty list if they have too many columns."""
    import numpy as np
    import polars as pl

    from ..data.files.sources import Columns
    from ..data.source import take_rows, width

    if sum(map(width, sides)) > _MAX_COLUMNS:
        return []
    found = []
    for side in sides:
        values = take_rows(side, rows)
        if isinstance(side, Columns) and isinstance(values, np.ndarray):
            values = pl.DataFrame(values, schema=side.names)
        found.append(values)
    return found


def _draw(path: Path, result: "MIResult", values: list[Any]) -> None:
    """Draw the contributions, in the plane of x and y if each is one number."""
    from ..report.plots import save_information
    from ..report.pointwise import table
    from ..runtime.atomic import write_atomically

    frame = table([result], values)
    names = frame.columns[1:-1]
    numeric = len(names) == 2 and all(frame[name].dtype.is_numeric() for name in names)
    pair = (frame[names[0]].to_numpy(), frame[names[1]].to_numpy()) if numeric else None
    labels = (printable(names[0]), printable(names[1])) if numeric else ("x", "y")
    kind = path.suffix.lower().removeprefix(".")
    write_atomically(path, lambda draft: save_information(draft, result, pair, labels, kind))
