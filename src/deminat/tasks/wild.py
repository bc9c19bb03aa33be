"""Tasks off the public benchmark, in families: what an estimate meets in the wild.

A case is a task with a number of rows and the form in which its rows are shown: numbers, pictures,
or labels coded in several ways. A label is a code 0, 1, ... in the rows of a task. Its codes carry
no order, so the information is the same however they are written:

- `ordered`: integers, in the order of the table;
- `permuted`: integers, in random order;
- `floats`: a random real number for each label;
- `text`: words;
- `category`: words in a frame, declared as categories.

Which family serves to choose a recipe, and which to report it, stands in `studies/bench/wild.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from . import circular, maps
from .clusters import clusters, label_number
from .composed import IMAGE_SIDE, embedding, exponential, padded, repeated, spot_images, t_copula
from .edges import additive_uniform, checkerboard, ring, wave_band
from .gaussian import gaussian, normal
from .latent import answers, branches, gains, profiles
from .maps import Array, Map
from .mixed import mixed_tasks
from .mixture import mixture
from .noisy import parity, product, scale_mixture, variance
from .regression import frailty, logistic, steps
from .student import correlated_student
from .tables import counts, half_rounded, labels, presence, rounded
from .task import Task
from .warped import rotated_cubic, spiral

__all__ = ["WildCase", "wild_cases"]

Form: TypeAlias = Literal["numbers", "images", "ordered", "permuted", "floats", "text", "category"]

_LABELS = 1_000  # more than any task has


@dataclass(frozen=True)
class WildCase:
    """A task, how many rows to draw, and how to show them.

    Args:
        family: What the task is an example of.
        n: Number of rows.
        make: Returns the task. Some take a second, so they are made when needed.
        form: How rows are shown.
    """

    family: str
    n: int
    make: Callable[[], Task] = field(repr=False)
    form: Form = "numbers"

    @property
    def task(self) -> Task:
        """The task, made once in a process."""
        return _made(self.make)

    def shown(self, x: Array, y: Array) -> tuple[Any, Any]:
        """Return rows of the task as they are given to an estimator."""
        if self.form == "images":
            shape = (-1, 1, IMAGE_SIDE, IMAGE_SIDE)
            return x.reshape(shape), y.reshape(shape)
        of_x, of_y = self.task.labels_x, self.task.labels_y
        if self.form == "numbers":
            return x, y
        return (
            _coded(x, self.form, seed=0) if of_x else x,
            _coded(y, self.form, seed=1) if of_y else y,
        )


@cache
def _made(make: Callable[[], Task]) -> Task:
    return make()


def _coded(rows: Array, form: Form, seed: int) -> Any:
    """Return one column of labels (n, 1) in another form, (n,)."""
    codes = rows[:, 0].astype(np.int64)
    if form == "ordered":
        return codes
    if form in ("text", "category"):
        words = np.array([f"kind {code}" for code in range(_LABELS)])[codes]
        return words if form == "text" else _declared(words)
    numbers = np.random.default_rng(seed).random(_LABELS)[codes]
    return numbers if form == "floats" else np.unique(numbers, return_inverse=True)[1]


def _declared(words: NDArray[np.str_]) -> pl.DataFrame:
    return pl.DataFrame({"kind": words}, schema={"kind": pl.Enum(np.unique(words).tolist())})


def _idle(make: Callable[[], Task], idle_x: int, idle_y: int = 0) -> Task:
    return padded(make(), idle_x, idle_y)


def _copies(make: Callable[[], Task], count: int) -> Task:
    return repeated(make(), count)


def _image(base: Callable[[], Task], x: Map | None, y: Map | None) -> Task:
    task = base()
    images = "-".join(of_side.name for of_side in (x, y) if of_side)
    return task.mapped(f"{images}-{task.name}", x, y)


def _mixed(name: str) -> Task:
    return mixed_tasks()[name]


def _one_of_many(columns: int, mi: float) -> Task:
    """Return many normal columns x, each of which says a little about the one column y."""
    covariance = np.eye(columns + 1)
    rho = np.sqrt(-np.expm1(-2 * mi) / columns)
    covariance[-1, :-1] = covariance[:-1, -1] = rho
    return normal(covariance, columns, f"one-of-{columns}-{mi:.12g}nats")


def _swiss_roll(mi: float) -> Task:
    uniform = _image(partial(gaussian, 1, mi), maps.normal_cdf, maps.normal_cdf)
    return uniform.mapped(f"swiss-roll-{mi:.12g}nats", x=maps.swiss_roll)


def _elliptical() -> dict[str, WildCase]:
    """Return Student tasks, and the same with other margins."""
    student = partial(WildCase, "student")
    copula = partial(WildCase, "t-copula")
    return {
        "student-1d-dof2": student(1_000, partial(correlated_student, 1, 0.5, 2)),
        "student-2d-dof3": student(50_000, partial(correlated_student, 2, 1.0, 3)),
        "student-5d-dof4": student(10_000, partial(correlated_student, 5, 1.5, 4)),
        "student-8d-dof5": student(10_000, partial(correlated_student, 8, 3.0, 5)),
        "student-10d-dof8": student(5_000, partial(correlated_student, 10, 2.0, 8)),
        # Ranks undo the margins, so that with the same numbers these would be the tasks above.
        "t-copula-1d-dof3": copula(1_000, partial(t_copula, 1, 0.7, 3, "normal")),
        "t-copula-3d-dof2": copula(5_000, partial(t_copula, 3, 1.2, 2, "uniform")),
        "t-copula-4d-dof3": copula(10_000, partial(t_copula, 4, 2.0, 3, "normal")),
        "t-copula-6d-dof6": copula(10_000, partial(t_copula, 6, 2.5, 6, "uniform")),
        "t-copula-10d-dof5": copula(5_000, partial(t_copula, 10, 1.5, 5, "normal")),
    }


def _mixtures() -> dict[str, WildCase]:
    mixed, grouped = partial(WildCase, "mixture"), partial(WildCase, "clusters")
    return {
        "mixture-1d": mixed(2_000, partial(mixture, 1, 0.5)),
        "mixture-2d": mixed(5_000, partial(mixture, 2, 2.0)),
        "mixture-4d": mixed(10_000, partial(mixture, 4, 3.0)),
        "mixture-10d": mixed(10_000, partial(mixture, 10, 2.0)),
        "clusters-3-1d": grouped(2_000, partial(clusters, 3, 1, 4.0)),
        "clusters-8-2d": grouped(5_000, partial(clusters, 8, 2, 6.0)),
        "clusters-20-5d": grouped(10_000, partial(clusters, 20, 5, 6.0)),
        "clusters-5-30d": grouped(5_000, partial(clusters, 5, 30, 3.0)),
    }


def _sizes() -> dict[str, WildCase]:
    """Return dependence by the size of the noise."""
    sized, scaled = partial(WildCase, "variance"), partial(WildCase, "scale-mixture")
    return {
        "variance-0.5": sized(5_000, partial(variance, 0.5)),
        "variance-1": sized(500, partial(variance, 1.0)),
        "variance-1.5-x3": sized(10_000, partial(_copies, partial(variance, 1.5), 3)),
        "variance-0.7-x10": sized(10_000, partial(_copies, partial(variance, 0.7), 10)),
        "scale-1d-even": scaled(1_000, partial(scale_mixture, 1, (0.1, 1.0), (0.5, 0.5))),
        "scale-1d-sharp": scaled(5_000, partial(scale_mixture, 1, (0.02, 1.0), (0.8, 0.2))),
        "scale-1d-weak": scaled(5_000, partial(scale_mixture, 1, (1.0, 6.0), (0.5, 0.5))),
        "scale-4d": scaled(10_000, partial(scale_mixture, 4, (0.5, 3.0), (0.6, 0.4))),
    }


def _interactions() -> dict[str, WildCase]:
    signs, times = partial(WildCase, "parity"), partial(WildCase, "product")
    return {
        "parity-2-idle2": signs(5_000, partial(_idle, partial(parity, 2, 0.05), 2)),
        "parity-3-idle5": signs(10_000, partial(_idle, partial(parity, 3, 0.1), 5)),
        "parity-2-idle20": signs(10_000, partial(_idle, partial(parity, 2, 0.1), 20)),
        "product-idle2": times(5_000, partial(_idle, partial(product, 0.3), 2)),
        "product-idle10": times(10_000, partial(_idle, partial(product, 0.5), 10)),
        "product-idle30": times(10_000, partial(_idle, partial(product, 0.3), 30, 3)),
    }


def _embeddings() -> dict[str, WildCase]:
    tanh, wave = partial(WildCase, "embedding-tanh"), partial(WildCase, "embedding-wave")
    return {
        "tanh-2-in-32": tanh(5_000, partial(embedding, 2, 1.0, 32, "tanh")),
        "tanh-3-in-40": tanh(10_000, partial(embedding, 3, 2.0, 40, "tanh")),
        "tanh-4-in-200": tanh(10_000, partial(embedding, 4, 3.0, 200, "tanh")),
        "tanh-5-in-500": tanh(10_000, partial(embedding, 5, 4.0, 500, "tanh")),
        "wave-2-in-32": wave(5_000, partial(embedding, 2, 1.0, 32, "wave")),
        "wave-3-in-64": wave(10_000, partial(embedding, 3, 2.0, 64, "wave")),
        "wave-5-in-300": wave(10_000, partial(embedding, 5, 4.0, 300, "wave")),
    }


def _near_copies() -> dict[str, WildCase]:
    same, bent = partial(WildCase, "copies"), partial(WildCase, "bent-copies")
    lognormal = partial(_image, x=exponential, y=exponential)
    return {
        "copies-1d-4": same(2_000, partial(gaussian, 1, 4.0)),
        "copies-1d-8": same(5_000, partial(gaussian, 1, 8.0)),
        "copies-2d-10": same(10_000, partial(gaussian, 2, 10.0)),
        "copies-3d-6": same(5_000, partial(gaussian, 3, 6.0)),
        "lognormal-1d-5": bent(2_000, partial(lognormal, partial(gaussian, 1, 5.0))),
        "bimodal-1d-7": bent(
            5_000, partial(_image, partial(gaussian, 1, 7.0), maps.bimodal_x, maps.bimodal_y)
        ),
        "cube-uniform-2d-9": bent(
            10_000, partial(_image, partial(gaussian, 2, 9.0), maps.cube, maps.normal_cdf)
        ),
        "lognormal-3d-7": bent(5_000, partial(lognormal, partial(gaussian, 3, 7.0))),
    }


def _sharp() -> dict[str, WildCase]:
    edges, curves = partial(WildCase, "edges"), partial(WildCase, "curves")
    return {
        "band-0.01": edges(5_000, partial(additive_uniform, 0.01)),
        "band-0.2-x3": edges(10_000, partial(_copies, partial(additive_uniform, 0.2), 3)),
        "board-4": edges(2_000, partial(checkerboard, 4)),
        "board-8": edges(10_000, partial(checkerboard, 8, 0.05)),
        "wave-band-1": curves(2_000, partial(wave_band, 1, 0.05)),
        "wave-band-3": curves(50_000, partial(wave_band, 3, 0.2)),
        "ring-0.05": curves(5_000, partial(ring, 0.05)),
        "ring-0.1-x3": curves(10_000, partial(_copies, partial(ring, 0.1), 3)),
    }


def _few_values() -> dict[str, WildCase]:
    zeros, grids = partial(WildCase, "zeros"), partial(WildCase, "rounded")
    coarse = partial(rounded, 0.7, 0.5)
    return {
        "presence-0.01": zeros(5_000, partial(presence, 0.01)),
        "presence-0.02-x5": zeros(5_000, partial(_copies, partial(presence, 0.02), 5)),
        "zero-inflated": zeros(2_000, partial(_mixed, "zero-inflated")),
        "counts": zeros(5_000, partial(counts, 2.0, 0.3)),
        "counts-x5": zeros(10_000, partial(_copies, partial(counts, 1.0, 0.5), 5)),
        "rounded-1": grids(1_000, partial(rounded, 0.8, 1.0)),
        "rounded-0.1": grids(5_000, partial(rounded, 0.95, 0.1)),
        "half-rounded-1": grids(5_000, partial(half_rounded, 0.9, 1.0)),
        "rounded-0.5-x5": grids(10_000, partial(_copies, coarse, 5)),
    }


def _labels() -> dict[str, WildCase]:
    """Return labels on both sides and on one; some tables under several codings."""
    both, one = partial(WildCase, "labels"), partial(WildCase, "label-number")
    thirty, ten = partial(labels, 30, 1.8, 0.1), partial(label_number, 10, 2.0, (0.3, 1.0))
    codings: tuple[Form, ...] = ("ordered", "permuted", "floats", "text", "category")
    return {
        "labels-2": both(1_000, partial(labels, 2, 0.6, 0.05), "ordered"),
        "labels-10": both(2_000, partial(labels, 10, 0.5, 0.05), "permuted"),
        **{f"labels-30-{coding}": both(8_000, thirty, coding) for coding in codings},
        "labels-200": both(50_000, partial(labels, 200, 2.0, 0.1), "permuted"),
        "classes-3": one(1_000, partial(label_number, 3, 1.0, (0.3, 1.0, 3.0)), "permuted"),
        "classes-6-sizes": one(5_000, partial(label_number, 6, 0.0, (0.1, 1.0)), "permuted"),
        **{f"classes-10-{c}": one(5_000, ten, c) for c in ("permuted", "text", "category")},
        "classes-100": one(
            10_000, partial(_idle, partial(label_number, 100, 3.0, (0.2, 0.5)), 0, 2), "permuted"
        ),
    }


def _wide() -> dict[str, WildCase]:
    weak, images = partial(WildCase, "weak"), partial(WildCase, "images", form="images")
    return {
        "weak-20": weak(5_000, partial(gaussian, 20, 0.3)),
        "weak-100": weak(10_000, partial(gaussian, 100, 1.0)),
        "weak-500": weak(10_000, partial(gaussian, 500, 2.0)),
        "weak-200-on-1": weak(5_000, partial(_one_of_many, 200, 0.5)),
        "spots-0.5": images(5_000, partial(spot_images, 0.5)),
        "spots-1": images(2_000, partial(spot_images, 1.0)),
        "spots-2": images(5_000, partial(spot_images, 2.0)),
    }


def _warped() -> dict[str, WildCase]:
    turned, wiggly = partial(WildCase, "spiral"), partial(WildCase, "wiggly")
    return {
        "spiral-3d": turned(1_000, partial(spiral, 3, 1.0)),
        "spiral-5d": turned(10_000, partial(spiral, 5, 2.5)),
        "rotated-cubic-5d": turned(5_000, partial(rotated_cubic, 5, 2.0)),
        "wiggly-1d": wiggly(
            1_000, partial(_image, partial(gaussian, 1, 1.5), maps.wiggly_x, maps.wiggly_y)
        ),
        "wiggly-5d": wiggly(
            10_000, partial(_image, partial(gaussian, 5, 2.5), maps.wiggly_x, maps.bimodal_y)
        ),
        "swiss-roll": wiggly(5_000, partial(_swiss_roll, 1.5)),
    }


def _circular() -> dict[str, WildCase]:
    """Return angles, as they are and as neurons or pictures show them."""
    turned, rates = partial(WildCase, "angles"), partial(WildCase, "tuning")
    bars = partial(WildCase, "bars", form="images")
    shown = partial(_image, x=circular.sine, y=circular.sine)
    return {
        "angles-1": turned(2_000, partial(circular.angles, 0.8)),
        "angles-sharp": turned(5_000, partial(circular.angles, 2.5)),
        "angles-sine": turned(5_000, partial(shown, partial(circular.angles, 1.5))),
        "tuning-12": rates(5_000, partial(_tuned, 0.5, 12, 12)),
        "tuning-40": rates(10_000, partial(_tuned, 2.0, 40, 40)),
        "tuning-100-on-1": rates(5_000, partial(_tuned, 1.0, 100, 0)),
        "bars-0.7": bars(5_000, partial(_bars, 0.7)),
        "bars-1.5": bars(5_000, partial(_bars, 1.5)),
    }


def _tuned(mi: float, of_x: int, of_y: int) -> Task:
    maps_of = (circular.tuned(count) if count else circular.sine for count in (of_x, of_y))
    return _image(partial(circular.angles, mi), *maps_of)


def _bars(mi: float) -> Task:
    return _image(partial(circular.angles, mi), circular.bar, circular.bar)


def _hidden_states() -> dict[str, WildCase]:
    """Return answers and counts that share a hidden state, and lines that branch."""
    items, counts_of = partial(WildCase, "answers"), partial(WildCase, "gains")
    lines = partial(WildCase, "branches")
    return {
        "answers-3-5": items(5_000, partial(answers, 3, 5, 4, 1.0)),
        "answers-8-10": items(10_000, partial(answers, 8, 10, 5, 0.8)),
        "answers-2-4": items(2_000, partial(answers, 2, 4, 2, 1.0)),
        "gains-3": counts_of(5_000, partial(gains, 3, 2.0, 1.0)),
        "gains-20": counts_of(10_000, partial(gains, 20, 0.5, 2.0)),
        "branches-2": lines(2_000, partial(branches, (-2.0, 2.0))),
        "branches-3-x3": lines(10_000, partial(_copies, partial(branches, (-4.0, 0.0, 4.0)), 3)),
        "branches-2-idle10": lines(10_000, partial(_idle, partial(branches, (-3.0, 3.0)), 10, 10)),
    }


def _features() -> dict[str, WildCase]:
    """Return columns that tell of one column, and sides that share a frailty or a class."""
    trees, odds = partial(WildCase, "steps"), partial(WildCase, "logistic")
    lives, kinds = partial(WildCase, "frailty"), partial(WildCase, "profiles")
    line = partial(logistic, (2.0, 1.0, 1.0, 0.5, 0.5))
    return {
        "steps-2-2": trees(2_000, partial(steps, 2, 2, 0.3)),
        "steps-3-5": trees(5_000, partial(steps, 3, 5, 0.3)),
        "steps-4-10": trees(10_000, partial(steps, 4, 10, 0.2)),
        "logistic-5": odds(2_000, line, "permuted"),
        "logistic-5-idle20": odds(5_000, partial(_idle, line, 20), "text"),
        "logistic-product-idle5": odds(
            10_000, partial(_idle, partial(logistic, (4.0,), "product"), 5), "permuted"
        ),
        "frailty-1-1": lives(2_000, partial(frailty, 1, 1, 2.0)),
        "frailty-5-5": lives(5_000, partial(frailty, 5, 5, 1.0)),
        "frailty-3-1": lives(10_000, partial(frailty, 3, 1, 4.0)),
        "profiles-3-2-3": kinds(2_000, partial(profiles, 3, 2, 3, 1.0)),
        "profiles-6-5-5": kinds(10_000, partial(profiles, 6, 5, 5, 1.0)),
    }


@cache
def wild_cases() -> dict[str, WildCase]:
    """Return all cases by name; no task is made yet."""
    parts = (_elliptical, _mixtures, _sizes, _interactions, _embeddings, _near_copies, _sharp)
    more = (_few_values, _labels, _wide, _warped, _circular, _hidden_states, _features)
    return {name: case for part in (*parts, *more) for name, case in part().items()}
