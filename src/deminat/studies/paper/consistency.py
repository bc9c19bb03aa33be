r"""Self-consistency on MNIST, appendix A: three ratios that are known although no MI is.

$Y_t$ is an image X with all but its top t rows black. Three curves over t:

| test           | ratio                                        | should be                     |
|----------------|----------------------------------------------|-------------------------------|
| `monotonicity` | I(X; Y_t) / I(X; Y_28)                       | rising from 0 to 1            |
| `processing`   | I([X, X]; [Y_t, Y_{t-3}]) / I(X; Y_t)        | 1: Y_{t-3} adds nothing       |
| `additivity`   | I([X1, X2]; [h(X1; t), h(X2; t)]) / I(X; Y_t) | 2: X2 is another image       |

All images differ, so the true information is infinite; the estimates show how well a critic that
was trained on 60,000 images tells new ones apart.

References:
    Liao et al. (2020), appendix A. Song and Ermon (2020), section 6.2.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...critics.networks import ConvCritic
from ...data.transforms import Identity
from ...datasets import mnist
from ...estimators.neural import Estimator
from ...objectives import DEMI, SMILE, InfoNCE, Objective
from ...runtime.rowstore import Cell, Row
from ...training.config import PAPER, Training
from .recipe import check_study, fit_once, held_out_results, precision_key, result_rows, unchecked
from .tables import Table, spread, with_precision

__all__ = [
    "ConsistencyStudy",
    "consistency_setting",
    "consistency_tables",
    "ratios",
    "run_consistency",
    "run_on_images",
]

Images = NDArray[np.float32]

_SPLITS: tuple[Literal["train"], Literal["test"]] = ("train", "test")
_ALL, _LEAST = 60_000, 64  # images to train on
_ROWS = 28
_APART = 3  # rows
_CLEAR = 2.0  # standard errors above 0
_POINT = "t", "epochs", "contrast", "images", "draw", "check"  # what rows of one point share
_TESTS = ("monotonicity", "processing", "additivity")
_TRAINED: dict[str, tuple[Objective, ...]] = {
    "demi(0.5)": (DEMI(), SMILE(1.0), SMILE(5.0), SMILE(math.inf)),
    "infonce": (InfoNCE(),),
}


@dataclass(frozen=True)
class ConsistencyStudy:
    """Settings of the experiment.

    Args:
        rows: Values of t.
        trainings: Names of trainings.
        epochs: Passes over the training images, 64 a step.
        contrast: Unpaired partners a pair for InfoNCE, whose estimates are at most log(k + 1).
        precision: Of matrix products in training: `float32`, or `bfloat16` with sums in float32.
        images: Number of training images, the first ones; test images in proportion.
        reps: Runs of each.
        scale: Share of the images to use, for a quick run.
        check: Whether the images must be the published ones.
    """

    rows: tuple[int, ...] = (3, 6, 9, 12, 15, 18, 21, 24, 28)
    trainings: tuple[str, ...] = tuple(_TRAINED)
    epochs: int = 100
    contrast: int = 63
    precision: str = "float32"
    images: int = _ALL
    reps: int = 1
    scale: float = 1.0
    check: bool = True

    def __post_init__(self) -> None:
        check_study(self.scale, self.precision)

    def cells(self) -> list[Cell]:
        """Return a cell for each training."""
        images = max(_LEAST, round(self.scale * self.images))
        return [
            {
                "test": test,
                "t": t,
                "training": training,
                "epochs": self.epochs,
                "contrast": self.contrast if training == "infonce" else 1,
                "images": images,
                "draw": draw,
                "check": self.check,
                **precision_key(self.precision),
            }
            for draw in range(self.reps)
            for training in self.trainings
            for test in _TESTS
            for t in self.rows
        ]


def run_consistency(cell: Cell) -> list[Row]:
    """Train once and return a row for each estimate."""
    return run_on_images(cell, *(_images(split, cell) for split in _SPLITS))


def run_on_images(cell: Cell, train_images: Images, test_images: Images) -> list[Row]:
    """Train once on images (n, 28, 28) from 0 to 1 and return a row for each estimate."""
    start = time.perf_counter()
    rng = np.random.default_rng([cell["draw"], cell["t"]])
    train, held = (_pairs(cell, images, rng) for images in (train_images, test_images))
    objectives = _TRAINED[cell["training"]]
    estimator = Estimator(
        objectives[0],
        critic=ConvCritic,
        scaling=Identity,
        training=_training(cell),
        baseline=None,
        seed=cell["draw"],
        correct=False,
    )
    fitted = fit_once(estimator, cell, train)
    return result_rows(cell, held_out_results(fitted, objectives, held, cell["contrast"]), start)


def ratios(rows: list[Row]) -> list[Row]:
    """Return the rows with a `ratio`; `None` where its denominator is missing, or may be 0.

    Its `ratio_error` is a standard error over test pairs, without the variation between trainings.
    The name of InfoNCE shows its number of unpaired partners, which limits the estimate.
    """
    alone = {_point(r): r for r in rows if r["test"] == "monotonicity"}
    found = []
    for row in rows:
        whole = {**row, "t": _ROWS} if row["test"] == "monotonicity" else row
        base = alone.get(_point(whole))
        ratio = error = None
        if base is not None and base["estimate"] > _CLEAR * base["standard_error"]:
            ratio = row["estimate"] / base["estimate"]
            both = row["standard_error"], ratio * base["standard_error"]
            error = 0.0 if base is row else math.hypot(*both) / base["estimate"]
        found.append({**row, "method": _name(row), "ratio": ratio, "ratio_error": error})
    return found


def _name(row: Row) -> str:
    name: str = row["method"]
    return f"infonce(k={row['contrast']})" if row["training"] == "infonce" else name


def _point(row: Row) -> tuple[object, ...]:
    return _name(row), row.get("precision"), *(row[key] for key in _POINT)


def _images(split: Literal["train", "test"], cell: Cell) -> Images:
    """Return the first images (n, 28, 28), from 0 to 1; of both splits the same share."""
    images, _ = mnist(split, check=cell["check"])
    share = cell["images"] / _ALL
    return np.asarray(images[: max(_LEAST, round(share * len(images)))] / 255, np.float32)


def _pairs(cell: Cell, images: Images, rng: np.random.Generator) -> tuple[Images, Images]:
    """Return both sides of a test, (n, channels, 28, 28)."""
    t = cell["t"]
    if cell["test"] == "monotonicity":
        return images[:, None], _top(images, t)[:, None]
    if cell["test"] == "processing":
        both = np.stack([_top(images, t), _top(images, t - _APART)], axis=1)
        return np.stack([images, images], axis=1), both
    others = np.roll(images, int(rng.integers(1, len(images))), axis=0)
    x = np.stack([images, others], axis=1)
    return x, np.stack([_top(images, t), _top(others, t)], axis=1)


def _top(images: Images, t: int) -> Images:
    """Return images with all but the top t rows black."""
    top = images.copy()
    top[:, max(t, 0) :] = 0
    return top


def _training(cell: Cell) -> Training:
    """Return the training of the paper, at a constant rate."""
    negatives, epochs = cell["contrast"], cell["epochs"]
    return replace(PAPER, halve_at=(), negatives=negatives, epochs=epochs)


def consistency_setting(row: Cell) -> str:
    """Return what ratios must share to be compared."""
    return f"{row['epochs']} epochs, {row['images']:,} images" + unchecked(row)


def consistency_tables(rows: Sequence[Row]) -> list[Table]:
    """Return the ratios of each test."""
    rows = with_precision([r for r in rows if r["ratio"] is not None])
    each = {test: [r for r in rows if r["test"] == test] for test in _TESTS}
    return [spread(own, f"{test}: ratio by t", "t", "ratio") for test, own in each.items() if own]
