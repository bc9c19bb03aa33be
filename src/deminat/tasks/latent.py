r"""A hidden state behind counts or answers, and lines that branch.

- `answers`: a hidden class gives each item of a questionnaire its own probabilities of the answers
  0, 1, 2, .... Given the class, items are independent.
- `profiles`: the same with some normal columns a side, whose means the class shifts.
- `gains`: a gain that all neurons share multiplies their mean counts, Poisson given it.
- `branches`: $y = s x + e$ where the slope $s$ is one of a few. Given x, and alone, y is a mixture
  of normals.

In the first three $f = \log \sum_k p(k)\, p(x \mid k)\, p(y \mid k) - \log p(x) - \log p(y)$,
and the information is its mean over 200,000 draws of a fixed seed. In the last,
$I = h(y) - h(y \mid x)$, with integrals over y and x.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, logsumexp
from scipy.stats import gamma

from .maps import Array
from .task import Task

__all__ = ["answers", "branches", "gains", "profiles"]

_DRAWS, _BLOCK = 200_000, 20_000
_LOG_ROOT = 0.5 * math.log(2 * math.pi)
_GAINS = 60  # values that stand for a gamma distribution
_LOWEST, _STEP, _REACH = 1e-3, 0.02, 9.0

Codes = NDArray[np.int64]
Rows = Callable[[Codes, np.random.Generator], Array]  # from states (n,) to rows (n, d)
LogDensity = Callable[[Array], Array]  # of rows (n, d) given each state, (n, k)


@dataclass(frozen=True, eq=False)
class _Side:
    """What states do to one side: draw its rows, and give their log probabilities."""

    rows: Rows = field(repr=False)
    log_density: LogDensity = field(repr=False)


@dataclass(frozen=True, eq=False)
class _States:
    """Hidden states, shares (k,), and both sides."""

    shares: Array
    x: _Side
    y: _Side

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        k = rng.choice(len(self.shares), n, p=self.shares)
        return self.x.rows(k, rng), self.y.rows(k, rng)

    def score(self, x: Array, y: Array) -> Array:
        of_x, of_y = self.x.log_density(x), self.y.log_density(y)
        each = (of_x + of_y, of_x, of_y)
        both, x_alone, y_alone = (logsumexp(f, axis=1, b=self.shares) for f in each)
        return np.asarray(both - x_alone - y_alone)

    def mi(self) -> float:
        rng = np.random.default_rng(0)
        blocks = (self.score(*self.draw(_BLOCK, rng)) for _ in range(_DRAWS // _BLOCK))
        return float(np.mean([block.mean() for block in blocks]))


@cache
def answers(classes: int, items: int, choices: int, clear: float) -> Task:
    """Return answers to items a side, which share a hidden class.

    Args:
        classes: Number of classes, all equally likely.
        items: Columns a side.
        choices: Values of each.
        clear: How far apart the classes are; at 0 all are the same.
    """
    rng = np.random.default_rng([classes, items, choices])
    logits = clear * rng.standard_normal((2, classes, items, choices))
    of_sides = np.exp(logits) / np.exp(logits).sum(axis=3, keepdims=True)
    x, y = (_Side(partial(_draw_answers, p=p), partial(_log_answers, p=p)) for p in of_sides)
    states = _States(np.full(classes, 1 / classes), x, y)
    name = f"answers-{classes}-{items}-{choices}-{clear:.12g}"
    return Task(name, states.mi(), items, items, states.draw, states.score)


def _draw_answers(k: Codes, rng: np.random.Generator, p: Array) -> Array:
    places = rng.uniform(size=(len(k), p.shape[1], 1)) > np.cumsum(p, axis=2)[k]
    return np.asarray(places[:, :, :-1].sum(axis=2), dtype=np.float64)


def _log_answers(rows: Array, p: Array) -> Array:
    columns = enumerate(rows.T.astype(int))
    return np.asarray(sum(np.log(p[:, i, values]).T for i, values in columns))


@cache
def profiles(classes: int, numbers: int, items: int, clear: float) -> Task:
    """Return normal columns and answers of 0 to 2 a side, which share a hidden class.

    Args:
        classes: Number of classes, all equally likely.
        numbers: Normal columns a side, the first ones.
        items: Columns of answers a side, the others.
        clear: How far apart the classes are; at 0 all are the same.
    """
    rng = np.random.default_rng([classes, numbers, items])
    centres = clear * rng.standard_normal((2, classes, numbers))
    logits = clear * rng.standard_normal((2, classes, items, 3))
    of_sides = np.exp(logits) / np.exp(logits).sum(axis=3, keepdims=True)
    x, y = (
        _Side(partial(_draw_profiles, m=m, p=p), partial(_log_profiles, m=m, p=p))
        for m, p in zip(centres, of_sides, strict=True)
    )
    states, d = _States(np.full(classes, 1 / classes), x, y), numbers + items
    labels = tuple(range(numbers, d))
    name = f"profiles-{classes}-{numbers}-{items}-{clear:.12g}"
    return Task(name, states.mi(), d, d, states.draw, states.score, labels, labels)


def _draw_profiles(k: Codes, rng: np.random.Generator, m: Array, p: Array) -> Array:
    numbers = m[k] + rng.standard_normal((len(k), m.shape[1]))
    return np.hstack([numbers, _draw_answers(k, rng, p)])


def _log_profiles(rows: Array, m: Array, p: Array) -> Array:
    residuals = rows[:, None, : m.shape[1]] - m
    return np.asarray(_log_answers(rows[:, m.shape[1] :], p) - (residuals**2).sum(axis=2) / 2)


@cache
def gains(neurons: int, rate: float, shape: float) -> Task:
    """Return counts of neurons a side, which share a gain.

    Args:
        neurons: Columns a side.
        rate: Mean count.
        shape: Of the gamma distribution of the gain; the smaller, the more it varies.
    """
    levels = gamma.ppf((np.arange(_GAINS) + 0.5) / _GAINS, shape, scale=1 / shape) + _LOWEST
    means = rate * levels[:, None] * np.linspace(0.5, 1.5, neurons)
    side = _Side(partial(_draw_counts, means=means), partial(_log_counts, means=means))
    states = _States(np.full(_GAINS, 1 / _GAINS), side, side)
    name = f"gains-{neurons}-{rate:.12g}-{shape:.12g}"
    return Task(name, states.mi(), neurons, neurons, states.draw, states.score)


def _draw_counts(k: Codes, rng: np.random.Generator, means: Array) -> Array:
    return np.asarray(rng.poisson(means[k]), dtype=np.float64)


def _log_counts(rows: Array, means: Array) -> Array:
    return np.asarray(rows @ np.log(means).T - means.sum(axis=1))  # factorials cancel


@cache
def branches(slopes: Sequence[float]) -> Task:
    """Return one normal column x and y = s x + e, with s any of the slopes."""
    slopes = tuple(slopes)
    y = np.arange(
        -_REACH * (1 + max(map(abs, slopes))), _REACH * (1 + max(map(abs, slopes))), _STEP
    )
    x = np.arange(-_REACH, _REACH, 5 * _STEP)
    alone = _STEP * entr(np.exp(_log_alone(y, slopes))).sum()
    given = [_STEP * entr(np.exp(_log_given(np.full_like(y, a), y, slopes))).sum() for a in x]
    weights = 5 * _STEP * np.exp(-x * x / 2 - _LOG_ROOT)
    name = "branches-" + "-".join(f"{s:.12g}" for s in slopes)
    draw, score = partial(_draw_branches, slopes=slopes), partial(_score_branches, slopes=slopes)
    return Task(name, float(alone - np.dot(weights, given)), 1, 1, draw, score)


def _draw_branches(
    n: int, rng: np.random.Generator, slopes: tuple[float, ...]
) -> tuple[Array, Array]:
    x, e = rng.standard_normal((2, n, 1))
    return x, rng.choice(slopes, (n, 1)) * x + e


def _score_branches(x: Array, y: Array, slopes: tuple[float, ...]) -> Array:
    return _log_given(x[:, 0], y[:, 0], slopes) - _log_alone(y[:, 0], slopes)


def _log_given(x: Array, y: Array, slopes: tuple[float, ...]) -> Array:
    each = -((y[:, None] - x[:, None] * slopes) ** 2) / 2
    return np.asarray(logsumexp(each, axis=1) - math.log(len(slopes)) - _LOG_ROOT)


def _log_alone(y: Array, slopes: tuple[float, ...]) -> Array:
    variances = 1 + np.square(slopes)
    each = -(y[:, None] ** 2) / (2 * variances) - np.log(variances) / 2
    return np.asarray(logsumexp(each, axis=1) - math.log(len(slopes)) - _LOG_ROOT)
