"""A bench is a sweep whose every cell gives one row, and a verdict on the rows.

A cell is a plain dictionary of what it takes to run it, and its row carries the same keys, so
that rows can be kept in a CSV file to read, and a sweep goes on after those that are in it. Values
are numbers or text.
"""

import csv
import io
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ...runtime.atomic import exclusive, write_atomically
from ...runtime.rowstore import Cell, Row
from ...runtime.sweep import Sweep, filter_cells, run_sweep

__all__ = ["Bench", "mark", "run_bench", "with_filter"]


@dataclass(frozen=True)
class Bench:
    """Something that must hold, with the runs that show it.

    Args:
        claim: What must hold.
        cells: The runs, one dictionary of numbers and names each, for the given seeds.
        run: Turns a cell into what was measured; the runner adds `seconds` unless it is there, and
            `jobs`, how many cells were run at once.
        verdict: Turns all rows into lines, each with its figure and whether it holds.
        runs: How many seeds to use unless told otherwise.
        jobs: How many processes to use unless told otherwise.
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
    bench: Bench, seeds: Sequence[int], out: Path | None, *, jobs: int, **how: Any
) -> list[Row]:
    """Run what is missing of a bench and return its rows, in the order of its cells.

    Args:
        bench: What to measure.
        seeds: A run for each.
        out: CSV file to go on after.
        jobs: Processes to use.
        **how: As of `run_sweep`.
    """
    sweep = Sweep(bench.cells(seeds), partial(_timed, bench.run, jobs))
    with exclusive(out) if out else nullcontext():
        return run_sweep(sweep, _Table(out), jobs=jobs, **how)


def with_filter(bench: Bench, only: Sequence[str]) -> Bench:
    """Return the bench with those cells alone that match.

    Args:
        bench: What to narrow.
        only: As of `filter_cells`.
    """
    return replace(bench, cells=lambda seeds: filter_cells(bench.cells(seeds), only))


def mark(holds: bool) -> str:
    """Return the word that a line of a verdict begins with."""
    return "ok  " if holds else "MISS"


def _timed(run: Callable[[Cell], Row], jobs: int, cell: Cell) -> list[Row]:
    start = time.perf_counter()
    row = {**cell, **run(cell)}
    row.setdefault("seconds", time.perf_counter() - start)
    return [{**row, "seconds": round(row["seconds"], 2), "jobs": jobs}]


class _Table:
    """Rows in a CSV file, which is replaced by a longer one with each row; `None` keeps none.

    A file that a kill would leave with half a row is no place to go on from.
    """

    def __init__(self, path: Path | None):
        self.path = path
        self.table = _read(path) if path and path.exists() else []

    def missing(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells that have no row."""
        return [cell for cell in cells if not self.rows([cell])]

    def add(self, cell: Cell, rows: Sequence[Row]) -> None:
        """Put rows at the end."""
        self.table += rows
        if self.path:
            write_atomically(self.path, lambda draft: draft.write_text(_text(self.table), "utf-8"))

    def rows(self, cells: Sequence[Cell]) -> list[Row]:
        """Return the rows of some cells, in their order."""
        return [row for cell in cells for row in self.table if cell.items() <= row.items()]


def _read(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {key: _value(text) for key, text in row.items() if text} for row in csv.DictReader(file)
        ]


def _value(text: str) -> int | float | str:
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text


def _text(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
