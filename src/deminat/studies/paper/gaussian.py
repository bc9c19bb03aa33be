"""Gaussians of the paper, section 3.1 and appendix C: error of every method by true information.

x and y are jointly Gaussian, correlated column by column; `cubic` cubes the columns of y. A critic
is trained on n pairs and read on 10,240 fresh ones. One training by cross-entropy serves DEMI(1/2),
CCMI and SMILE; DEMI at other alphas, MINE, InfoNCE and the flows have trainings of their own.

What is read on how many unpaired pairs: DEMI and the flows on none, InfoNCE on 63 a pair, as many
as in training, the others on one a pair.

Beside the paper's methods stand `auto`, the default recipe cross-fitted on the training pairs
alone, the Gaussian plug-in on the same, and nearest neighbours on the fresh pairs (on 160,000 pairs
of 40 columns they would take hours); and MINE with a moving average that remembers some 1,000 steps
instead of 100, since with 100 a long training runs away.

InfoNCE scores 64 x 64 pairs a step, tens of times as many as the others: `precision="bfloat16"`
trains in less than half of the time on processors that multiply in bfloat16, and its rows say so.

References:
    Liao et al. (2020), section 3.1 and appendix C.
"""

import math
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...api import estimate
from ...data.sample import as_sample
from ...estimators.flows import GM
from ...estimators.neural import Estimator
from ...estimators.registry import estimator_for
from ...estimators.scores import result_from_scores
from ...objectives import CCMI, DEMI, MINE, SMILE, InfoNCE, Objective
from ...results import MIResult
from ...runtime.rowstore import Cell, Row
from ...runtime.sweep import report_progress
from ...tasks import cubic, gaussian
from .recipe import FULL, check_precision, fit_once, precision_key

__all__ = ["HELD_OUT", "GaussianStudy", "run_gaussian"]

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
_LOW = (2.0, 6.0, 10.0, 14.0, 18.0, 22.0, 26.0, 30.0)
_HIGH = (10.0, 20.0, 30.0, 40.0, 50.0, 60.0)

# Each training with what is read off it.
_TRAINED: dict[str, tuple[Objective, ...]] = {
    "demi(0.5)": (DEMI(), CCMI(), SMILE(1.0), SMILE(5.0), SMILE(math.inf)),
    "demi(0.25)": (DEMI(0.25),),
    "demi(0.75)": (DEMI(0.75),),
    "mine": (MINE(),),
    "mine(rate=0.001)": (MINE(rate=0.001),),
    "infonce": (InfoNCE(),),
}


@dataclass(frozen=True)
class GaussianStudy:
    """What to run.

    Args:
        settings: Kind, columns a side and training pairs of each table.
        trainings: What to train.
        precision: Of matrix products in training: `float32`, or `bfloat16` with sums in float32,
            for the networks of the paper alone.
        reps: Independent samples of each.
        scale: Share of the training pairs to take, for a quick look.
    """

    settings: tuple[tuple[str, int, int], ...] = _SETTINGS
    trainings: tuple[str, ...] = (*_TRAINED, "gm", "auto", "gaussian", "ksg")
    precision: str = FULL
    reps: int = 10
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_precision(self.precision)

    def cells(self) -> list[Cell]:
        """Return a cell for each training; draws vary slowest, so that a part has whole tables."""
        precise = self.precision == FULL
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
            if precise or training in (*_TRAINED, "gm")
        ]


def run_gaussian(cell: Cell) -> list[Row]:
    """Train once and return a row for each readout."""
    start = time.perf_counter()
    train, held = _draw(cell)
    results = _READ[cell["training"]](cell, train, held)
    seconds = round(time.perf_counter() - start, 2)
    return [
        {
            **cell,
            "method": result.method,
            "estimate": result.mi,
            "error": cell["truth"] - result.mi,
            "standard_error": result.standard_error,
            "seconds": seconds,
        }
        for result in results
    ]


def _draw(cell: Cell) -> tuple[Pairs, Pairs]:
    """Return training and held-out pairs, the same for every training."""
    make = {"normal": gaussian, "cubic": cubic}[cell["kind"]]
    task = make(cell["d"], cell["truth"])
    entropy = [cell["draw"], cell["n"], zlib.crc32(task.name.encode())]
    rng = np.random.default_rng(entropy)
    return task.sample(cell["n"], rng), task.sample(HELD_OUT, rng)


def _trained(cell: Cell, train: Pairs, held: Pairs) -> list[MIResult]:
    objectives = _TRAINED[cell["training"]]
    estimator = cast(Estimator, estimator_for(objectives[0], "paper", seed=cell["draw"]))
    fitted = fit_once(estimator, train, cell.get("precision", FULL))
    sample = as_sample(*held)
    k = fitted.scored_negatives() if isinstance(objectives[0], InfoNCE) else 1
    scores = fitted.scores(sample, k)
    return [result_from_scores(objective, scores) for objective in objectives]


def _remembering(cell: Cell, train: Pairs, held: Pairs) -> list[MIResult]:
    return [replace(result, method=cell["training"]) for result in _trained(cell, train, held)]


def _flows(cell: Cell, train: Pairs, held: Pairs) -> list[MIResult]:
    flows = cast(GM, estimator_for("gm", "paper", seed=cell["draw"]))
    return [fit_once(flows, train, cell.get("precision", FULL)).estimate(*held)]


def _default(cell: Cell, train: Pairs, held: Pairs) -> list[MIResult]:
    return [replace(estimate(*train, seed=cell["draw"], progress=report_progress), method="auto")]


def _plug_in(cell: Cell, train: Pairs, held: Pairs) -> list[MIResult]:
    return [estimate(*train, method="gaussian")]


def _neighbours(cell: Cell, train: Pairs, held: Pairs) -> list[MIResult]:
    return [estimate(*held, method="ksg")]


_READ: dict[str, Callable[[Cell, Pairs, Pairs], list[MIResult]]] = {
    **dict.fromkeys(_TRAINED, _trained),
    "mine(rate=0.001)": _remembering,
    "gm": _flows,
    "auto": _default,
    "gaussian": _plug_in,
    "ksg": _neighbours,
}
