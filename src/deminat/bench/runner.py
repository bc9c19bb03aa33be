"""A bench is a list of cells, and each cell gives one row.

A cell is a plain dictionary of what it takes to run it, and its row carries the same keys, so
that a sweep can be cut short and taken up again from the rows on disk. Values are numbers or text.
"""

import csv
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from ..experiments.sweep import matching

__all__ = ["Bench", "Row", "mark", "narrowed", "run_bench"]

Row = dict[str, Any]


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
    cells: Callable[[Sequence[int]], list[Row]]
    run: Callable[[Row], Row]
    verdict: Callable[[Sequence[Row]], list[str]]
    runs: int
    jobs: int = 2
    figure: Callable[[Path, Sequence[Row]], None] | None = None


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
    tasks = (delayed(_timed)(bench.run, cell, jobs) for cell in todo)
    for row in Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks):
        if out:
            _append(out, row)
        yield row


def narrowed(bench: Bench, only: Sequence[str]) -> Bench:
    """Return the bench with those cells alone that match.

    Args:
        bench: What to narrow.
        only: As of `matching`.
    """
    return replace(bench, cells=lambda seeds: matching(bench.cells(seeds), only))


def mark(holds: bool) -> str:
    """Return the word that a line of a verdict begins with."""
    return "ok  " if holds else "MISS"


def _timed(run: Callable[[Row], Row], cell: Row, jobs: int) -> Row:
    start = time.perf_counter()
    row = {**cell, **run(cell)}
    row.setdefault("seconds", time.perf_counter() - start)
    return {**row, "seconds": round(row["seconds"], 2), "jobs": jobs}


def _is_of(row: Row, cell: Row) -> bool:
    return all(row.get(key) == value for key, value in cell.items())


def _known(out: Path) -> list[Row]:
    return [{key: _value(text) for key, text in row.items() if text} for row in _texts(out)]


def _texts(out: Path) -> list[dict[str, str]]:
    if not out.exists():
        return []
    with out.open(newline="") as file:
        return list(csv.DictReader(file))


def _value(text: str) -> int | float | str:
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text


def _append(out: Path, row: Row) -> None:
    before = _texts(out)
    columns = list(dict.fromkeys([*(before[0] if before else ()), *row]))
    if not before or len(columns) > len(before[0]):
        _write_anew(out, columns, before)
    with out.open("a", newline="") as file:
        csv.DictWriter(file, columns).writerow(row)
        file.flush()
        os.fsync(file.fileno())


def _write_anew(out: Path, columns: list[str], rows: list[dict[str, str]]) -> None:
    """Write a header, maybe a wider one than there was, and the rows; all or nothing."""
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = out.with_name(f"{out.name}.new")
    with draft.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    draft.replace(out)
