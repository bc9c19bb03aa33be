"""Gaussians of the paper, section 3.1 and appendix C: error of every method by true information.

x and y are jointly Gaussian, correlated column by column; `cubic` cubes the columns of y. A critic
is trained on n pairs and evaluated on 10,240 held-out ones. The paper does not print its grid of
true values; this one is ours.

One training by cross-entropy serves DEMI(1/2), CCMI and SMILE; DEMI at other alphas, MINE, InfoNCE
and the flows are trained separately. SMILE's authors train it on all pairs of a batch, as DV and
InfoNCE: `smile(all pairs)`.

Estimates of DEMI and the flows need no unpaired samples; trainings on all pairs have 63 for each
pair, as many as in training, and the others have one.

Not in the paper are `auto`, the default recipe cross-fitted on the training pairs, the Gaussian
plug-in on the same pairs, nearest neighbours on the held-out pairs (on 160,000 pairs of 40 columns
they would take hours), and MINE with a moving average over some 1,000 steps instead of 100, with
which a long training diverges.

All pairs of a batch are 64 x 64 a step, tens of times as many as the others have:
`precision="bfloat16"` lets torch multiply in bfloat16 where processors can. Rows then say so.

References:
    Liao et al. (2020), section 3.1 and appendix C.
"""

import math
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...api import estimate
from ...estimators.flows import GM
from ...estimators.neural import Estimator
from ...estimators.registry import estimator_for
from ...objectives import CCMI, DEMI, DV, MINE, SMILE, InfoNCE, Objective
from ...results import MIResult
from ...runtime.rowstore import Cell, Row
from ...runtime.sweep import report_progress
from ...tasks import cubic, gaussian
from .recipe import check_study, fit_once, held_out_results, precision_key, result_rows
from .tables import Table, spread, with_precision

__all__ = ["HELD_OUT", "GaussianStudy", "draw_pairs", "gaussian_tables", "run_gaussian"]

Pairs = tuple[NDArray[np.float64], NDArray[np.float64]]

HELD_OUT = 10_240

# The tables of the appendix, and 100 columns with 160,000 pairs from the figure.
_SETTINGS = (
    *(("normal", 20, n) for n in (160_000, 80_000, 32_000)),
    *(("cubic", 20, n) for n in (160_000, 80_000, 32_000)),
    *(("normal", 50, n) for n in (160_000, 80_000)),
    *(("cubic", 50, n) for n in (160_000, 80_000)),
    *(("normal", 100, n) for n in (160_000, 80_000)),
    ("cubic", 100, 160_000),
)
_FEW_COLUMNS = 20
_LOW = (2.0, 5.0, 10.0, 15.0, 20.0, 30.0)
_HIGH = (2.0, 10.0, 20.0, 30.0, 40.0, 60.0)

# Each training with the objectives that are estimated from its critic.
_TRAINED: dict[str, tuple[Objective, ...]] = {
    "demi(0.5)": (DEMI(), CCMI(), SMILE(1.0), SMILE(5.0), SMILE(math.inf)),
    "demi(0.25)": (DEMI(0.25),),
    "demi(0.75)": (DEMI(0.75),),
    "smile(all pairs)": tuple(SMILE(tau, all_pairs=True) for tau in (1.0, 5.0, math.inf)),
    "mine": (MINE(),),
    "mine(rate=0.001)": (MINE(rate=0.001),),
    "dv": (DV(),),
    "infonce": (InfoNCE(),),
}


@dataclass(frozen=True)
class GaussianStudy:
    """Settings of the experiment.

    Args:
        settings: Kind, columns a side and training pairs of each table.
        trainings: Names of trainings.
        precision: Of matrix products in training: `float32`, or `bfloat16` with sums in float32,
            for the networks of the paper only.
        reps: Independent samples of each.
        scale: Share of the training pairs to use, for a quick run.
    """

    settings: tuple[tuple[str, int, int], ...] = _SETTINGS
    trainings: tuple[str, ...] = (*_TRAINED, "gm", "auto", "gaussian", "ksg")
    precision: str = "float32"
    reps: int = 10
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_study(self.scale, self.precision)

    def cells(self) -> list[Cell]:
        """Return a cell for each training; draws vary slowest, so that tables fill evenly."""
        networks = *_TRAINED, "gm"
        return [
            {
                "kind": kind,
                "d": d,
                "n": max(64, round(self.scale * n)),
                "truth": truth,
                "draw": draw,
                "training": training,
                **precision_key(self.precision),
            }
            for draw in range(self.reps)
            for kind, d, n in self.settings
            for truth in (_LOW if d <= _FEW_COLUMNS else _HIGH)
            for training in self.trainings
            if self.precision == "float32" or training in networks
        ]


def run_gaussian(cell: Cell) -> list[Row]:
    """Train once and return a row for each estimate."""
    start = time.perf_counter()
    results = _METHODS[cell["training"]](cell, *draw_pairs(cell))
    return result_rows(cell, results, start)


def draw_pairs(cell: Cell) -> tuple[Pairs, Pairs]:
    """Return training and held-out pairs, the same for every training."""
    make = {"normal": gaussian, "cubic": cubic}[cell["kind"]]
    task = make(cell["d"], cell["truth"])
    entropy = [cell["draw"], cell["n"], zlib.crc32(task.name.encode())]
    rng = np.random.default_rng(entropy)
    return task.sample(cell["n"], rng), task.sample(HELD_OUT, rng)


def _trained(cell: Cell, train: Pairs, held: Pairs) -> list[MIResult]:
    objectives = _TRAINED[cell["training"]]
    estimator = cast(Estimator, estimator_for(objectives[0], "paper", seed=cell["draw"]))
    fitted = fit_once(estimator, cell, train)
    k = fitted.training.negatives or 1
    return held_out_results(fitted, objectives, held, k)


def _slow_mine(cell: Cell, train: Pairs, held: Pairs) -> list[MIResult]:
    return [replace(result, method=cell["training"]) for result in _trained(cell, train, held)]


def _flows(cell: Cell, train: Pairs, held: Pairs) -> list[MIResult]:
    flows = cast(GM, estimator_for("gm", "paper", seed=cell["draw"]))
    return [fit_once(flows, cell, train).estimate(*held)]


def _default(cell: Cell, train: Pairs, held: Pairs) -> list[MIResult]:
    return [replace(estimate(*train, seed=cell["draw"], progress=report_progress), method="auto")]


def _plug_in(cell: Cell, train: Pairs, held: Pairs) -> list[MIResult]:
    return [estimate(*train, method="gaussian")]


def _neighbours(cell: Cell, train: Pairs, held: Pairs) -> list[MIResult]:
    return [estimate(*held, method="ksg")]


_METHODS: dict[str, Callable[[Cell, Pairs, Pairs], list[MIResult]]] = {
    **dict.fromkeys(_TRAINED, _trained),
    "mine(rate=0.001)": _slow_mine,
    "gm": _flows,
    "auto": _default,
    "gaussian": _plug_in,
    "ksg": _neighbours,
}


def gaussian_tables(rows: Sequence[Row]) -> list[Table]:
    """Return the errors for each kind, number of columns and number of pairs."""
    tables: dict[str, list[Row]] = {}
    for r in with_precision(rows):
        setting = f"{r['kind']}, {r['d']} + {r['d']} columns, {r['n']:,} training pairs"
        tables.setdefault(f"truth - estimate in nats: {setting}", []).append(r)
    return [spread(own, title, "truth", "error") for title, own in tables.items()]
