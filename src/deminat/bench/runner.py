"""A bench is a list of cells, and each cell gives one row.

A cell is a plain dictionary of what it takes to run it, and its row carries the same keys, so
that a sweep can be cut short and taken up again from the rows on disk.
"""

import csv
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

__all__ = ["Bench", "Row", "mark", "run_bench"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Bench:
    """Something that must hold, with the runs that show it.

    Args:
        claim: What must hold.
        cells: The runs, one dictionary of numbers each, for the given seeds.
        run: Turns a cell into what was measured.
        verdict: Turns all rows into lines, each with its figure and whether it holds.
        runs: How many seeds to use unless told otherwise.
        jobs: How many processes to use unless told otherwise.
    """

    claim: str
    cells: Callable[[Sequence[int]], list[Row]]
    run: Callable[[Row], Row]
    verdict: Callable[[Sequence[Row]], list[str]]
    runs: int
    jobs: int = 2


def run_bench(bench: Bench, seeds: Sequence[int], out: Path | None, jobs: int) -> Iterator[Row]:
    """Yield the rows of a bench: first those that `out` holds, then new ones as they come.

    Args:
        bench: What to measure.
        seeds: A run for each.
        out: CSV file to read and append to.
        jobs: Processes to use.
    """
    cells = bench.cells(seeds)
    done = _known(out) if out else []
    for cell in cells:
        yield from (row for row in done if _is_of(row, cell))
    todo = [cell for cell in cells if not any(_is_of(row, cell) for row in done)]
    tasks = (delayed(_timed)(bench, cell) for cell in todo)
    for row in Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks):
        if out:
            _append(out, row)
        yield row


def mark(holds: bool) -> str:
    """Return the word that a line of a verdict begins with."""
    return "ok  " if holds else "MISS"


def _timed(bench: Bench, cell: Row) -> Row:
    start = time.perf_counter()
    measured = bench.run(cell)
    return {**cell, **measured, "seconds": round(time.perf_counter() - start, 2)}


def _is_of(row: Row, cell: Row) -> bool:
    return all(row.get(key) == value for key, value in cell.items())


def _known(out: Path) -> list[Row]:
    if not out.exists():
        return []
    with out.open(newline="") as file:
        return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]


def _append(out: Path, row: Row) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    fresh = not out.exists()
    with out.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        if fresh:
            writer.writeheader()
        writer.writerow(row)
        file.flush()
        os.fsync(file.fileno())
