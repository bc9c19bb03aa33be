"""All pairs of columns: is the fast tier right, are discoveries true, how long does it take?

- `error`: its estimates of single columns with known information, beside KSG on the same pairs;
- `null`: tables whose columns are permuted independently: in how many is any pair discovered?
- `time`: a table of 1,000 columns, a tenth of which share something, in two processes; and what
  20,000 columns would take by that.
"""

import time
from collections.abc import Sequence

import numpy as np
import polars as pl

from ...estimators.ksg import KSG
from ...inference.all_pairs import Column, tile
from ...matrix import pairwise
from ...runtime.rowstore import Cell, Row
from ...tasks import get
from .runner import Bench, grouped, mark

__all__ = ["BENCHES"]

_TASKS = "1v1-normal-0.75", "1v1-additive-0.1", "student-identity-1-1-1", "independent"
_SIZES = {1_000: 0.055, 10_000: 0.020}  # rows, and the mean error at most
_DRAWS = 10  # samples of a cell
_COLUMNS, _ROWS = 1_000, 1_000
_MANY = 20_000  # columns that are forecast
_LEVEL = 0.05
_SECONDS, _HOURS = 120, 4


def _cells(seeds: Sequence[int]) -> list[Cell]:
    """Return the cells of each kind; the table that is timed is one."""
    errors = [
        {"kind": "error", "task": task, "n": n, "seed": seed}
        for seed in seeds
        for n in _SIZES
        for task in _TASKS
    ]
    nulls = [{"kind": "null", "task": "permuted", "n": _ROWS, "seed": seed} for seed in seeds]
    return [*errors, *nulls, {"kind": "time", "task": "table", "n": _ROWS, "seed": seeds[0]}]


def _run(cell: Cell) -> Row:
    return {"error": _errors, "null": _discoveries, "time": _time}[cell["kind"]](cell)


def _errors(cell: Cell) -> Row:
    """Return mean errors of the fast tier and of KSG, and their seconds a pair."""
    rng = np.random.default_rng([cell["seed"], cell["n"], len(cell["task"])])
    task = None if cell["task"] == "independent" else get(cell["task"])
    truth = 0.0 if task is None else task.mi
    found: list[list[float]] = []
    for _ in range(_DRAWS):
        shape = 2, cell["n"], 1
        x, y = rng.normal(size=shape) if task is None else task.sample(cell["n"], rng)
        sides = [Column(name, a[:, 0]) for name, a in (("x", x), ("y", y))]
        start = time.process_time()
        fast = float(tile(sides[:1], sides[1:], np.zeros((1, 2), dtype=int), 0).mi[0])
        middle = time.process_time()
        ksg = KSG().fit(x, y).estimate(x, y).mi
        seconds = middle - start, time.process_time() - middle
        found.append([abs(fast - truth), abs(ksg - truth), *seconds])
    error, of_ksg, own, other = np.mean(found, axis=0).tolist()
    return {"truth": truth, "error": error, "ksg": of_ksg, "own_cpu": own, "ksg_cpu": other}


def _discoveries(cell: Cell) -> Row:
    """Return how many of all pairs of independent columns are discovered."""
    rng = np.random.default_rng([cell["seed"], 1])
    values = rng.permuted(np.tile(np.arange(cell["n"], dtype=float), (_COLUMNS, 1)), axis=1)
    frame = pl.DataFrame({f"c{i}": column for i, column in enumerate(values)})
    return {"found": len(pairwise(frame, discrete=False, seed=cell["seed"]).significant(_LEVEL))}


def _time(cell: Cell) -> Row:
    rng = np.random.default_rng([cell["seed"], 2])
    values = rng.normal(size=(_COLUMNS, cell["n"]))
    values[: _COLUMNS // 10] += rng.normal(size=(10, cell["n"])).repeat(_COLUMNS // 100, axis=0)
    frame = pl.DataFrame({f"c{i}": column for i, column in enumerate(values)})
    start = time.perf_counter()
    found = len(pairwise(frame, n_jobs=2).significant(_LEVEL))
    return {"found": found, "whole": time.perf_counter() - start}


def _verdict(rows: Sequence[Row]) -> list[str]:
    of_kind = {kind: own for (kind,), own in grouped(rows, "kind").items()}
    lines = []
    for (n,), own in grouped(of_kind.get("error", ()), "n").items():
        error, ksg, cpu, ksg_cpu = (
            float(np.mean([r[key] for r in own])) for key in ("error", "ksg", "own_cpu", "ksg_cpu")
        )
        lines.append(
            f"{mark(error <= _SIZES[n])} mean error at n={n}: {error:.4f} nats (at most "
            f"{_SIZES[n]}) in {1e3 * cpu:.2f} ms a pair; KSG {ksg:.4f} in {1e3 * ksg_cpu:.1f} ms, "
            f"{len(own) * _DRAWS} pairs"
        )
    if nulls := of_kind.get("null"):
        any_found = float(np.mean([r["found"] > 0 for r in nulls]))
        lines.append(
            f"{mark(any_found <= _LEVEL)} false discoveries: {any_found:.1%} of {len(nulls)} "
            f"tables of {_COLUMNS} permuted columns have any (at most {_LEVEL:.0%})"
        )
    for row in of_kind.get("time", ()):
        hours = row["whole"] * (_MANY / _COLUMNS) ** 2 / 3600
        lines.append(
            f"{mark(row['whole'] <= _SECONDS)} {_COLUMNS} columns x {row['n']} rows: "
            f"{row['whole']:.0f} s in two processes (at most {_SECONDS})"
        )
        lines.append(f"{mark(hours <= _HOURS)} {_MANY} columns: {hours:.1f} h (at most {_HOURS})")
    return lines


BENCHES = {
    "pairs": Bench(
        "all pairs of a table are right, and take minutes", _cells, _run, _verdict, runs=3, jobs=1
    )
}
