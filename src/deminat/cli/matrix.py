"""All pairs of columns of a file: `deminat matrix`."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .app import app
from .console import progress, say, table
from .inputs import row_column_names, row_columns
from .options import Categorical, Cluster, File, Groups, Jobs, Json, Nan, Order, Preset, Seed, Skip

if TYPE_CHECKING:
    from ..matrix import PairwiseResult

__all__ = ["matrix"]

_LEVEL = 0.05
_FAILED = "not estimated"  # the table of the files says why


@app.command()
def matrix(
    file: File,
    x: Annotated[
        str | None,
        typer.Option(help="Columns: a,b,'gene_*'. By default all that are numbers or categories."),
    ] = None,
    y: Annotated[
        str | None, typer.Option(help="Columns to pair those of x with; by default each other.")
    ] = None,
    categorical: Categorical = "",
    groups: Groups = None,
    order: Order = None,
    out: Annotated[
        Path, typer.Option(help="Folder for rows, table and figures; goes on where it was.")
    ] = Path("matrix"),
    preset: Annotated[Preset, typer.Option(help="Recipe of each estimate.")] = Preset.QUICK,
    folds: Annotated[
        int | None,
        typer.Option(
            min=2, help="Critics of each estimate; by default 5 below 2,000 rows, else 2."
        ),
    ] = None,
    seed: Seed = 0,
    nan: Skip = Nan.RAISE,
    jobs: Jobs = None,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:
    """Estimate all pairs of columns of a file, with p-values adjusted for their number.

    deminat matrix cells.parquet --out pairs

    deminat matrix genes.csv --x 'gene_*' --y phenotype

    deminat matrix visits.csv --groups patient
    """
    from ..data import files

    with progress("pairs", kept=True) as share:
        apart = row_column_names(groups, order)
        frame, xs, ys, left_out = files.read_columns(
            file, x, y, categorical=categorical, apart=apart
        )
        _say_left_out(left_out)
        about = {k: files.read_all(v) for k, v in row_columns(file, None, groups, order).items()}
        from ..matrix import pairwise  # late: torch takes seconds

        out.mkdir(parents=True, exist_ok=True)
        result = pairwise(
            frame,
            xs,
            ys,
            preset=preset.value,
            folds=folds,
            seed=seed,
            nan=nan.value,
            **about,
            store=out / "pairs.sqlite",
            n_jobs=jobs or -1,
            cluster=cluster,
            progress=share,
        )
    wrote = _write(result, out)
    if as_json:
        typer.echo(json.dumps(result.table.to_dicts(), indent=2))
    else:
        table([_line(row) for row in result.table.sort("mi", descending=True).to_dicts()], False)
    _say_warnings(result)
    _say_found(result, f"wrote {wrote} in {out}")


def _say_warnings(result: "PairwiseResult") -> None:
    """Say what the codes of the table mean, in the words of the first pair that has each."""
    codes = [set(codes.split()) for codes in result.table["warnings"]]
    for caution in result.warnings:
        count = sum(caution.code in own for own in codes)
        say(f"warning of {count} of {len(codes)} pairs, here as of the first: {caution}")


def _say_found(result: "PairwiseResult", wrote: str) -> None:
    """Say how many pairs depend on each other, and why some could not be estimated."""
    failed = result.table["error"].filter(result.table["error"] != "")
    found, count = len(result.significant(_LEVEL)), len(result.table) - len(failed)
    if len(failed):
        say(f"error: {len(failed)} of the pairs are not estimated, the first for this: {failed[0]}")
    say(f"{found} of {count} pairs depend on each other (q <= {_LEVEL:g}); {wrote}")
    if not count:
        raise typer.Exit(2)


def _say_left_out(names: list[str]) -> None:
    from ..data.files.columns import format_names

    if names:
        left_out = format_names(names)
        say(f"left out: {left_out} (not numbers; declare categories with --categorical)")


def _line(row: dict[str, Any]) -> dict[str, Any]:
    """Return a pair as a line of a table."""
    forms = {"mi": ".3f", "low": ".3f", "high": ".3f", "p_value": ".2g", "q_value": ".2g"}
    shown = ("" if row[key] is None else f"{row[key]:{form}}" for key, form in forms.items())
    numbers = dict(zip(("nats", "low", "high", "p", "q"), shown, strict=True))
    return {
        "x": row["x"],
        "y": row["y"],
        **numbers,
        "warnings": _FAILED if row["error"] else row["warnings"],
    }


def _write(result: "PairwiseResult", out: Path) -> str:
    """Write the table and, where matplotlib is there, the figures; return their names."""
    from ..runtime.atomic import write_atomically

    write_atomically(out / "pairs.parquet", result.table.write_parquet)
    write_atomically(out / "pairs.csv", result.table.write_csv)
    if find_spec("matplotlib") is None:
        say("no figures without matplotlib: pip install matplotlib")
        return "pairs.parquet and pairs.csv"
    from ..report.plots import save_heat_map, save_network

    lines, columns, nats = result.square()
    save_heat_map(out / "heat_map.png", (lines, columns), nats)
    edges = list(result.significant(_LEVEL).select("x", "y", "mi").iter_rows())
    names = list(dict.fromkeys([*lines, *columns]))
    save_network(out / "network.png", names, edges, f"pairs with q <= {_LEVEL:g}, by their nats")
    return "pairs.parquet, pairs.csv, heat_map.png and network.png"
