"""`deminat check`."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .app import app
from .console import progress, table, warn
from .inputs import row_columns, scan_sides
from .options import (
    Categorical,
    File,
    Folds,
    Groups,
    Jobs,
    Json,
    MaxRows,
    Method,
    Nan,
    Order,
    Preset,
    Seed,
    Skip,
    X,
    Y,
    YFile,
)

if TYPE_CHECKING:
    pass

__all__ = ["check"]


@app.command()
def check(
    file: File,
    y_file: YFile = None,
    x: X = None,
    y: Y = None,
    categorical: Categorical = "",
    groups: Groups = None,
    order: Order = None,
    max_rows: MaxRows = None,
    method: Annotated[Method, typer.Option(help="What to check.")] = Method.DEMI,
    preset: Annotated[Preset, typer.Option(help="Recipe of trained methods.")] = Preset.AUTO,
    folds: Folds = 5,
    seed: Seed = 0,
    nan: Skip = Nan.RAISE,
    jobs: Jobs = None,
    budget: Annotated[
        float | None, typer.Option(help="Seconds to take at most, for all estimates together.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check that the estimate obeys the laws of information on your own data.

    y permuted, x and y exchanged, columns bent, noise added, columns left out, rows side by side
    (not with groups or order): five to eight estimates, which take as many times as long as one.

    deminat check cells.parquet --x raf --y mek
    """
    with progress("checking") as share:
        *pair, _ = scan_sides(file, y_file, x, y, categorical)
        about = row_columns(file, y_file, groups, order)
        from ..laws import check as checked  # late: torch takes seconds

        base, checks = checked(
            *pair,
            method=method.value,
            preset=preset.value,
            folds=folds,
            seed=seed,
            nan=nan.value,
            n_jobs=jobs or -1,
            budget=budget,
            progress=share,
            max_rows=max_rows,
            **about,
        )
    if as_json:
        told = {"estimate": base.to_dict(), "checks": [c.to_dict() for c in checks]}
        typer.echo(json.dumps(told, indent=2))
    else:
        typer.echo(base.describe())
        table([_line(c.to_dict()) for c in checks], as_json=False)
        warn(base.warnings)
    if not all(c.passed for c in checks):
        raise typer.Exit(1)


def _line(told: dict[str, Any]) -> dict[str, str]:
    """Return a check as a line of a table, in nats."""
    low, high = ("any" if v is None else f"{v:.3f}" for v in (told["low"], told["high"]))
    return {
        "law": told["law"],
        "change": told["change"],
        "nats": f"{told['found']:.3f}",
        "at least": low,
        "at most": high,
        "": "ok" if told["passed"] else "FAIL",
    }
