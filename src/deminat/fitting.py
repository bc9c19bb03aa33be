"""What trained estimators share: scales, rows held out, scores of pairs, manners."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import Tags
from torch import Tensor, nn

from .critics import joint_scores, product_scores
from .errors import DataError
from .inputs import UNNAMED, Sample
from .pairs import partners
from .reference import Frames, Start
from .scores import Scores
from .splits import split_off
from .training import EarlyStopping, History, one_thread
from .transforms import Transform

__all__ = [
    "Scales",
    "Schema",
    "Tables",
    "couple_rows",
    "hold_out",
    "labels_of",
    "name_of",
    "requires_y",
    "score_couples",
    "score_pairs",
    "some_partners",
    "told",
    "units_of",
]


Tables = NDArray[np.float64]

_COUPLE = 2
# Rows may have been drawn, or shuffled, by the stream of the seed alone: these are nobody's.
_TAG, _TAG_HELD = 0xC0B1E, 0x4E1D
_DRAWS = 8  # of one row from each group, at most
_AT_ONCE = 1 << 12  # bounds the memory
_DIGITS = 6  # of a loss in a curve


@dataclass(frozen=True)
class Schema:
    """What the rows of a fit looked like, so that other rows can be told from them."""

    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    names: tuple[tuple[str, ...], tuple[str, ...]]

    @classmethod
    def of(cls, sample: Sample) -> Self:
        """Return the schema of a sample."""
        return cls((sample.x.shape[1:], sample.y.shape[1:]), (sample.x_names, sample.y_names))

    def check(self, sample: Sample) -> None:
        """Refuse rows of another shape or with other columns than those of the fit."""
        other = Schema.of(sample)
        sides = zip("XY", self.shapes, other.shapes, self.names, other.names, strict=True)
        for side, shape, new_shape, names, new_names in sides:
            if new_shape != shape:
                raise DataError(
                    f"{side} has {new_shape[0]} features, but deminat is expecting {shape[0]} "
                    f"features as input: rows of shape {shape} as in the fit, not {new_shape}"
                )
            if new_names != names and UNNAMED not in (names[0], new_names[0]):
                raise DataError(
                    f"{side} has columns {', '.join(new_names[:5])}; the fit had "
                    f"{', '.join(names[:5])}: pass the same, in the same order"
                )


@dataclass(frozen=True)
class Scales:
    """How both sides of a sample become tensors: maps fitted on training rows.

    Args:
        schema: Of those rows.
        x_map: Map of x.
        y_map: Map of y.
        start: A log ratio in closed form, whose two halves stand in the last columns.
    """

    schema: Schema
    x_map: Transform
    y_map: Transform
    start: Start | None = None

    @classmethod
    def fit(cls, scaling: type[Transform], sample: Sample, start: Start | None = None) -> Self:
        """Return the scales that suit the rows of a sample, seen from the frames of the start."""
        frames = Frames() if start is None else start.frames
        maps = scaling.fit(frames.of_x(sample.x)), scaling.fit(frames.of_y(sample.y))
        return cls(Schema.of(sample), *maps, start)

    @property
    def halves(self) -> int:
        """How many of the last columns a side belong to the start."""
        if self.start is None:
            return 0
        (columns,) = self.schema.shapes[0]
        return int(self.start.left(np.zeros((1, columns))).shape[1])

    def __call__(self, sample: Sample) -> tuple[Tensor, Tensor]:
        """Return x and y (n, ...) as tensors on the fitted scales."""
        self.schema.check(sample)
        if self.start is None:
            x, y = self.x_map(sample.x), self.y_map(sample.y)
        else:
            frames = self.start.frames
            x = np.hstack([self.x_map(frames.of_x(sample.x)), self.start.left(sample.x)])
            y = np.hstack([self.y_map(frames.of_y(sample.y)), self.start.right(sample.y)])
        # At high information the halves nearly cancel, and then float32 is too coarse.
        blind = self.start is not None and not self.start.sighted
        dtype = torch.float64 if blind else torch.float32
        return torch.from_numpy(x).to(dtype), torch.from_numpy(y).to(dtype)


def hold_out(
    sample: Sample, stopping: EarlyStopping | None, seed: int
) -> tuple[Sample, Sample | None]:
    """Return the rows to train on and, for early stopping, the rows held out of them."""
    if stopping is None:
        return sample, None
    rng = np.random.default_rng([_TAG_HELD, seed])
    about = sample.labels, sample.times, sample.gap
    rows, held = split_off(len(sample), stopping.held_out, rng, *about)
    return sample.take(rows), sample.take(held)


def score_pairs(critic: nn.Module, x: Tensor, y: Tensor, others: Tensor) -> Scores:
    """Return the scores of pairs and of unpaired partners `others` (n, k), in float64."""
    with one_thread():
        joint, product = joint_scores(critic, x, y), product_scores(critic, x, y, others)
    return Scores(joint.double().numpy(), product.double().numpy())


def some_partners(sample: Sample, k: int, seed: int) -> Tensor:
    """Return (n, k) rows that are unpaired with each row of a sample; fewer if n is small."""
    generator = torch.Generator().manual_seed(seed)
    return partners(len(sample), min(k, len(sample) - 1), generator, labels_of(sample))


def couple_rows(sample: Sample, seed: int) -> NDArray[np.int64]:
    """Return rows (draws, couples, 2): in a draw, no two of them depend on each other.

    Rows that share a label, or follow each other within a gap of time, make a unit. Each draw takes
    one row of each unit, and units stay in their couples.
    """
    rng = np.random.default_rng([_TAG, seed])
    units = units_of(sample)
    order = rng.permutation(len(sample))
    order = order[np.argsort(units[order], kind="stable")]
    sizes = np.bincount(units)
    starts = np.cumsum(sizes) - sizes
    count = len(sizes) // _COUPLE
    chosen = rng.permutation(len(sizes))[: count * _COUPLE].reshape(count, _COUPLE)
    draws = np.arange(min(_DRAWS, sizes.max()))[:, None, None]
    return np.asarray(order[starts[chosen] + draws % sizes[chosen]])


def units_of(sample: Sample) -> NDArray[np.int64]:
    """Return for each row the number of the unit that it belongs to."""
    if sample.times is not None:
        places = np.argsort(np.argsort(sample.times))
        return np.asarray(places // max(1, sample.gap))
    if sample.labels is not None:
        return np.asarray(np.unique(sample.labels, return_inverse=True)[1])
    return np.arange(len(sample))


def score_couples(critic: nn.Module, x: Tensor, y: Tensor, rows: NDArray[np.int64]) -> Tables:
    """Return (draws, couples, 2, 2) scores of each x of a couple with each y, in float64."""
    found = []
    with one_thread():
        for some in torch.split(torch.from_numpy(rows).view(-1, _COUPLE), _AT_ONCE):
            left, right = some.repeat_interleave(_COUPLE, dim=1), some.repeat(1, _COUPLE)
            found.append(joint_scores(critic, x[left.flatten()], y[right.flatten()]))
    scores = torch.cat(found) if rows.size else torch.empty(0)
    return scores.double().numpy().reshape(*rows.shape, _COUPLE)


def labels_of(sample: Sample) -> Tensor | None:
    """Return the labels (n,) of copied rows as a tensor, if there are any."""
    return None if sample.labels is None else torch.from_numpy(sample.labels)


def requires_y(tags: Tags) -> Tags:
    """Tell scikit-learn that `fit` wants both sides."""
    tags.target_tags.required = True
    return tags


def name_of(scaling: type[Transform]) -> str:
    """Return what results call a map of the columns."""
    return getattr(scaling, "__name__", type(scaling).__name__)


def told(histories: Sequence[History]) -> dict[str, Any]:
    """Return what results tell of trainings."""
    return {
        "steps": [h.steps for h in histories],
        "kept_steps": [h.best_step for h in histories],
        "training_loss": [h.loss for h in histories],
        "restarts": sum(h.restarts for h in histories),
        "recipe": [h.chose for h in histories],
        "learning": [[_curve(s) for s in h.stages or (h,) if s.held_out] for h in histories],
    }


def _curve(history: History) -> dict[str, Any]:
    """Return the held-out loss of a stage, look by look, in nats."""
    losses = [round(loss, _DIGITS) for loss in history.held_out]
    return {"stage": history.chose, "kept_step": history.best_step, "held_out": losses}
