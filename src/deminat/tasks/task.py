r"""A task: a distribution of pairs whose mutual information is known.

A task draws pairs and knows its own log ratio

$$f(x, y) = \log \frac{p(x, y)}{p(x)\,p(y)},$$

which every critic here is trained to approximate. Its mean over joint pairs is $I(x; y)$, and the
mean of $e^f$ over unpaired samples is one. Estimators are tested against this oracle without
training. New tasks are made from old ones by invertible maps of either side.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from .maps import Array, Map, identity

__all__ = ["Task"]


@dataclass(frozen=True, eq=False)
class Task:
    """Pairs with known mutual information.

    Args:
        name: Unique name.
        mi: True mutual information in nats.
        dim_x: Columns of x.
        dim_y: Columns of y.
        draw: Returns n pairs, (n, dim_x) and (n, dim_y), from a generator.
        score: Returns the log ratio (n,) of checked rows.
        labels_x: Columns of x that hold codes of categories rather than quantities.
        labels_y: The same of y.
    """

    name: str
    mi: float
    dim_x: int
    dim_y: int
    draw: Callable[[int, np.random.Generator], tuple[Array, Array]] = field(repr=False)
    score: Callable[[Array, Array], Array] = field(repr=False)
    labels_x: tuple[int, ...] = ()
    labels_y: tuple[int, ...] = ()

    def sample(self, n: int, seed: int | np.random.Generator) -> tuple[Array, Array]:
        """Return `n` joint pairs: x (n, dim_x) and y (n, dim_y), float64."""
        return self.draw(n, np.random.default_rng(seed))

    def log_ratio(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Array:
        """Return log p(x,y)/(p(x)p(y)) of each row, paired or not.

        Args:
            x: Rows (n, dim_x).
            y: Rows (n, dim_y).

        Returns:
            Nats (n,); -inf where the joint density is zero.
        """
        x, y = _checked("x", x, self.dim_x), _checked("y", y, self.dim_y)
        if len(x) != len(y):
            raise ValueError(f"x and y must have equally many rows, got {len(x)} and {len(y)}")
        return self.score(x, y)

    def mapped(self, name: str, x: Map | None = None, y: Map | None = None) -> "Task":
        """Return the task of the images of x and y; None leaves a side unchanged."""
        x, y = x or identity, y or identity
        return Task(
            name=name,
            mi=self.mi,
            dim_x=self.dim_x + x.added,
            dim_y=self.dim_y + y.added,
            draw=partial(_draw_images, base=self, x_map=x, y_map=y),
            score=partial(_score_images, base=self, x_map=x, y_map=y),
        )


def _checked(name: str, values: npt.ArrayLike, columns: int) -> Array:
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != columns:
        raise ValueError(f"{name} must have shape (n, {columns}), got {rows.shape}")
    return rows


def _draw_images(
    n: int, rng: np.random.Generator, base: Task, x_map: Map, y_map: Map
) -> tuple[Array, Array]:
    x, y = base.draw(n, rng)
    return x_map.forward(x), y_map.forward(y)


def _score_images(x: Array, y: Array, base: Task, x_map: Map, y_map: Map) -> Array:
    return base.score(x_map.inverse(x), y_map.inverse(y))
