"""`deminat score`: log ratios of new rows, by the critics of a saved run."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import printable
from .app import app
from .console import format_path, print_json, progress, say
from .inputs import scan_sides
from .options import Categorical, File, Given, Json, Missing, Nan, X, Y, YFile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..estimators.fitted import ColumnNames

__all__ = ["score"]


@app.command()
def score(
    run: Annotated[Path, typer.Argument(help="Folder that deminat estimate --save wrote.")],
    file: File,
    y_file: YFile = None,
    x: X = None,
    y: Y = None,
    categorical: Categorical = "",
    given: Given = None,
    nan: Missing = Nan.RAISE,
    out: Annotated[
        Path | None, typer.Option(help="Write the log ratios, in nats, to this .csv or .parquet.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Score new rows with a saved run: the log ratio of each pair, in nats.

    Columns are found by the names they have in the run. If they have other names here, list those
    with --x, --y and --given, in the same order.

    deminat score run new.csv --out scores.parquet
    """
    if out is not None:
        from ..runtime.atomic import check_writable

        check_writable(out, (".csv", ".parquet"), "--out")
    with progress("scoring"):
        from ..data.source import take_rows
        from ..persistence.saved_run import load  # late: imports torch

        result = load(run)
        sources = result.model.sources if result.model else ()
        labels = categorical or _labels(sources, (x, y, given))
        if y_file is None:  # the columns of the run, unless the options name others
            stored = *(_joined(source.names) for source in sources), None, None, None
            x, y, given = (a or b for a, b in zip((x, y, given), stored, strict=False))
        sides = scan_sides(file, y_file, x, y, labels, given, scoring=True)
        rows = [
            _renamed(take_rows(side, None), source)
            for side, source in zip(sides, (*sources, None), strict=False)
        ]
        scores = result.log_ratio(*rows, nan=nan.value)
    _print(scores, as_json)
    if out is not None:
        _write(out, scores)


def _joined(names: Sequence[str]) -> str | None:
    """Return names in the form that --x accepts; those with commas are quoted."""
    line = io.StringIO()
    csv.writer(line).writerow(names)
    return line.getvalue().strip() or None


def _labels(sources: "Sequence[ColumnNames]", options: Sequence[str | None]) -> list[str]:
    """Return the categories of the run, by the names that the options give them."""
    from ..data.files.columns import parse_names

    labels: list[str] = []
    for source, option in zip(sources, options, strict=False):
        names = parse_names(option or "")
        if len(names) != len(source.names):
            names = list(source.names)
        pairs = zip(names, source.names, strict=True)
        labels += [name for name, stored in pairs if stored in source.categorical]
    return labels


def _renamed(side: Any, source: "ColumnNames | None") -> Any:
    """Return a frame with the column names of the run, if it has as many columns."""
    import polars as pl

    if source is None or not isinstance(side, pl.DataFrame) or side.width != len(source.names):
        return side
    for new, stored in zip(side.columns, source.names, strict=True):
        if new != stored:
            say(f"note: column {printable(new)} is used as {printable(stored)} of the run")
    return pl.DataFrame(dict(zip(source.names, side, strict=True)))


def _print(scores: "NDArray[np.float64]", as_json: bool) -> None:
    """Print the mean and standard error of the scores; as JSON, also each score."""
    finite = scores[scores == scores]
    n, mean = len(finite), float(finite.mean())
    error = float(finite.std(ddof=1) / n**0.5) if n > 1 else None
    if n < len(scores):
        say(f"warning: {len(scores) - n} of {len(scores)} rows held NaN or inf and have no score")
    if as_json:
        each = [None if value != value else value for value in scores.tolist()]
        summary = {"mean": mean, "standard_error": error, "n": n, "unit": "nats"}
        print_json({**summary, "log_ratio": each})
        return
    spread = "unknown" if error is None else f"{error:.3f}"
    typer.echo(f"{mean:.3f} nats  s.e. {spread}  n={n}")


def _write(path: Path, scores: "NDArray[np.float64]") -> None:
    """Write the log ratio of each row, in the order of the file."""
    import polars as pl

    from ..report.tables import save_table

    save_table(path, pl.DataFrame({"row": range(len(scores)), "log_ratio": scores}).fill_nan(None))
    say(f"wrote scores: {format_path(path)}")
