r"""Tasks of mixed columns: categories, counts, booleans, quantities that are often zero.

Each pair of columns has a density in closed form. So its log ratio is exact, and its mutual
information is a finite sum or an integral over one variable:

- `category-number`: one of four groups, and a normal quantity whose mean is the group's;
- `category-category`: a table of probabilities, 4 x 6;
- `zero-inflated`: two quantities, each absent (zero) or lognormal. Presence is a 2 x 2 table, and
  where both are present their logarithms are jointly normal, so
  $I = I_{\text{table}} - p_{11} \tfrac12 \log(1 - \rho^2)$;
- `count`: a gamma rate and its Poisson count, which alone is negative binomial;
- `boolean`: a normal quantity and a coin whose odds it sets;
- `mixed`: these five side by side, independent of one another, so their information is the sum.

Labels are codes 0, 1, ... in the rows of a task; `labelled` makes a frame of them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl
from scipy.integrate import quad
from scipy.special import entr, expit
from scipy.stats import gamma, nbinom, norm, poisson

from .maps import Array
from .task import Task

__all__ = ["labelled", "mixed_tasks"]

Columns = tuple[Array, Array]

_MEANS = np.array([0.0, 1.5, 2.5, 5.0])  # of the groups of a quantity
_SHARES = np.array([0.4, 0.3, 0.2, 0.1])  # of the groups
_TABLE = np.array(
    [
        [0.12, 0.05, 0.03, 0.02, 0.02, 0.01],
        [0.02, 0.10, 0.05, 0.03, 0.03, 0.02],
        [0.01, 0.02, 0.10, 0.06, 0.04, 0.02],
        [0.01, 0.01, 0.02, 0.05, 0.06, 0.10],
    ]
)
_PRESENCE = np.array([[0.40, 0.10], [0.10, 0.40]])
_RHO = 0.7  # of logarithms, where both quantities are present
_SHAPE, _SCALE = 2.0, 2.0  # of the rate of a count
_MOST = 400  # counts beyond have negligible probability
_STEEPNESS = 2.0  # of the odds of a boolean


def mixed_tasks() -> dict[str, Task]:
    """Return the six tasks by name."""
    each = {pair.name: _task(pair.name, [pair]) for pair in _PAIRS}
    return {**each, "mixed": _task("mixed", _PAIRS)}


def labelled(rows: Array, labels: Sequence[int]) -> pl.DataFrame:
    """Return rows as a frame whose columns of labels are categories.

    Args:
        rows: (n, d) quantities and codes.
        labels: Columns that hold codes 0, 1, ....
    """
    frame = pl.DataFrame({f"column_{i}": column for i, column in enumerate(rows.T)})
    names = [f"column_{i}" for i in labels]
    levels = pl.Enum([str(level) for level in range(max(_TABLE.shape))])
    return frame.with_columns(pl.col(names).cast(pl.Int64).cast(pl.String).cast(levels))


@dataclass(frozen=True)
class _ColumnPair:
    """Two columns (n,) each: their mutual information, how to draw them, their log ratio."""

    name: str
    mi: Callable[[], float]
    draw: Callable[[int, np.random.Generator], Columns]
    score: Callable[[Array, Array], Array]
    label_x: bool = False
    label_y: bool = False


def _task(name: str, pairs: Sequence[_ColumnPair]) -> Task:
    """Return pairs of columns side by side, independent of one another."""
    d, mi = len(pairs), sum(pair.mi() for pair in pairs)
    labels_x = tuple(i for i, pair in enumerate(pairs) if pair.label_x)
    labels_y = tuple(i for i, pair in enumerate(pairs) if pair.label_y)
    draw, score = partial(_draw, pairs=pairs), partial(_score, pairs=pairs)
    return Task(name, mi, d, d, draw, score, labels_x, labels_y)


def _draw(n: int, rng: np.random.Generator, pairs: Sequence[_ColumnPair]) -> Columns:
    x, y = zip(*(pair.draw(n, rng) for pair in pairs), strict=True)
    return np.stack(x, axis=1), np.stack(y, axis=1)


def _score(x: Array, y: Array, pairs: Sequence[_ColumnPair]) -> Array:
    columns = zip(pairs, x.T, y.T, strict=True)
    return np.asarray(np.sum([pair.score(a, b) for pair, a, b in columns], axis=0))


def _of_table(table: Array) -> tuple[Array, float]:
    """Return the log ratio of each cell of a table of probabilities, and their mean."""
    ratio = np.log(table / (table.sum(axis=1, keepdims=True) * table.sum(axis=0)))
    return ratio, float((table * ratio).sum())


def _draw_cells(n: int, rng: np.random.Generator, table: Array = _TABLE) -> Columns:
    x, y = np.divmod(rng.choice(table.size, n, p=table.ravel()), table.shape[1])
    return x.astype(float), y.astype(float)


def _cells_mi() -> float:
    return _of_table(_TABLE)[1]


def _score_cells(x: Array, y: Array) -> Array:
    return np.asarray(_of_table(_TABLE)[0][x.astype(int), y.astype(int)])


def _draw_group(n: int, rng: np.random.Generator) -> Columns:
    x = rng.choice(len(_SHARES), n, p=_SHARES)
    return x.astype(float), _MEANS[x] + rng.normal(size=n)


def _score_group(x: Array, y: Array) -> Array:
    alone = norm.pdf(y[:, None], _MEANS) @ _SHARES
    return np.asarray(norm.logpdf(y, _MEANS[x.astype(int)]) - np.log(alone))


def _group_mi() -> float:
    """Return the entropy of the quantity minus that within a group."""
    low, high = _MEANS.min() - 12, _MEANS.max() + 12
    entropy, _ = quad(lambda y: entr(norm.pdf(y, _MEANS) @ _SHARES), low, high, limit=200)
    return float(entropy - norm.entropy())


def _draw_absent(n: int, rng: np.random.Generator) -> Columns:
    present = _draw_cells(n, rng, _PRESENCE)
    u, v = rng.normal(size=(2, n))
    v = _RHO * u + math.sqrt(1 - _RHO**2) * v
    return present[0] * np.exp(u), present[1] * np.exp(v)


def _score_absent(x: Array, y: Array) -> Array:
    of_presence = _of_table(_PRESENCE)[0][(x > 0).astype(int), (y > 0).astype(int)]
    both = (x > 0) & (y > 0)
    u, v = (np.log(np.where(both, a, 1)) for a in (x, y))
    quadratic = _RHO * (_RHO * (u**2 + v**2) - 2 * u * v) / (2 * (1 - _RHO**2))
    of_values = -0.5 * math.log1p(-(_RHO**2)) - quadratic
    return np.asarray(of_presence + np.where(both, of_values, 0))


def _absent_mi() -> float:
    return _of_table(_PRESENCE)[1] - float(_PRESENCE[1, 1]) * 0.5 * math.log1p(-(_RHO**2))


def _draw_count(n: int, rng: np.random.Generator) -> Columns:
    rate = rng.gamma(_SHAPE, _SCALE, n)
    return rate, rng.poisson(rate).astype(float)


def _score_count(x: Array, y: Array) -> Array:
    return np.asarray(poisson.logpmf(y, x) - nbinom.logpmf(y, _SHAPE, 1 / (1 + _SCALE)))


def _count_mi() -> float:
    """Return the entropy of the count minus that at a known rate."""
    counts = np.arange(_MOST)

    def weighted_entropy(rate: float) -> float:
        return float(gamma.pdf(rate, _SHAPE, scale=_SCALE) * entr(poisson.pmf(counts, rate)).sum())

    within, _ = quad(weighted_entropy, 0, _MOST / 4, limit=200)
    return float(entr(nbinom.pmf(counts, _SHAPE, 1 / (1 + _SCALE))).sum() - within)


def _draw_boolean(n: int, rng: np.random.Generator) -> Columns:
    x = rng.normal(size=n)
    return x, (rng.uniform(size=n) < expit(_STEEPNESS * x)).astype(float)


def _score_boolean(x: Array, y: Array) -> Array:
    return np.asarray(np.log(2 * expit(_STEEPNESS * x * (2 * y - 1))))


def _boolean_mi() -> float:
    """Return the entropy of a fair coin minus that at a known quantity."""

    def weighted_entropy(x: float) -> float:
        heads = expit(_STEEPNESS * x)
        return float(norm.pdf(x) * (entr(heads) + entr(1 - heads)))

    return math.log(2) - quad(weighted_entropy, -12, 12)[0]


_PAIRS = (
    _ColumnPair("category-number", _group_mi, _draw_group, _score_group, label_x=True),
    _ColumnPair("category-category", _cells_mi, _draw_cells, _score_cells, True, True),
    _ColumnPair("zero-inflated", _absent_mi, _draw_absent, _score_absent),
    _ColumnPair("count", _count_mi, _draw_count, _score_count),
    _ColumnPair("boolean", _boolean_mi, _draw_boolean, _score_boolean),
)
