r"""Self-consistency on MNIST, appendix A: three ratios that are known although no MI is.

$Y_t$ keeps the top t rows of an image X and blackens the others. Three curves over t:

| test           | ratio                                        | should be                     |
|----------------|----------------------------------------------|-------------------------------|
| `monotonicity` | I(X; Y_t) / I(X; Y_28)                       | rising from 0 to 1            |
| `processing`   | I([X, X]; [Y_t, Y_{t-3}]) / I(X; Y_t)        | 1: Y_{t-3} adds nothing       |
| `additivity`   | I([X1, X2]; [h(X1; t), h(X2; t)]) / I(X; Y_t) | 2: X2 is another image       |

X is continuous in name only and each image is its own, so the true information is infinite; the
estimates show what a critic trained on 60,000 images can tell.

References:
    Liao et al. (2020), appendix A. Song and Ermon (2020), section 6.2.
"""

import math
import time
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...critics.networks import ConvCritic
from ...data.sample import as_sample
from ...data.transforms import Identity
from ...datasets import mnist
from ...estimators.neural import Estimator
from ...estimators.scores import result_from_scores
from ...objectives import DEMI, SMILE, InfoNCE, Objective
from ...runtime.rowstore import Cell, Row
from ...training.config import PAPER, Training
from .recipe import FULL, check_precision, fit_once, precision_key

__all__ = ["TESTS", "ConsistencyStudy", "ratios", "run_consistency", "run_on_images"]

Images = NDArray[np.float32]

_SPLITS: tuple[Literal["train"], Literal["test"]] = ("train", "test")
_ALL, _LEAST = 60_000, 64  # images to train on
_ROWS = 28
_APART = 3
_CLEAR = 2.0  # standard errors above 0
TESTS = ("monotonicity", "processing", "additivity")
_TRAINED: dict[str, tuple[Objective, ...]] = {
    "demi(0.5)": (DEMI(), SMILE(1.0), SMILE(5.0), SMILE(math.inf)),
    "infonce": (InfoNCE(),),
}


@dataclass(frozen=True)
class ConsistencyStudy:
    """What to run.

    Args:
        rows: Values of t.
        trainings: What to train.
        epochs: Of 64 examples a batch, joint and unpaired ones; of InfoNCE, of 64 pairs a batch.
        contrast: Unpaired partners a pair for InfoNCE, which cannot read more than log(k + 1).
        precision: Of matrix products in training: `float32`, or `bfloat16` with sums in float32.
        images: Training images to take, the first ones; test images are taken in proportion.
        reps: Runs of each.
        scale: Share of the images to take, for a quick look.
        check: Whether the images must be the published ones.
    """

    rows: tuple[int, ...] = (3, 6, 9, 12, 15, 18, 21, 24, 28)
    trainings: tuple[str, ...] = tuple(_TRAINED)
    epochs: int = 100
    contrast: int = 63
    precision: str = FULL
    images: int = _ALL
    reps: int = 1
    scale: float = 1.0
    check: bool = True

    def __post_init__(self) -> None:
        check_precision(self.precision)

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
            for test in TESTS
            for t in self.rows
        ]


def run_consistency(cell: Cell) -> list[Row]:
    """Train once and return a row for each readout."""
    return run_on_images(cell, *(_images(split, cell) for split in _SPLITS))


def run_on_images(cell: Cell, train_images: Images, test_images: Images) -> list[Row]:
    """Train once on images (n, 28, 28) from 0 to 1 and return a row for each readout."""
    start = time.perf_counter()
    rng = np.random.default_rng([cell["draw"], cell["t"]])
    train, held = (_pairs(cell, images, rng) for images in (train_images, test_images))
    objectives = _TRAINED[cell["training"]]
    estimator = Estimator(
        objectives[0],
        critic=ConvCritic,
        scaling=Identity,
        training=_training(cell, len(train[0])),
        start=None,
        seed=cell["draw"],
        correct=False,
    )
    fitted = fit_once(estimator, train, cell.get("precision", FULL))
    scores = fitted.scores(as_sample(*held), cell["contrast"])
    seconds = round(time.perf_counter() - start, 2)
    results = (result_from_scores(objective, scores) for objective in objectives)
    return [
        {
            **cell,
            "method": result.method,
            "estimate": result.mi,
            "standard_error": result.standard_error,
            "seconds": seconds,
        }
        for result in results
    ]


def ratios(rows: list[Row]) -> list[Row]:
    """Return the rows with a `ratio`: `None` where what to divide by is not there, or may be 0.

    Its `ratio_error` is a standard error over test pairs, which sees no luck of a training. InfoNCE
    is called by how many it was trained against, which limit what it can read.
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
    """Return what the rows of one value of t have in common."""
    keys = "t", "epochs", "contrast", "images", "draw", "check"
    return _name(row), row.get("precision"), *(row[key] for key in keys)


def _images(split: Literal["train", "test"], cell: Cell) -> Images:
    """Return the first images (n, 28, 28), from 0 to 1; of both splits the same share."""
    images, _ = mnist(split, check=cell["check"])
    share = cell["images"] / _ALL
    some = images[: max(_LEAST, round(share * len(images)))]
    return np.asarray(some / 255, np.float32)


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
    kept = images.copy()
    kept[:, max(t, 0) :] = 0
    return kept


def _training(cell: Cell, images: int) -> Training:
    """Return the training of the paper: epochs of as many examples as there are images."""
    plain = replace(PAPER, halve_at=())
    if cell["training"] == "infonce":
        return replace(plain, batch=64, negatives=cell["contrast"], epochs=cell["epochs"])
    return replace(plain, steps=max(1, cell["epochs"] * images // 64))  # half are joint
