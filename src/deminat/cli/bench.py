"""`deminat bench`."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import DataError, printable
from .app import app
from .console import progress, say, table
from .options import Cluster, Json

if TYPE_CHECKING:
    from ..runtime.rowstore import Row
    from ..studies.bench.runner import Bench

__all__ = ["bench"]


@app.command()
def bench(
    name: Annotated[
        str,
        typer.Argument(
            help="speed, cells, waiting, gaussian, cap, alpha, independent, bmi, highmi, mixed, "
            "conditional, trust, infomax."
        ),
    ],
    runs: Annotated[int | None, typer.Option(min=1, help="Number of seeds or rounds.")] = None,
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Keep cells that match: n=10000, task='spiral*'. Repeatable."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="CSV of rows; goes on after those in it.")] = (
        None
    ),
    figure: Annotated[Path | None, typer.Option(help="Draw the rows of bmi or highmi.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes to use.")] = None,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:
    """Measure speed or accuracy, with a verdict on what is claimed of it.

    deminat bench bmi --runs 1 --only preset=auto --only n=10000 --out bmi.csv --figure bmi.png
    """
    from ..studies.bench import BENCHES, run_bench, with_filter

    if name not in BENCHES:
        raise DataError(f"no bench {printable(name)}; there are {', '.join(BENCHES)}")
    chosen = with_filter(BENCHES[name], only or [])
    draw = _drawing(name, chosen) if figure else None
    seeds = range(first, first + (runs or chosen.runs))
    cells = chosen.cells(seeds)  # which refuses what cannot be
    say(f"claim: {chosen.claim} ({len(cells)} cells)")
    with progress(name, kept=out is not None) as report_share:
        how = {"cluster": cluster, "progress": report_share}
        rows = run_bench(chosen, seeds, out, jobs=jobs or chosen.jobs, **how)
    table(rows, as_json)
    for line in chosen.verdict(rows):
        say(line)
    if draw and figure:
        draw(figure, rows)


def _drawing(name: str, bench: "Bench") -> Callable[[Path, Sequence["Row"]], None]:
    """Return what draws a bench, or say at once, not after hours, that nothing will."""
    if bench.figure is None:
        raise DataError(f"there is no figure of {name}; leave --figure out")
    if find_spec("matplotlib") is None:
        raise DataError("a figure needs matplotlib: pip install matplotlib")
    return bench.figure
