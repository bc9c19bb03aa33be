r"""A sum over pairs of columns as a baseline: each column of x belongs to one of y, at most.

If the pairs $(x_i, y_{j(i)})$ are independent of one another, the log ratio is the sum of theirs,
$f = \sum_i f_i(x_i, y_{j(i)})$. Each is a Gaussian copula or a table, which may have any shape, at
the price of two columns, however many there are. Pairs are found by correlations of the first
Hermite polynomials of the ranks; only clear ones are used.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.optimize import linear_sum_assignment

from ...data.transforms import Array, RankToNormal
from .base import Frames, log_ratio
from .copula import GaussianCopula
from .table import Table

__all__ = ["ColumnPairs", "column_correlations"]

Part = Table | GaussianCopula

_FEW = 50  # pairs that may have tables; of more, tables would take minutes
# Standard errors above the largest correlation expected of independent columns. Below it, false
# pairs are rare among those that are left, and many weak ones may add up to much.
_CLEAR, _LIKELY = 1.0, -1.0


@dataclass(frozen=True)
class ColumnPairs:
    """The log ratio of independent pairs of columns.

    Args:
        x_columns: One for each pair.
        y_columns: The same of y.
        parts: The log ratio of each pair.
    """

    x_columns: tuple[int, ...]
    y_columns: tuple[int, ...]
    parts: tuple[Part, ...]
    components: ClassVar[int] = 1
    frames: ClassVar[Frames] = Frames()
    informative: ClassVar[bool] = True

    @classmethod
    def candidates(
        cls, x: Array, y: Array, x_held: Array, y_held: Array
    ) -> "Iterator[ColumnPairs]":
        """Yield a sum of copulas, and one with tables where held-out rows clearly like them.

        Where pairs are many there is a sum with less clear ones, too.
        """
        crossed, edge = column_correlations(x, y)
        matched = zip(*linear_sum_assignment(-crossed), strict=True)
        pairs = [(int(i), int(j)) for i, j in matched if crossed[i, j] > _edge(x, y, _LIKELY)]
        clear = [(i, j) for i, j in pairs if crossed[i, j] > edge]
        if len(clear) < 2:
            return
        first = cls._of_copulas(x, y, clear)
        yield first
        if len(clear) > _FEW:
            if len(pairs) > len(clear):
                yield cls._of_copulas(x, y, pairs)
            return
        sides = [(x[:, [i]], y[:, [j]], x_held[:, [i]], y_held[:, [j]]) for i, j in clear]
        better = tuple(
            _better(copula, *side) for copula, side in zip(first.parts, sides, strict=True)
        )
        if any(isinstance(part, Table) for part in better):
            yield replace(first, parts=better)

    @classmethod
    def _of_copulas(cls, x: Array, y: Array, pairs: Sequence[tuple[int, int]]) -> Self:
        """Return the sum over pairs of columns, each of which has a Gaussian copula."""
        parts = tuple(GaussianCopula.fit(x[:, [i]], y[:, [j]]) for i, j in pairs)
        return cls(tuple(i for i, _ in pairs), tuple(j for _, j in pairs), parts)

    def refit(self, x: Array, y: Array) -> Self:
        """Return the sum over the same columns for other pairs."""
        each = zip(self.x_columns, self.y_columns, self.parts, strict=True)
        return replace(self, parts=tuple(part.refit(x[:, [i]], y[:, [j]]) for i, j, part in each))

    @property
    def name(self) -> str:
        """What results call it."""
        tables = sum(isinstance(part, Table) for part in self.parts)
        kind = f", {tables} by tables" if tables else ""
        return f"sum over {len(self.parts)} pairs of columns{kind}"

    def left(self, x: Array) -> Array:
        """Return left factors (m, r)."""
        each = zip(self.x_columns, self.parts, strict=True)
        return np.hstack([part.left(x[:, [i]]) for i, part in each])

    def right(self, y: Array) -> Array:
        """Return right factors (m, r)."""
        each = zip(self.y_columns, self.parts, strict=True)
        return np.hstack([part.right(y[:, [j]]) for j, part in each])


def _edge(x: Array, y: Array, margin: float) -> float:
    """Return the largest correlation expected of independent columns, and some standard errors."""
    count = 9 * x.shape[1] * y.shape[1]
    return (math.sqrt(2 * math.log(count)) + margin) / math.sqrt(len(x))


def _better(copula: Part, x: Array, y: Array, x_held: Array, y_held: Array) -> Part:
    """Return the best table of two columns, if held-out rows clearly like it, or the copula.

    A few tables tell whether more are worth their time.
    """
    held, most = (x_held, y_held), math.log(len(x))

    def best(few: bool) -> Table:
        tables = Table.candidates(x, y, *held, few=few)
        return max(tables, key=lambda t: float(t.score(*held).mean()))

    table = best(few=True)
    gains = table.score(*held) - log_ratio(copula.left(x_held), copula.right(y_held))
    gains = np.clip(gains, -most, most)  # of a copula that ties spoil
    if gains.mean() <= 2 * gains.std() / math.sqrt(len(gains)):
        return copula
    return best(few=False)


def column_correlations(x: Array, y: Array) -> tuple[Array, float]:
    r"""Return the largest correlation of polynomials (dx, dy), and one that chance hardly reaches.

    The first three Hermite polynomials of the normal scores z are $z$, $z^2 - 1$, $z^3 - 3z$. For
    independent columns the largest of $9 d_x d_y$ correlations grows like
    $\sqrt{2\log(9 d_x d_y)/n}$.
    """
    n, (dx, dy) = len(x), (x.shape[1], y.shape[1])
    crossed = np.abs(_polynomials(x).T @ _polynomials(y)) / n
    return crossed.reshape(3, dx, 3, dy).max(axis=(0, 2)), _edge(x, y, _CLEAR)


def _polynomials(a: Array) -> Array:
    """Return (n, 3 d): Hermite polynomials of the normal scores, standardised."""
    z = RankToNormal.fit(a)(a)
    terms = np.hstack([z, z**2 - 1, z**3 - 3 * z])
    terms -= terms.mean(axis=0)
    return np.asarray(terms / np.maximum(terms.std(axis=0), 1e-12))
