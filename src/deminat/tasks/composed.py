r"""New tasks from old ones: idle columns, independent copies, other margins, bends, pictures.

- `padded`: normal columns that depend on nothing are appended. The log ratio does not see them.
- `repeated`: independent copies side by side. Log ratios and information add up.
- `t_copula`: the Student task with every column mapped to a normal or uniform one. Such maps are
  increasing, so the information stays, while the margins no longer show the heavy tails.
- `embedding`: d latent columns $z$ become many, $[g(z), b(zM)]\,Q$ with a random matrix $M$, a bend
  $b$ and a rotation $Q$, as activations of networks do. Undoing $Q$ gives $g(z)$ back, and $g$ is
  invertible, so that the log ratio is that of $z$.
- `spot_images`: $z$ in two columns is the place $p$ of a soft spot in a picture. A pixel at $a$ has
  the value $e^{-|a - p|^2/2w^2}$, so $\log$ of two pixels of a row differ by a linear function of
  $p$: the picture gives the place back exactly.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from . import maps
from .gaussian import gaussian
from .maps import Array, Map
from .student import correlated_student
from .task import Task

__all__ = [
    "IMAGE_SIDE",
    "embedding",
    "exponential",
    "padded",
    "repeated",
    "spot_images",
    "t_copula",
]

Bend: TypeAlias = Literal["tanh", "wave"]
Margin: TypeAlias = Literal["normal", "uniform"]

IMAGE_SIDE = 16  # pixels
_SPOT = 2.0  # pixels: the width of a spot, and the standard deviation of its place

exponential = Map("exponential", np.exp, np.log)


def padded(task: Task, idle_x: int = 0, idle_y: int = 0) -> Task:
    """Return `task` with idle normal columns after those of x and of y."""
    return Task(
        f"{task.name}-{idle_x}+{idle_y}-idle",
        task.mi,
        task.dim_x + idle_x,
        task.dim_y + idle_y,
        partial(_draw_padded, task=task, idle=(idle_x, idle_y)),
        partial(_score_padded, task=task),
        task.labels_x,
        task.labels_y,
    )


def _draw_padded(
    n: int, rng: np.random.Generator, task: Task, idle: tuple[int, int]
) -> tuple[Array, Array]:
    x, y = task.draw(n, rng)
    idle_x, idle_y = (rng.standard_normal((n, columns)) for columns in idle)
    return np.hstack([x, idle_x]), np.hstack([y, idle_y])


def _score_padded(x: Array, y: Array, task: Task) -> Array:
    return task.score(x[:, : task.dim_x], y[:, : task.dim_y])


def repeated(task: Task, copies: int) -> Task:
    """Return `copies` of `task` side by side, independent of one another."""
    draw = partial(_draw_repeated, task=task, copies=copies)
    score = partial(_score_repeated, task=task, copies=copies)
    dim_x, dim_y = copies * task.dim_x, copies * task.dim_y
    return Task(f"{task.name}-x{copies}", copies * task.mi, dim_x, dim_y, draw, score)


def _draw_repeated(
    n: int, rng: np.random.Generator, task: Task, copies: int
) -> tuple[Array, Array]:
    x, y = zip(*(task.draw(n, rng) for _ in range(copies)), strict=True)
    return np.hstack(x), np.hstack(y)


def _score_repeated(x: Array, y: Array, task: Task, copies: int) -> Array:
    parts = zip(np.split(x, copies, axis=1), np.split(y, copies, axis=1), strict=True)
    return np.asarray(np.sum([task.score(*part) for part in parts], axis=0))


def t_copula(d: int, mi: float, dof: float, margin: Margin) -> Task:
    """Return `correlated_student(d, mi, dof)` with normal or uniform columns."""
    forward, inverse = {
        "normal": (_student_to_normal, _normal_to_student),
        "uniform": (_student_to_uniform, _uniform_to_student),
    }[margin]
    of_column = Map(margin, partial(forward, dof=dof), partial(inverse, dof=dof))
    base = correlated_student(d, mi, dof)
    return base.mapped(base.name.replace("student", f"t-copula-{margin}"), of_column, of_column)


def _student_to_normal(x: Array, dof: float) -> Array:
    # The lower tail is the one whose probabilities are not rounded to 1.
    return np.asarray(-np.sign(x) * ndtri(stdtr(dof, -np.abs(x))))


def _normal_to_student(z: Array, dof: float) -> Array:
    return np.asarray(-np.sign(z) * stdtrit(dof, ndtr(-np.abs(z))))


def _student_to_uniform(x: Array, dof: float) -> Array:
    return np.asarray(stdtr(dof, x))


def _uniform_to_student(u: Array, dof: float) -> Array:
    end = np.finfo(np.float64).eps / 2
    return np.asarray(stdtrit(dof, np.clip(u, end, 1 - end)))


def embedding(latent: int, mi: float, columns: int, bend: Bend) -> Task:
    """Return `gaussian(latent, mi)` bent into `columns` columns a side and rotated.

    Args:
        latent: Columns before the bend.
        mi: Nats.
        columns: Columns after it.
        bend: `"tanh"` appends hyperbolic tangents of sums, as a layer of a network does. `"wave"`
            appends sines and squares, and wiggles the latent columns themselves.
    """
    if not latent < columns:
        raise ValueError(f"columns must be more than latent={latent}, got {columns!r}")
    base = gaussian(latent, mi)
    name = base.name.replace("gaussian", f"embedding-{bend}") + f"-in-{columns}"
    for side in range(2):
        bent = _bent(latent, columns, bend, seed=[columns, latent, side])
        turned = maps.rotation(columns, seed=[columns, side])
        base = base.mapped(name, *_on(side, bent)).mapped(name, *_on(side, turned))
    return base


def _on(side: int, of_one: Map) -> tuple[Map | None, Map | None]:
    return (None, of_one) if side else (of_one, None)


def _bent(latent: int, columns: int, bend: Bend, seed: Sequence[int]) -> Map:
    weights = np.random.default_rng(seed).standard_normal((latent, columns - latent))
    inverse = {"tanh": maps.identity, "wave": maps.wiggly_x}[bend].inverse
    forward = partial(_bend, weights=weights, bend=bend)
    return Map(bend, forward, partial(_unbend, inverse=inverse, latent=latent), columns - latent)


def _bend(z: Array, weights: Array, bend: Bend) -> Array:
    sums = z @ weights
    if bend == "tanh":
        return np.hstack([z, np.tanh(sums)])
    half = sums.shape[1] // 2
    waves, squares = np.sin(2 * sums[:, :half]), sums[:, half:] ** 2 / math.sqrt(8)
    return np.hstack([maps.wiggly_x.forward(z), waves, squares])


def _unbend(rows: Array, inverse: Callable[[Array], Array], latent: int) -> Array:
    return inverse(rows[:, :latent])


def spot_images(mi: float) -> Task:
    """Return pairs of pictures of a soft spot, whose two places share `mi` nats.

    Rows are pictures (16, 16), flattened.
    """
    picture = Map("spot", _draw_spot, _find_spot, added=IMAGE_SIDE**2 - 2)
    return gaussian(2, mi).mapped(f"spot-images-{mi:.12g}nats", picture, picture)


def _pixels() -> Array:
    """Return the distances of pixels from the centre of a picture, along one side."""
    return np.arange(IMAGE_SIDE, dtype=np.float64) - (IMAGE_SIDE - 1) / 2


def _draw_spot(z: Array) -> Array:
    of_sides = [np.exp(-(((_pixels() - _SPOT * p[:, None]) / _SPOT) ** 2) / 2) for p in z.T]
    pictures = of_sides[0][:, :, None] * of_sides[1][:, None, :]
    return np.asarray(pictures.reshape(len(z), -1))


def _find_spot(rows: Array) -> Array:
    pictures = rows.reshape(len(rows), IMAGE_SIDE, IMAGE_SIDE)
    middle, last = IMAGE_SIDE // 2, IMAGE_SIDE - 1
    ends = [
        (pictures[:, last, middle], pictures[:, 0, middle]),
        (pictures[:, middle, last], pictures[:, middle, 0]),
    ]
    # log of the last pixel less log of the first is last * place / width^2, and place = width z.
    return np.stack([_SPOT / last * np.log(b / a) for b, a in ends], axis=1)
