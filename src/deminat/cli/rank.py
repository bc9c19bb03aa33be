"""`deminat rank`: which columns of a file tell most about one of them."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from . import options as opt
from .app import app
from .console import print_json, print_table, progress, say
from .inputs import label_columns, row_column_names, row_columns
from .matrix import parse_refine

if TYPE_CHECKING:
    from ..ranking import Ranking

__all__ = ["rank"]

_SHOWN = 20
_REASONS = 5


@app.command()
def rank(
    file: opt.File,
    y: Annotated[str, Option("--y", help="The column to be told about.")],
    x: Annotated[
        str | None, Option(help="Columns, like a,b,'gene_*' (default: all that can be used).")
    ] = None,
    categorical: opt.Categorical = "",
    discrete: opt.Discrete = None,
    groups: opt.Groups = None,
    order: opt.Order = None,
    out: Annotated[Path | None, Option(help="Folder for the table and a bar chart.")] = None,
    refine: Annotated[
        str,
        Option(help="Estimate this many of the best columns, or all, by the recipe as well."),
    ] = "0",
    preset: opt.Recipe = "auto",
    seed: opt.Seed = 0,
    max_rows: Annotated[
        int | None,
        Option(
            min=1, help="Use at most this many rows, sampled at random, the same for all columns."
        ),
    ] = None,
    jobs: opt.Jobs = None,
    as_json: opt.Json = False,
) -> None:
    """Rank the columns of a file by what they tell about one of them.

    deminat rank patients.csv --y outcome

    deminat rank cells.parquet --y mek --refine 5 --out ranking
    """
    from ..data import files
    from ..data.files.columns import format_names

    count = parse_refine(refine)
    with progress("columns") as report_share:
        apart = row_column_names(groups, order)
        frame, names, _, left_out = files.read_columns(
            file, x, y, categorical=categorical, apart=apart
        )
        row_groups, row_order = map(files.read_all, row_columns(file, None, groups, order))
        from ..ranking import rank as ranked  # late: imports torch

        found = ranked(
            frame.select(*dict.fromkeys([*names, y])),
            y,
            refine=count,
            preset=preset,
            seed=seed,
            groups=row_groups,
            order=row_order,
            discrete=label_columns(file, discrete),
            max_rows=max_rows,
            n_jobs=jobs or -1,
            progress=report_share,
            say=say,
        )
    if left_out:
        say(f"columns left out: {format_names(left_out)} (neither numbers nor repeated words)")
    for name, reason in list(found.left_out.items())[:_REASONS]:
        say(f"left out {name}: {reason}")
    for caution in found.warnings:
        say(f"warning: {caution}")
    rows = found.rows()
    if out is not None:
        _write(found, out)
    if as_json:
        print_json(rows)
        return
    shown = [
        {
            "column": row["column"],
            "nats": f"{row['mi']:.3f}",
            "low": f"{row['low']:.3f}",
            "high": f"{row['high']:.3f}",
            "q": f"{row['q_value']:.2g}",
            "method": row["method"],
        }
        for row in rows[:_SHOWN]
    ]
    print_table(shown)
    if len(rows) > _SHOWN:
        where = "--out FOLDER writes all" if out is None else "all are in ranking.csv"
        say(f"the first {_SHOWN} of {len(rows)} columns; {where}")


def _write(found: "Ranking", out: Path) -> None:
    """Write the table and, if matplotlib is installed, the chart."""
    from ..report.tables import save_table

    out.mkdir(parents=True, exist_ok=True)
    save_table(out / "ranking.csv", found.table)
    save_table(out / "ranking.parquet", found.table)
    if find_spec("matplotlib") is None:
        say("note: no chart, because matplotlib is missing: pip install matplotlib")
        return
    found.save_chart(out / "ranking.png")
    say(f"wrote ranking.csv, ranking.parquet and ranking.png to {out}")
