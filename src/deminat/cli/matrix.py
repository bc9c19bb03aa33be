"""`deminat matrix`: the mutual information of all pairs of columns of a file."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from . import options as opt
from .app import app
from .console import print_json, print_table, progress, say
from .inputs import label_columns, row_column_names, row_columns

if TYPE_CHECKING:
    from ..matrix import PairwiseResult

__all__ = ["matrix", "parse_refine"]

_LEVEL = 0.05  # false discovery rate
_SHOWN = 40  # pairs that are printed
_EDGES = 200  # pairs that a network shows
_LEFT_OUT = "neither numbers nor repeated words; declare categories with --categorical"
_FORMATS = {"mi": ".3f", "low": ".3f", "high": ".3f", "p_value": ".2g", "q_value": ".2g"}
_HEADINGS = {"mi": "nats", "p_value": "p", "q_value": "q"}


@app.command()
def matrix(
    file: opt.File,
    x: Annotated[
        str | None, Option(help="Columns, like a,b,'gene_*' (default: all numbers and categories).")
    ] = None,
    y: Annotated[
        str | None, Option(help="Columns to pair with those of --x (default: those of --x).")
    ] = None,
    unit: Annotated[
        list[str] | None,
        Option(
            help="Columns that are one variable together, such as 'neuron_*'; its pairs take the "
            "recipe. Repeatable."
        ),
    ] = None,
    categorical: opt.Categorical = "",
    discrete: opt.Discrete = None,
    groups: opt.Groups = None,
    order: opt.Order = None,
    out: Annotated[
        Path, Option(help="Folder for table and figures. Pairs in it are not run again.")
    ] = Path("matrix"),
    refine: Annotated[
        str,
        Option(
            help="Estimate this many of the strongest pairs, or all, by the recipe as well, in "
            "seconds each."
        ),
    ] = "0",
    preset: opt.Recipe = "auto",
    folds: Annotated[
        int | None, Option(min=2, help="Number of folds (default 5 below 2,000 rows, else 2).")
    ] = None,
    seed: opt.Seed = 0,
    nan: opt.Missing = opt.Nan.OMIT,
    max_rows: Annotated[
        int | None,
        Option(
            min=1, help="Use at most this many rows, sampled at random, the same for all pairs."
        ),
    ] = None,
    most: Annotated[
        int,
        Option(min=1, help="At most this many pairs are in the table: those with the smallest p."),
    ] = 5_000_000,
    jobs: opt.Jobs = None,
    cluster: opt.Cluster = None,
    as_json: opt.Json = False,
) -> None:
    """Estimate all pairs of columns of a file, with p-values adjusted for their number.

    Each pair takes a fraction of a millisecond, by ranks; pairs of dependent rows take seconds.

    deminat matrix cells.parquet --out pairs

    deminat matrix cells.parquet --refine 20

    deminat matrix genes.csv --x 'gene_*' --y phenotype

    deminat matrix visits.csv --groups patient

    deminat matrix session.npz --unit 'v1_*' --unit 'm1_*'
    """
    from ..data import files
    from ..data.files.columns import find_names, format_names

    count = parse_refine(refine)
    with progress("pairs", resumable=True) as report_share:
        apart = row_column_names(groups, order)
        selected = files.read_columns(file, x, y, categorical=categorical, apart=apart)
        frame, xs, ys, left_out = selected
        if left_out:
            say(f"columns left out: {format_names(left_out)} ({_LEFT_OUT})")
        units = {chosen: find_names(frame.columns, chosen) for chosen in unit or ()}
        xs, ys = ([] if side is None else _with_units(side, units) for side in (xs, ys))
        row_groups, row_order = map(files.read_all, row_columns(file, None, groups, order))
        from ..matrix import pairwise  # late: imports torch

        out.mkdir(parents=True, exist_ok=True)
        result = pairwise(
            frame,
            xs,
            ys or None,
            units=units,
            refine=count,
            preset=preset,
            folds=folds,
            seed=seed,
            nan=nan.value,
            groups=row_groups,
            order=row_order,
            discrete=label_columns(file, discrete),
            max_rows=max_rows,
            most=most,
            store=out / "pairs.sqlite",
            n_jobs=jobs or -1,
            cluster=cluster,
            progress=report_share,
            say=say,
        )
    written = _write(result, out)
    if as_json:
        print_json(result.table.to_dicts())
    else:
        print_table([_line(row) for row in result.table.head(_SHOWN).to_dicts()])
        if len(result) > _SHOWN:
            say(f"the {_SHOWN} largest of {len(result):,} pairs; all are in {out / 'pairs.csv'}")
    _say_found(result, f"wrote {written} to {out}")


def _with_units(names: Sequence[str], units: Mapping[str, Sequence[str]]) -> list[str]:
    """Return names with each unit in the place of its first column."""
    unit_of = {column: unit for unit, columns in units.items() for column in columns}
    return list(dict.fromkeys(unit_of.get(name, name) for name in names))


def parse_refine(text: str) -> Any:
    """Return a number of pairs, or "all"."""
    if text == "all" or text.isdigit():
        return text if text == "all" else int(text)
    raise typer.BadParameter(f"--refine takes a number of pairs, or all; got {text}")


def _say_found(result: "PairwiseResult", written: str) -> None:
    """Explain warnings, print the number of dependent pairs; exit with 2 if all pairs failed."""
    codes = [set(codes.split()) for codes in result.table["warnings"]]
    for caution in result.warnings:
        count = sum(caution.code in own for own in codes)
        about = f" for {count} of {len(codes)} pairs, quoted from the first" if count else ""
        say(f"warning{about}: {caution}")
    failed = result.table["error"].filter(result.table["error"] != "")
    found, count = len(result.significant(_LEVEL)), len(result.table) - len(failed)
    if len(failed):
        say(f"error: {len(failed)} of {len(result.table)} pairs failed; the first: {failed[0]}")
    say(f"{found} of {count} pairs are dependent (q <= {_LEVEL:g}); {written}")
    if not count:
        raise typer.Exit(2)


def _line(row: dict[str, Any]) -> dict[str, Any]:
    """Return a pair as a line of the printed table."""
    numbers = {
        _HEADINGS.get(key, key): "" if row[key] is None else f"{row[key]:{form}}"
        for key, form in _FORMATS.items()
    }
    warnings = "not estimated" if row["error"] else row["warnings"]
    return {"x": row["x"], "y": row["y"], **numbers, "warnings": warnings}


def _write(result: "PairwiseResult", out: Path) -> str:
    """Write the table and, if matplotlib is installed, the figures; return their names."""
    from ..report.tables import save_table

    save_table(out / "pairs.parquet", result.table)
    save_table(out / "pairs.csv", result.table)
    if find_spec("matplotlib") is None:
        say("note: no figures, because matplotlib is missing: pip install matplotlib")
        return "pairs.parquet and pairs.csv"
    import numpy as np  # late: the help needs none

    from ..matrix import PairwiseResult
    from ..report.clustering import MOST_SHOWN, clustered, pairs_to_show
    from ..report.plots import save_heat_map, save_network

    some, names = pairs_to_show(result.table)
    lines, columns, nats = PairwiseResult(some).square()
    rows, others = clustered(lines, columns, nats)
    shown = [lines[i] for i in rows], [columns[j] for j in others]
    save_heat_map(out / "heat_map.png", shown, nats[np.ix_(rows, others)])
    strongest = result.significant(_LEVEL).head(_EDGES)
    edges = list(strongest.select("x", "y", "mi").iter_rows())
    names = list(dict.fromkeys([*shown[0], *shown[1], *names]))
    title = f"pairs with q <= {_LEVEL:g}, by their nats"
    if len(edges) == _EDGES:
        title = f"the {_EDGES} strongest {title}"
    save_network(out / "network.png", names, edges, title)
    if len(some) < len(result):
        say(f"heat_map.png shows the {MOST_SHOWN} columns with the largest values")
    return "pairs.parquet, pairs.csv, heat_map.png and network.png"
