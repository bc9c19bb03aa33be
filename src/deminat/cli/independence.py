"""`deminat test`: a p-value for the hypothesis that x and y are independent."""

from typing import Annotated

import typer

from . import options as opt
from .app import app
from .console import print_json, print_warnings, progress
from .inputs import row_columns, scan_sides

__all__ = ["independence"]


@app.command("test")
def independence(
    file: opt.File,
    y_file: opt.YFile = None,
    x: opt.X = None,
    y: opt.Y = None,
    categorical: opt.Categorical = "",
    given: opt.Given = None,
    groups: opt.Groups = None,
    order: opt.Order = None,
    max_rows: opt.MaxRows = None,
    permutations: Annotated[
        int, typer.Option(help="Number of random permutations, at least 20; unused with --order.")
    ] = 999,
    seed: opt.Seed = 0,
    nan: opt.Missing = opt.Nan.RAISE,
    as_json: opt.Json = False,
) -> None:
    """Test whether x and y are independent: a p-value, in seconds.

    deminat test cells.parquet --x raf --y mek

    deminat test visits.csv --x dose --y pulse --groups patient
    """
    with progress("testing"):
        x_side, y_side, z_side = scan_sides(file, y_file, x, y, categorical, given)
        row_groups, row_order = row_columns(file, y_file, groups, order)
        from ..inference import independence_test  # late: imports torch

        result = independence_test(
            x_side,
            y_side,
            given=z_side,
            groups=row_groups,
            order=row_order,
            max_rows=max_rows,
            permutations=permutations,
            seed=seed,
            nan=nan.value,
        )
    if as_json:
        print_json(result.to_dict())
        return
    typer.echo(str(result))
    print_warnings(result.warnings)
