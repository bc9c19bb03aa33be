r"""Is the default recipe right? `deminat.estimate(x, y)` against tasks that know the answer.

- `bmi`: the forty tasks of the "Beyond Normal" benchmark, at the sizes of its published tables,
  by the default recipe and by the paper's.
- `highmi`: up to 80 nats, in families. Gaussians and cubes are those of the paper, and `tre` the
  series of telescoping ratios; `offgaussian` has heavy tails, bent spaces and mixtures, with .25
  to 2 nats a column; `mixing` hides cubes behind a rotation; `independent` has nothing to find.

Every row has the truth, and the mean of the task's own log ratio on the same pairs: `oracle` is
what a perfect critic would have said, and its distance from the truth is that of the sample.
The bars are those of the default recipe. Whatever may be missed, nothing may be invented: no
estimate may exceed the truth by more than 5% and 3 standard errors.

References:
    Czyz et al. (2023), Beyond Normal: On the evaluation of mutual information estimators.
    Rhodes et al. (2020), Telescoping density-ratio estimation.
"""

import time
import zlib
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np

from ...api import estimate
from ...report.plots import save_errors, save_shares
from ...runtime.rowstore import Cell, Row
from ...tasks import get, names
from .runner import Bench, mark

__all__ = ["KNOWN_TASKS"]

Group = tuple[Any, ...]

_BMI_BARS = {1_000: 0.070, 5_000: 0.030, 10_000: 0.022}  # mean absolute error in nats, by n
_WORST_TASK, _SECONDS, _FULL = 0.10, 20.0, 10_000  # of a task, at the largest n

# How far a mean over seeds may be from the truth: a share of it, or nats, whichever is more.
_ALLOWED = {
    "gaussian": (0.03, 0.1),
    "cubic": (0.03, 0.1),
    "tre": (0.03, 0.0),
    "offgaussian": (0.10, 0.0),
    "mixing": (0.15, 0.0),
    "independent": (0.0, 0.02),
}
# Columns a side and nats; of a mixture, nats within a component.
_PAPER = [*product((20, 50, 100), (2, 5, 10, 20, 40)), (100, 80)]
_TRE = [(20, 10), (40, 20), (80, 40), (160, 80)]
_MIXING = [*product((5, 10, 20), (2, 5, 10))]
_NOTHING = [(1, 0), (10, 0), (50, 0)]
_EVEN = [(10, 10), (20, 20), (40, 30)]
_UNEVEN = [(10, 20), (20, 30), (40, 10)]
_OFF_GAUSSIAN = {
    "student-{}d-{}nats-dof3": _EVEN,
    "student-{}d-{}nats-dof5": _UNEVEN,
    "spiral-{}d-{}nats": _EVEN,
    "mixture-{}d-{}nats-a-component": _UNEVEN,
}


def _bmi_cells(seeds: Sequence[int]) -> list[Cell]:
    # Seeds vary slowest within a preset, so that a sweep cut short has whole runs.
    return [
        {"task": task, "n": n, "seed": seed, "preset": preset}
        for preset in ("auto", "paper")
        for seed in seeds
        for n in _BMI_BARS
        for task in names()
    ]


def _highmi_cells(seeds: Sequence[int]) -> list[Cell]:
    return [
        {"family": family, "task": task, "n": n, "seed": seed, "preset": "auto"}
        for seed in seeds
        for family, task, n in _families()
    ]


def _families() -> list[tuple[str, str, int]]:
    """Return family, task and size of every cell of `highmi`."""
    cells = [(kind, f"{kind}-{{}}d-{{}}nats", 32_000, _PAPER) for kind in ("gaussian", "cubic")]
    cells += [("tre", "gaussian-{}d-{}nats", 100_000, _TRE)]
    cells += [("offgaussian", form, 32_000, shapes) for form, shapes in _OFF_GAUSSIAN.items()]
    cells += [("mixing", "rotated-cubic-{}d-{}nats", n, _MIXING) for n in (10_000, 32_000)]
    cells += [("independent", "gaussian-{}d-{}nats", n, _NOTHING) for n in (1_000, 10_000)]
    return [
        (family, form.format(*shape), n) for family, form, n, shapes in cells for shape in shapes
    ]


def _run(cell: Cell) -> Row:
    """Return the estimate, the truth, what the oracle says, and the seconds of the estimate."""
    task = get(cell["task"])
    entropy = [cell["seed"], cell["n"], zlib.crc32(task.name.encode())]
    x, y = task.sample(cell["n"], np.random.default_rng(entropy))
    start = time.perf_counter()
    result = estimate(x, y, preset=cell["preset"], seed=cell["seed"], n_jobs=1)
    seconds = time.perf_counter() - start
    return {
        "estimate": result.mi,
        "standard_error": result.standard_error,
        "truth": task.mi,
        "oracle": float(task.log_ratio(x, y).mean()),
        "seconds": seconds,
    }


def _bmi_verdict(rows: Sequence[Row]) -> list[str]:
    auto, paper = ([r for r in rows if r["preset"] == preset] for preset in ("auto", "paper"))
    full = [r for r in auto if r["n"] == _FULL]
    return [
        *_mean_errors(auto, _BMI_BARS),
        *_worst_task(full),
        *_mean_seconds(full),
        *_overshoot(auto),
        *_mean_errors(paper, {}),
    ]


def _mean_errors(rows: Sequence[Row], bars: dict[int, float]) -> list[str]:
    """Return a line for each n there is, marked where there is a bar."""
    lines = []
    for (preset, n), group in _grouped(rows, "preset", "n").items():
        mean = float(np.mean([abs(_error(r)) for r in group]))
        task, off = _farthest(group)
        lines.append(
            f"{mark(mean <= bars[n]) if n in bars else '    '} {preset}, n={n}: mean absolute "
            f"error {mean:.4f} nats{f' (at most {bars[n]:.3f})' if n in bars else ''}, worst "
            f"{task} by {off:+.4f}, {len(group)} rows"
        )
    return lines


def _worst_task(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    task, off = _farthest(rows)
    return [
        f"{mark(abs(off) <= _WORST_TASK)} worst task at n={_FULL}: {task}, off by {off:+.4f} nats "
        f"(at most {_WORST_TASK:.2f}), {len(rows)} rows"
    ]


def _mean_seconds(rows: Sequence[Row]) -> list[str]:
    """Return the time a task, where some are run at once their share of it: one core does each."""
    if not rows:
        return []
    mean = float(np.mean([r["seconds"] / r["jobs"] for r in rows]))
    slowest = max(rows, key=lambda r: r["seconds"] / r["jobs"])
    return [
        f"{mark(mean <= _SECONDS)} mean time of a task at n={_FULL}: {mean:.1f} s (at most "
        f"{_SECONDS:.0f}), slowest {slowest['task']} {slowest['seconds'] / slowest['jobs']:.1f} s; "
        f"{slowest['jobs']} at once, one core each, {len(rows)} rows"
    ]


def _highmi_verdict(rows: Sequence[Row]) -> list[str]:
    families = _grouped(rows, "family")
    lines = [_family(f, families[f,]) for f in _ALLOWED if (f,) in families]
    return lines + _overshoot(rows)


def _family(family: str, rows: Sequence[Row]) -> str:
    share, nats = _ALLOWED[family]
    cells = _grouped(rows, "task", "n", "truth")
    means = {key: float(np.mean([r["estimate"] for r in cell])) for key, cell in cells.items()}
    # How much of what is allowed is used up: the worst cell uses the most.
    used = {key: abs(mean - key[2]) / max(share * key[2], nats) for key, mean in means.items()}
    worst = max(used, key=lambda key: used[key])
    task, n, truth = worst
    return (
        f"{mark(used[worst] <= 1)} {family}: worst {task} at n={n}, {means[worst]:.3f} for "
        f"{truth:.3f} nats (at most {max(share * truth, nats):.3f} off), "
        f"{sum(u <= 1 for u in used.values())} of {len(used)} cells hold, {len(rows)} rows"
    )


def _overshoot(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    above = [_error(r) - 0.05 * r["truth"] - 3 * r["standard_error"] for r in rows]
    worst = rows[int(np.argmax(above))]
    return [
        f"{mark(max(above) <= 0)} overshoot: highest {worst['task']} at n={worst['n']}, seed "
        f"{worst['seed']}, {worst['estimate']:.3f} for {worst['truth']:.3f} nats (at most 5% and "
        f"3 s.e. above), {sum(a > 0 for a in above)} of {len(rows)} rows above"
    ]


def _error(row: Row) -> float:
    return float(row["estimate"] - row["truth"])


def _farthest(rows: Iterable[Row]) -> tuple[str, float]:
    """Return the task whose error, averaged over its rows, is the largest, and that error."""
    tasks = {task: np.mean([_error(r) for r in g]) for (task,), g in _grouped(rows, "task").items()}
    worst = max(tasks, key=lambda task: abs(tasks[task]))
    return worst, float(tasks[worst])


def _grouped(rows: Iterable[Row], *keys: str) -> dict[Group, list[Row]]:
    groups: dict[Group, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


KNOWN_TASKS = {
    "bmi": Bench(
        "the default recipe is accurate on the forty tasks of the BMI benchmark",
        _bmi_cells,
        _run,
        _bmi_verdict,
        runs=3,
        figure=save_errors,
    ),
    "highmi": Bench(
        "the default recipe holds up to 80 nats and away from Gaussians, and invents nothing",
        _highmi_cells,
        _run,
        _highmi_verdict,
        runs=2,
        figure=save_shares,
    ),
}
