"""New rows by a run that was saved: `deminat score`."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import printable
from .app import app
from .console import progress, say
from .inputs import scan_sides
from .options import Categorical, File, Given, Json, Nan, Skip, X, Y, YFile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..estimators.fitted import ColumnNames

__all__ = ["score"]

_SUFFIXES = ".csv", ".parquet"
_LONGEST = 300  # characters of a path on the screen


@app.command()
def score(
    run: Annotated[Path, typer.Argument(help="Folder that estimate --save wrote.")],
    file: File,
    y_file: YFile = None,
    x: X = None,
    y: Y = None,
    categorical: Categorical = "",
    given: Given = None,
    nan: Skip = Nan.RAISE,
    out: Annotated[
        Path | None, typer.Option(help="Write each row's log ratio to this .csv or .parquet.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Score new rows by a saved run: the log ratio of each pair, in nats.

    Columns are those of the run, by name; --x, --y and --given name others for them, in order.

    deminat score run new.csv --out scores.parquet
    """
    if out is not None:
        from ..runtime.atomic import check_writable

        check_writable(out, _SUFFIXES, "--out")  # refused now, not after the work
    with progress("scoring"):
        from ..data.source import take_rows
        from ..persistence.saved_run import load  # late: torch takes seconds

        result = load(run)
        sources = result.model.sources
        asked = _asked(sources, (x, y, given)) if y_file is None else (x, y, given)
        labels = categorical or [name for source in sources for name in source.categorical]
        new = scan_sides(file, y_file, *asked[:2], labels, asked[2], scored=True)
        rows = [
            _called(take_rows(side, None), s)
            for side, s in zip(new, (*sources, None), strict=False)
        ]
        scores = result.log_ratio(*rows, nan=nan.value)
    _show(scores, as_json)
    if out is not None:
        _write(out, scores)


def _asked(
    sources: Sequence["ColumnNames"], named: Sequence[str | None]
) -> tuple[str | None, str | None, str | None]:
    """Return the columns of each side: those named now or, if there are none, those of the run."""
    known = [*(_listed(source.names) for source in sources), None, None]
    x, y, given = (now or then for now, then in zip(named, known, strict=False))
    return x, y, given


def _listed(names: Sequence[str]) -> str | None:
    """Return names as --x takes them."""
    line = io.StringIO()
    csv.writer(line).writerow(names)
    return line.getvalue().strip() or None


def _called(side: Any, source: "ColumnNames | None") -> Any:
    """Return a side whose columns are called as in the run, as far as there are as many."""
    import polars as pl

    if source is None or not isinstance(side, pl.DataFrame):
        return side
    if len(side.columns) != len(source.names):
        return side
    for now, then in zip(side.columns, source.names, strict=True):
        if now != then:
            say(f"note: {printable(now)} stands for {printable(then)} of the run")
    return pl.DataFrame(dict(zip(source.names, side, strict=True)))


def _show(scores: "NDArray[np.float64]", as_json: bool) -> None:
    """Print the mean of the rows that have a score or, as JSON, all of them."""
    there = scores[scores == scores]
    n, mean = len(there), float(there.mean())
    error = float(there.std(ddof=1) / n**0.5) if n > 1 else None
    if n < len(scores):
        say(f"warning: {len(scores) - n} of {len(scores)} rows held NaN or inf and have no score")
    if as_json:
        each = [None if value != value else value for value in scores.tolist()]
        told = {"mean": mean, "standard_error": error, "n": n, "unit": "nats", "log_ratio": each}
        typer.echo(json.dumps(told, indent=2))
        return
    spread = "unknown" if error is None else f"{error:.3f}"
    typer.echo(f"{mean:.3f} nats  s.e. {spread}  n={n}")


def _write(path: Path, scores: "NDArray[np.float64]") -> None:
    """Write the log ratio of each row, in the order of the file."""
    import polars as pl

    from ..runtime.atomic import write_atomically

    frame = pl.DataFrame({"row": range(len(scores)), "log_ratio": scores}).fill_nan(None)
    is_text = path.suffix.lower() == ".csv"
    write_atomically(path, frame.write_csv if is_text else frame.write_parquet)
    say(f"scores: {printable(path, _LONGEST)}")
