"""A bench: a sweep whose every cell gives one row, and a verdict on the rows.

A row has the keys and values of its cell, numbers or text. So rows can be stored in a CSV file that
people read, and a bench continues after the rows that are in it.
"""

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ...results import MIResult
from ...runtime.progress import Progress
from ...runtime.rowstore import Cell, Row, SqliteStore
from ...runtime.sweep import Sweep, filter_cells, run_sweep

__all__ = ["Bench", "grouped", "mark", "measured", "medians", "run_bench", "with_filter"]


@dataclass(frozen=True)
class Bench:
    """A claim, with the runs that test it.

    Args:
        claim: What must hold.
        cells: Returns the runs for the given seeds.
        run: Turns a cell into measurements. The runner adds `seconds` unless the run returns it,
            and `jobs`, the number of processes.
        verdict: Turns all rows into lines, each with its figure and whether it holds.
        runs: Number of seeds by default.
        jobs: Number of processes by default.
        figure: Draws all rows into a file.
    """

    claim: str
    cells: Callable[[Sequence[int]], list[Cell]]
    run: Callable[[Cell], Row]
    verdict: Callable[[Sequence[Row]], list[str]]
    runs: int
    jobs: int = 2
    figure: Callable[[Path, Sequence[Row]], None] | None = None


def run_bench(
    bench: Bench,
    seeds: Sequence[int],
    out: Path | None,
    *,
    jobs: int,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Run the missing cells of a bench and return its rows, in the order of its cells.

    Args:
        bench: What to measure.
        seeds: One run for each.
        out: CSV file to continue; `None` stores no rows.
        jobs: Processes to use.
        cluster: As of `run_sweep`.
        progress: As of `run_sweep`.
    """
    sweep = Sweep(bench.cells(seeds), partial(_timed, bench.run, jobs))
    opened = SqliteStore.in_csv(out, sweep.cells) if out else SqliteStore.in_memory()
    with opened as store:
        return run_sweep(sweep, store, jobs=jobs, cluster=cluster, progress=progress)


def with_filter(bench: Bench, only: Sequence[str]) -> Bench:
    """Return the bench with the cells that `filter_cells` selects."""
    return replace(bench, cells=lambda seeds: filter_cells(bench.cells(seeds), only))


def measured(result: MIResult) -> Row:
    """Return an estimate and its standard error as a row."""
    return {"estimate": result.mi, "standard_error": result.standard_error}


def grouped(rows: Iterable[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows by the values of some keys, in the order in which they first appear."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def medians(rows: Sequence[Row], *keys: str) -> list[float]:
    """Return the median over rows of each key."""
    return [statistics.median(row[key] for row in rows) for key in keys]


def mark(holds: bool) -> str:
    """Return the word that a line of a verdict begins with."""
    return "ok  " if holds else "MISS"


def _timed(run: Callable[[Cell], Row], jobs: int, cell: Cell) -> list[Row]:
    start = time.perf_counter()
    row = {**cell, **run(cell)}
    row.setdefault("seconds", time.perf_counter() - start)
    return [{**row, "seconds": round(row["seconds"], 2), "jobs": jobs}]
