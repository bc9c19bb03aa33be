r"""Pairs of few values: labels, rounded quantities, counts, and quantities that are mostly zero.

Where both sides have few values, a table of probabilities $p_{ij}$ says everything:
$f = \log p_{ij}/p_i p_j$ and $I = \sum p_{ij} f_{ij}$.

- `labels`: a band of frequent cells on a floor of rare ones. The order of the codes is that of the
  band; whoever shows the rows may code them otherwise, since labels have no order.
- `rounded`: jointly normal columns rounded to a grid. A cell of the table is the probability of a
  rectangle, an integral of a smooth function over one variable (Gauss-Legendre).
- `half_rounded`: only x is rounded. Given y, its cell has the probability of an interval.
- `counts`: two Poisson counts of one gamma rate of mean m and shape k,
  $p_{xy} = \frac{\Gamma(k+x+y)}{\Gamma(k)\,x!\,y!} \frac{k^k m^{x+y}}{(k+2m)^{k+x+y}}$.
- `presence`: $x = b|u|$ and $y = b|v|$ with one rare $b$ in {0, 1}. Both sides are zero or neither
  is, so $f = -\log P(b)$ for the $b$ of the pair, and $I$ is the entropy of $b$.
"""

import math
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, gammaln, ndtr

from .maps import Array
from .task import Task

__all__ = ["counts", "half_rounded", "labels", "presence", "rounded"]

_FARTHEST = 8.5  # standard deviations: what is rounded lies within
_RARE = 1e-300  # stands for a probability of zero where its logarithm is taken
_MOST_COUNTS = 400
_NODES = 48  # of an integral over a cell of the grid


@dataclass(frozen=True, eq=False)
class _Table:
    """Probabilities (i, j) of the values step (i - zeros[0]) and step (j - zeros[1])."""

    cells: Array
    step: float = 1.0
    zeros: tuple[int, int] = (0, 0)

    @property
    def log_ratio(self) -> Array:
        alone = self.cells.sum(axis=1, keepdims=True) * self.cells.sum(axis=0)
        return np.asarray(_log(self.cells) - _log(alone))

    @property
    def mi(self) -> float:
        return float(np.sum(self.cells * self.log_ratio))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        drawn = rng.choice(self.cells.size, n, p=self.cells.ravel())
        codes = np.divmod(drawn, self.cells.shape[1])
        x, y = (self.step * (c - zero) for c, zero in zip(codes, self.zeros, strict=True))
        return x[:, None], y[:, None]

    def score(self, x: Array, y: Array) -> Array:
        i, j = (self._code(side[:, 0], axis) for axis, side in enumerate((x, y)))
        return np.asarray(self.log_ratio[i, j])

    def _code(self, values: Array, axis: int) -> NDArray[np.int64]:
        return np.rint(values / self.step).astype(np.int64) + self.zeros[axis]


def _log(probabilities: Array) -> Array:
    return np.asarray(np.log(np.maximum(probabilities, _RARE)))


def labels(count: int, width: float, floor: float) -> Task:
    """Return two labels of `count` values each.

    Args:
        count: Number of values of either side.
        width: Of the band of frequent cells, in labels.
        floor: Probability that both labels are drawn apart.
    """
    place = np.arange(count)
    shares = np.random.default_rng([count, 12]).dirichlet(np.full(count, 5.0))
    band = np.exp(-(((place[:, None] - place) / width) ** 2) / 2)
    band = shares[:, None] * band / band.sum(axis=1, keepdims=True)
    apart = shares[:, None] * np.full(count, 1 / count)
    table = _Table((1 - floor) * band + floor * apart)
    name = f"labels-{count}-{width:.12g}-{floor:.12g}"
    return Task(name, table.mi, 1, 1, table.draw, table.score, (0,), (0,))


def rounded(rho: float, grid: float) -> Task:
    """Return two unit normals of correlation `rho`, both rounded to multiples of `grid`."""
    table = _rectangles(rho, grid)
    return Task(f"rounded-{rho:.12g}-{grid:.12g}", table.mi, 1, 1, table.draw, table.score)


@cache
def _rectangles(rho: float, grid: float) -> _Table:
    most = math.ceil(_FARTHEST / grid)
    centres = grid * np.arange(-most, most + 1, dtype=np.float64)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    x = (centres[:, None] + grid / 2 * nodes).ravel()
    density = np.tile(weights, len(centres)) * np.exp(-x * x / 2)
    given = _interval_given(x[:, None], centres, rho, grid)
    cells = (density[:, None] * given).reshape(len(centres), _NODES, -1).sum(axis=1)
    return _Table(cells / cells.sum(), grid, (most, most))


def _interval_given(x: Array, centres: Array, rho: float, grid: float) -> Array:
    """Return P(the other column is rounded to each centre | x), for arrays that broadcast."""
    noise = math.sqrt(1 - rho * rho)
    low, high = ((centres + end - rho * x) / noise for end in (-grid / 2, grid / 2))
    # Above the mean the upper tails differ, since there the lower ones are rounded to 1.
    return np.asarray(np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low)))


def half_rounded(rho: float, grid: float) -> Task:
    """Return two unit normals of correlation `rho`, x rounded to multiples of `grid`."""
    y = np.arange(-_FARTHEST, _FARTHEST, 0.005)
    weights = np.exp(-y * y / 2) / np.exp(-y * y / 2).sum()
    most = math.ceil(_FARTHEST / grid)
    centres = grid * np.arange(-most, most + 1, dtype=np.float64)
    given = _interval_given(y[:, None], centres, rho, grid)
    mi = float(entr(weights @ given).sum() - weights @ entr(given).sum(axis=1))
    draw = partial(_draw_half, rho=rho, grid=grid)
    name = f"half-rounded-{rho:.12g}-{grid:.12g}"
    return Task(name, mi, 1, 1, draw, partial(_score_half, rho=rho, grid=grid))


def _draw_half(n: int, rng: np.random.Generator, rho: float, grid: float) -> tuple[Array, Array]:
    x, e = rng.standard_normal((2, n, 1))
    return grid * np.rint(x / grid), rho * x + math.sqrt(1 - rho * rho) * e


def _score_half(x: Array, y: Array, rho: float, grid: float) -> Array:
    given, alone = (_interval_given(y[:, 0], x[:, 0], r, grid) for r in (rho, 0.0))
    return _log(given) - _log(alone)


def counts(mean: float, shape: float) -> Task:
    """Return two Poisson counts of one gamma rate.

    Args:
        mean: Of a count.
        shape: Of the rate; below 1 most counts are zero and some are large.
    """
    table = _Table(_count_cells(mean, shape))
    return Task(f"counts-{mean:.12g}-{shape:.12g}", table.mi, 1, 1, table.draw, table.score)


@cache
def _count_cells(mean: float, shape: float) -> Array:
    x = np.arange(_MOST_COUNTS)
    total = x[:, None] + x
    logs = gammaln(shape + total) - gammaln(shape) - gammaln(x + 1)[:, None] - gammaln(x + 1)
    logs += shape * math.log(shape) + total * math.log(mean)
    logs -= (shape + total) * math.log(shape + 2 * mean)
    cells = np.exp(logs)
    return np.asarray(cells / cells.sum())


def presence(share: float) -> Task:
    """Return two quantities that are zero together, and positive in `share` of the rows."""
    mi = float(entr(share) + entr(1 - share))
    draw, score = partial(_draw_presence, share=share), partial(_score_presence, share=share)
    return Task(f"presence-{share:.12g}", mi, 1, 1, draw, score)


def _draw_presence(n: int, rng: np.random.Generator, share: float) -> tuple[Array, Array]:
    present = rng.uniform(size=(n, 1)) < share
    x, y = np.abs(rng.standard_normal((2, n, 1)))
    return np.where(present, x, 0.0), np.where(present, y, 0.0)


def _score_presence(x: Array, y: Array, share: float) -> Array:
    x_present, y_present = x[:, 0] > 0, y[:, 0] > 0
    same = np.where(x_present, -math.log(share), -math.log1p(-share))
    return np.where(x_present == y_present, same, -np.inf)
