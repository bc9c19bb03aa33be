"""All pairs of columns: is the fast tier right, are discoveries true, how long does it take?

- `error`: its estimates of single columns with known information, beside KSG on the same pairs;
- `null`: tables whose columns are permuted independently: in how many is any pair discovered?
- `time`: commands as a user runs them, in two processes: all pairs of 1,000 and 2,000 columns, a
  tenth of which share something, and what 20,000 columns would take by that; all pairs of the
  protein table by the default recipe; 120 columns of several types ranked by what they tell about
  one.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from ...data.sample import as_sample
from ...datasets import sachs
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
_TABLES = 14  # of permuted columns, for each seed
_MANY = 20_000  # columns that are forecast
_LEVEL = 0.05
_HOURS, _GIGABYTES = 4, 4  # of many columns
_SECONDS = {"1000-columns": 120, "2000-columns": 480, "proteins": 150, "rank": 5}
_RANKED, _RANKED_ROWS = 120, 3_000


def _cells(seeds: Sequence[int]) -> list[Cell]:
    """Return the cells of each kind; commands are timed once."""
    errors = [
        {"kind": "error", "task": task, "n": n, "seed": seed}
        for seed in seeds
        for n in _SIZES
        for task in _TASKS
    ]
    nulls = [
        {"kind": "null", "task": f"permuted-{table}", "n": _ROWS, "seed": seed}
        for seed in seeds
        for table in range(_TABLES)
    ]
    times = [{"kind": "time", "task": task, "n": _ROWS, "seed": seeds[0]} for task in _SECONDS]
    return [*errors, *nulls, *times]


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
        ksg = KSG().estimate_sample(as_sample(x, y)).result.mi
        seconds = middle - start, time.process_time() - middle
        found.append([abs(fast - truth), abs(ksg - truth), *seconds])
    error, of_ksg, own, other = np.mean(found, axis=0).tolist()
    return {"truth": truth, "error": error, "ksg": of_ksg, "own_cpu": own, "ksg_cpu": other}


def _discoveries(cell: Cell) -> Row:
    """Return how many of all pairs of independent columns are discovered."""
    rng = np.random.default_rng([cell["seed"], 1, *cell["task"].encode()])
    values = rng.permuted(np.tile(np.arange(cell["n"], dtype=float), (_COLUMNS, 1)), axis=1)
    frame = pl.DataFrame({f"c{i}": column for i, column in enumerate(values)})
    return {"found": len(pairwise(frame, discrete=False, seed=cell["seed"]).significant(_LEVEL))}


def _time(cell: Cell) -> Row:
    """Return the seconds of a command, and the memory of its largest process."""
    rng = np.random.default_rng([cell["seed"], 2])
    frame, words = _TIMED[cell["task"]](rng)
    with tempfile.TemporaryDirectory(prefix="deminat-") as folder:
        path = Path(folder) / "table.parquet"
        frame.write_parquet(path)
        command = [sys.executable, "-c", _MEASURED, *words]
        command[4:4] = [str(path), "--jobs", "2"]
        start = time.perf_counter()
        done = subprocess.run(command, check=True, cwd=folder, capture_output=True, text=True)
        whole = time.perf_counter() - start
    return {"whole": whole, "gigabytes": float(done.stderr.split()[-1]) / 2**20}


# Runs the command line, and writes the kilobytes of its largest process at the end.
_MEASURED = """
import resource, sys
from deminat.cli import main
try:
    main()
finally:
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    print(max(resource.getrusage(kind).ru_maxrss for kind in kinds), file=sys.stderr)
"""


def _table(columns: int, rng: np.random.Generator) -> tuple[pl.DataFrame, list[str]]:
    values = rng.normal(size=(columns, _ROWS))
    values[: columns // 10] += rng.normal(size=(10, _ROWS)).repeat(columns // 100, axis=0)
    return pl.DataFrame({f"c{i}": column for i, column in enumerate(values)}), ["matrix"]


def _proteins(rng: np.random.Generator) -> tuple[pl.DataFrame, list[str]]:
    shuffled = sachs().sample(fraction=1.0, shuffle=True, seed=int(rng.integers(1 << 31)))
    return shuffled, ["matrix", "--refine", "all"]


def _mixed_columns(rng: np.random.Generator) -> tuple[pl.DataFrame, list[str]]:
    """Return numbers, counts, text, dates and missing values, and a target."""
    n = _RANKED_ROWS
    columns: dict[str, pl.Series] = {"target": pl.Series(rng.normal(size=n))}
    for i in range(_RANKED):
        number = pl.Series(rng.normal(size=n) + (i % 7 == 0) * columns["target"].to_numpy())
        columns[f"c{i}"] = (
            number,
            (3 * number).round().cast(pl.Int64),
            number.cut([-1.0, 0.0, 1.0], labels=["low", "fair", "good", "high"]).cast(pl.String),
            (1_000 * number).cast(pl.Int32).cast(pl.Date),
            number.scatter(rng.choice(n, n // 10, replace=False), None),
        )[i % 5]
    return pl.DataFrame(columns), ["rank", "--y", "target"]


_TIMED: dict[str, Callable[[np.random.Generator], tuple[pl.DataFrame, list[str]]]] = {
    "1000-columns": lambda rng: _table(1_000, rng),
    "2000-columns": lambda rng: _table(2_000, rng),
    "proteins": _proteins,
    "rank": _mixed_columns,
}


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
        most = _SECONDS[row["task"]]
        lines.append(
            f"{mark(row['whole'] <= most)} {row['task']}: {row['whole']:.0f} s from command to "
            f"answer in two processes (at most {most}), {row['gigabytes']:.1f} GB"
        )
        if row["task"] == "2000-columns":
            hours = row["whole"] * (_MANY / 2_000) ** 2 / 3600
            lines.append(
                f"{mark(hours <= _HOURS)} {_MANY:,} columns: {hours:.1f} h (at most {_HOURS}), by "
                "those seconds"
            )
    return lines


BENCHES = {
    "pairs": Bench(
        "all pairs of a table are right, and take minutes", _cells, _run, _verdict, runs=3, jobs=1
    )
}
