"""`deminat bench`: measure the speed and accuracy that the project claims."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ..errors import DataError, printable
from .app import app
from .console import print_json, print_table, progress, say
from .inputs import check_installed
from .options import Cluster, Json

__all__ = ["bench"]


@app.command()
def bench(
    name: Annotated[
        str,
        Argument(
            help="Benchmark: speed, cells, waiting, gaussian, cap, alpha, independent, bmi, "
            "highmi, mixed, conditional, wild, plasmode, trust, power, given, pairs, selection or "
            "infomax.",
        ),
    ],
    runs: Annotated[
        int | None, Option(min=1, help="Number of seeds or rounds (default: the benchmark's).")
    ] = None,
    first: Annotated[int, Option(help="First seed.")] = 0,
    only: Annotated[
        list[str] | None,
        Option(help="Run only cells that match, such as n=10000, task='spiral*'. Repeatable."),
    ] = None,
    out: Annotated[
        Path | None, Option(help="CSV file of results. Cells in it are not run again.")
    ] = None,
    figure: Annotated[Path | None, Option(help="Draw bmi or highmi to this file.")] = None,
    jobs: Annotated[
        int | None, Option(min=1, help="Number of processes (default: the benchmark's).")
    ] = None,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:
    """Measure speed or accuracy and compare with what is claimed.

    deminat bench bmi --runs 1 --only preset=auto --only n=10000 --out bmi.csv --figure bmi.png
    """
    from ..studies.bench import BENCHES, run_bench, with_filter

    if name not in BENCHES:
        raise DataError(f"no benchmark {printable(name)}; there are {', '.join(BENCHES)}")
    chosen = with_filter(BENCHES[name], only or [])
    if figure and chosen.figure is None:
        raise DataError(f"there is no figure of {name}; leave out --figure")
    if figure:
        check_installed("matplotlib", "a figure")
    seeds = range(first, first + (runs or chosen.runs))
    cells = chosen.cells(seeds)  # raises if --only matches nothing
    say(f"claim: {chosen.claim} ({len(cells)} cells)")
    with progress(name, resumable=out is not None) as share:
        jobs = jobs or chosen.jobs
        rows = run_bench(chosen, seeds, out, jobs=jobs, cluster=cluster, progress=share)
    (print_json if as_json else print_table)(rows)
    for line in chosen.verdict(rows):
        say(line)
    if figure and chosen.figure:
        chosen.figure(figure, rows)
