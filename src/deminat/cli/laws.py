"""`deminat check`: does the estimate obey the laws of information on the user's own data?"""

from typing import Annotated, Any

import typer

from ..estimators.registry import METHODS
from . import options as opt
from .app import app
from .console import print_json, print_table, print_warnings, progress
from .inputs import labels_of_sides, row_columns, scan_sides

__all__ = ["check"]


@app.command()
def check(
    file: opt.File,
    y_file: opt.YFile = None,
    x: opt.X = None,
    y: opt.Y = None,
    categorical: opt.Categorical = "",
    discrete: opt.Discrete = None,
    groups: opt.Groups = None,
    order: opt.Order = None,
    max_rows: opt.MaxRows = None,
    method: Annotated[
        str, typer.Option(callback=opt.one_of(METHODS), help="Method to check.")
    ] = "demi",
    preset: opt.Recipe = "auto",
    folds: opt.Folds = 5,
    seed: opt.Seed = 0,
    nan: opt.Missing = opt.Nan.RAISE,
    jobs: opt.Jobs = None,
    budget: opt.Budget = None,
    as_json: opt.Json = False,
) -> None:
    """Check that the estimate obeys the laws of information on your data.

    The estimate is repeated on changed data: y permuted, x and y exchanged, columns transformed,
    noise added, columns left out, and pairs of rows joined (not with --groups or --order).
    That takes five to eight times as long as one estimate. The exit code is 1 if a law is broken.

    deminat check cells.parquet --x raf --y mek
    """
    with progress("checking") as report_share:
        x_side, y_side, _ = scan_sides(file, y_file, x, y, categorical)
        row_groups, row_order = row_columns(file, y_file, groups, order)
        from ..laws import check as check_laws  # late: imports torch

        base, checks = check_laws(
            x_side,
            y_side,
            method=method,
            preset=preset,
            folds=folds,
            seed=seed,
            nan=nan.value,
            groups=row_groups,
            order=row_order,
            discrete=labels_of_sides(discrete, x_side, y_side),
            max_rows=max_rows,
            n_jobs=jobs or -1,
            budget=budget,
            progress=report_share,
        )
    if as_json:
        print_json({"estimate": base.to_dict(), "checks": [c.to_dict() for c in checks]})
    else:
        typer.echo(base.describe())
        print_table([_line(c.to_dict()) for c in checks])
        print_warnings(base.warnings)
    if not all(c.passed for c in checks):
        raise typer.Exit(1)


def _line(checked: dict[str, Any]) -> dict[str, str]:
    """Return a check as a line of the table, in nats."""
    low, high = ("any" if v is None else f"{v:.3f}" for v in (checked["low"], checked["high"]))
    return {
        "law": checked["law"],
        "change": checked["change"],
        "nats": f"{checked['found']:.3f}",
        "at least": low,
        "at most": high,
        "": "ok" if checked["passed"] else "FAIL",
    }
