r"""Is the default recipe right? `deminat.estimate(x, y)` on tasks of known information.

- `bmi`: the forty tasks of the "Beyond Normal" benchmark, at the sizes of its published tables,
  by the default recipe and by the paper's.
- `highmi`: up to 80 nats, in families. Gaussians and cubes are those of the paper, and `tre` the
  series of telescoping ratios; `offgaussian` has heavy tails, spirals and mixtures, with .25 to 2
  nats a column; `mixing` rotates cubes; `independent` has no information.

Every row has the truth, and the mean of the true log ratio on the same pairs: `oracle` is the
estimate of a perfect critic, and its error is the sampling noise. Limits are those of the default
recipe. No estimate may exceed the truth by more than 5% and 3 standard errors.

References:
    Czyz et al. (2023), Beyond Normal: On the evaluation of mutual information estimators.
    Rhodes et al. (2020), Telescoping density-ratio estimation.
"""

import time
import zlib
from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np

from ...api import estimate
from ...report.plots import save_errors, save_shares
from ...runtime.rowstore import Cell, Row
from ...tasks import get, names
from .runner import Bench, grouped, mark, measured

__all__ = ["BENCHES"]

_BMI_LIMITS = {1_000: 0.070, 5_000: 0.030, 10_000: 0.022}  # mean absolute error in nats, by n
_WORST_TASK, _SECONDS, _LARGEST = 0.10, 20.0, 10_000  # of a task, at the largest n

# Largest error of a mean over seeds: a share of the truth, or nats, whichever is more.
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
_INDEPENDENT = [(1, 0), (10, 0), (50, 0)]
_EVEN = [(10, 10), (20, 20), (40, 30)]
_UNEVEN = [(10, 20), (20, 30), (40, 10)]
_OFF_GAUSSIAN = {
    "student-{}d-{}nats-dof3": _EVEN,
    "student-{}d-{}nats-dof5": _UNEVEN,
    "spiral-{}d-{}nats": _EVEN,
    "mixture-{}d-{}nats-a-component": _UNEVEN,
}


def _bmi_cells(seeds: Sequence[int]) -> list[Cell]:
    # Seeds vary slowest within a preset, so that an interrupted bench has complete runs.
    return [
        {"task": task, "n": n, "seed": seed, "preset": preset}
        for preset in ("auto", "paper")
        for seed in seeds
        for n in _BMI_LIMITS
        for task in names()
    ]


def _highmi_cells(seeds: Sequence[int]) -> list[Cell]:
    tasks = [(kind, f"{kind}-{{}}d-{{}}nats", 32_000, _PAPER) for kind in ("gaussian", "cubic")]
    tasks += [("tre", "gaussian-{}d-{}nats", 100_000, _TRE)]
    tasks += [("offgaussian", form, 32_000, shapes) for form, shapes in _OFF_GAUSSIAN.items()]
    tasks += [("mixing", "rotated-cubic-{}d-{}nats", n, _MIXING) for n in (10_000, 32_000)]
    tasks += [("independent", "gaussian-{}d-{}nats", n, _INDEPENDENT) for n in (1_000, 10_000)]
    return [
        {"family": family, "task": form.format(*shape), "n": n, "seed": seed, "preset": "auto"}
        for seed in seeds
        for family, form, n, shapes in tasks
        for shape in shapes
    ]


def _run(cell: Cell) -> Row:
    """Return the estimate, the truth, the estimate of the oracle, and the seconds it took."""
    task = get(cell["task"])
    entropy = [cell["seed"], cell["n"], zlib.crc32(task.name.encode())]
    x, y = task.sample(cell["n"], np.random.default_rng(entropy))
    start = time.perf_counter()
    result = estimate(x, y, preset=cell["preset"], seed=cell["seed"], n_jobs=1)
    seconds, oracle = time.perf_counter() - start, float(task.log_ratio(x, y).mean())
    return {**measured(result), "truth": task.mi, "oracle": oracle, "seconds": seconds}


def _bmi_verdict(rows: Sequence[Row]) -> list[str]:
    auto, paper = ([r for r in rows if r["preset"] == preset] for preset in ("auto", "paper"))
    largest = [r for r in auto if r["n"] == _LARGEST]
    lines = _mean_errors(auto, _BMI_LIMITS)
    if largest:
        task, error = _worst(largest)
        lines += [
            f"{mark(abs(error) <= _WORST_TASK)} worst task at n={_LARGEST}: {task}, off by "
            f"{error:+.4f} nats (at most {_WORST_TASK:.2f}), {len(largest)} rows",
            _mean_seconds(largest),
        ]
    if auto:
        lines.append(_overshoot(auto))
    return lines + _mean_errors(paper, {})


def _mean_errors(rows: Sequence[Row], limits: dict[int, float]) -> list[str]:
    """Return a line for each n, with a mark where there is a limit."""
    lines = []
    for (preset, n), group in grouped(rows, "preset", "n").items():
        mean = float(np.mean([abs(r["estimate"] - r["truth"]) for r in group]))
        task, error = _worst(group)
        limit = f" (at most {limits[n]:.3f})" if n in limits else ""
        lines.append(
            f"{mark(mean <= limits[n]) if limit else '    '} {preset}, n={n}: mean absolute error "
            f"{mean:.4f} nats{limit}, worst {task} by {error:+.4f}, {len(group)} rows"
        )
    return lines


def _mean_seconds(rows: Sequence[Row]) -> str:
    """Return the mean time of a task, divided by the number of tasks that ran at once."""
    seconds = [r["seconds"] / r["jobs"] for r in rows]
    mean, most, slowest = np.mean(seconds), max(seconds), rows[int(np.argmax(seconds))]
    return (
        f"{mark(mean <= _SECONDS)} mean time of a task at n={_LARGEST}: {mean:.1f} s (at most "
        f"{_SECONDS:.0f}), slowest {slowest['task']} {most:.1f} s; {slowest['jobs']} at once, one "
        f"core each, {len(rows)} rows"
    )


def _highmi_verdict(rows: Sequence[Row]) -> list[str]:
    families = grouped(rows, "family")
    lines = [_family(f, families[f,]) for f in _ALLOWED if (f,) in families]
    return [*lines, _overshoot(rows)]


def _family(family: str, rows: Sequence[Row]) -> str:
    share, nats = _ALLOWED[family]
    cells = grouped(rows, "task", "n", "truth")
    means = {key: float(np.mean([r["estimate"] for r in cell])) for key, cell in cells.items()}
    # Errors relative to the largest that is allowed.
    errors = {key: abs(mean - key[2]) / max(share * key[2], nats) for key, mean in means.items()}
    worst = max(errors, key=lambda key: errors[key])
    task, n, truth = worst
    return (
        f"{mark(errors[worst] <= 1)} {family}: worst {task} at n={n}, {means[worst]:.3f} for "
        f"{truth:.3f} nats (at most {max(share * truth, nats):.3f} off), "
        f"{sum(e <= 1 for e in errors.values())} of {len(errors)} cells hold, {len(rows)} rows"
    )


def _overshoot(rows: Sequence[Row]) -> str:
    above = [r["estimate"] - r["truth"] - 0.05 * r["truth"] - 3 * r["standard_error"] for r in rows]
    worst = rows[int(np.argmax(above))]
    return (
        f"{mark(max(above) <= 0)} overshoot: highest {worst['task']} at n={worst['n']}, seed "
        f"{worst['seed']}, {worst['estimate']:.3f} for {worst['truth']:.3f} nats (at most 5% and "
        f"3 s.e. above), {sum(a > 0 for a in above)} of {len(rows)} rows above"
    )


def _worst(rows: Iterable[Row]) -> tuple[str, float]:
    """Return the task whose error, averaged over its rows, is the largest, and that error."""
    tasks = grouped(rows, "task").items()
    errors = {t: float(np.mean([r["estimate"] - r["truth"] for r in own])) for (t,), own in tasks}
    return max(errors.items(), key=lambda item: abs(item[1]))


BENCHES = {
    "bmi": Bench(
        "the default recipe is accurate on the forty tasks of the BMI benchmark",
        _bmi_cells,
        _run,
        _bmi_verdict,
        runs=3,
        figure=save_errors,
    ),
    "highmi": Bench(
        "the default recipe holds up to 80 nats and for non-Gaussian data, without overestimates",
        _highmi_cells,
        _run,
        _highmi_verdict,
        runs=2,
        figure=save_shares,
    ),
}
