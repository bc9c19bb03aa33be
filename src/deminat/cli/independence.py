"""`deminat test`."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from .app import app
from .console import progress, warn
from .inputs import row_columns, scan_sides
from .options import (
    Categorical,
    File,
    Given,
    Groups,
    Json,
    MaxRows,
    Nan,
    Order,
    Seed,
    Skip,
    X,
    Y,
    YFile,
)

if TYPE_CHECKING:
    pass

__all__ = ["independence"]


@app.command("test")
def independence(
    file: File,
    y_file: YFile = None,
    x: X = None,
    y: Y = None,
    categorical: Categorical = "",
    given: Given = None,
    groups: Groups = None,
    order: Order = None,
    max_rows: MaxRows = None,
    permutations: Annotated[
        int, typer.Option(help="To compare with, at least 20; not with --order.")
    ] = 999,
    seed: Seed = 0,
    nan: Skip = Nan.RAISE,
    as_json: Json = False,
) -> None:
    """Test whether columns of a file tell anything about others: a p-value, in seconds.

    deminat test cells.parquet --x raf --y mek

    deminat test visits.csv --x dose --y pulse --groups patient
    """
    with progress("testing"):
        x_side, y_side, known = scan_sides(file, y_file, x, y, categorical, given)
        about = row_columns(file, y_file, groups, order)
        from ..inference import independence_test  # late: torch takes seconds

        result = independence_test(
            x_side,
            y_side,
            given=known,
            permutations=permutations,
            seed=seed,
            nan=nan.value,
            max_rows=max_rows,
            **about,
        )
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2))
        return
    typer.echo(str(result))
    warn(result.warnings)
