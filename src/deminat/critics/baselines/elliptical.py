r"""Normal columns of one shared random size as a baseline: heavy tails that all columns share.

Given its size s, a row is normal with covariance $s\,\Sigma$. So Student's distribution is one of
these, with sizes that are inverse gamma. Here sizes are on a grid, and the share of each is free.
That is a Gaussian mixture with far fewer parameters than others have: one covariance for all.

Tails may be heavy together although each column alone is not, as in a Student copula. So besides
the columns as given there are their ranks, mapped to the quantiles of Student's distribution for
several degrees of freedom. Held-out rows choose among these.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import log_softmax, ndtr, stdtrit

from ...data.transforms import Array, RankToNormal, Robust, SmoothRanks
from .base import Frames, log_ratio
from .mixture import Mixture, View

__all__ = ["Elliptical", "StudentRanks"]

_DOFS = 2.0, 3.0, 5.0, 8.0, 15.0
_SIZES: Array = np.exp2(np.arange(-5.0, 14.0))
_RARE = 1e-5  # share below which a size is left out
_STEPS = 60  # of expectation maximisation, at most
_TOLERANCE = 1e-4  # nats of likelihood by which a step must be better
_HEAVY = 0.03  # excess of the mean fourth moment of joint normal scores, as a share
_CLEAR = 3.0  # standard errors above 0
_FEW = 4_000  # rows to compare degrees of freedom by
_HIGHEST = 9.0  # normal quantile beyond which Student's is not followed
_KNOTS = 400
_SINGULAR = 1e-8  # share of the largest variance below which a direction has none


@dataclass(frozen=True)
class StudentRanks:
    """Each column by its ranks to the quantiles of Student's distribution, by a smooth curve."""

    ranks: SmoothRanks
    dof: float

    @classmethod
    def fit(cls, a: Array, dof: float) -> Self:
        """Return the map fitted on rows `a` (n, d)."""
        return cls(SmoothRanks.fit(a), dof)

    def __call__(self, a: Array) -> Array:
        """Return rows `a` (m, d) on the fitted scale."""
        return self._quantiles(self.ranks(a))

    def log_slope(self, a: Array) -> Array:
        """Return the log determinant (m,) of the map at rows `a`."""
        normal, step = self.ranks(a), 1e-4
        slopes = (self._quantiles(normal + step) - self._quantiles(normal - step)) / (2 * step)
        return np.asarray(self.ranks.log_slope(a) + np.log(slopes).sum(axis=1))

    def _quantiles(self, normal: Array) -> Array:
        knots = np.linspace(-_HIGHEST, 0, _KNOTS)
        lower = stdtrit(self.dof, ndtr(knots))
        found = np.interp(-np.abs(normal), knots, lower)
        return np.asarray(-np.sign(normal) * found)


@dataclass(frozen=True)
class Elliptical:
    """The log ratio of normal columns of one shared random size.

    Args:
        mixture: Its components differ in size only.
    """

    mixture: Mixture

    @classmethod
    def candidates(cls, x: Array, y: Array, x_held: Array, y_held: Array) -> "Iterator[Elliptical]":
        """Yield it for columns as given, and for ranks, if tails are heavy together."""
        if not _is_heavy(np.hstack([x, y])):
            return
        given = cls.fit(x, y, None)
        if given is not None:
            yield given
        some = slice(_FEW)
        ranked = {d: cls.fit(x[some], y[some], d) for d in _DOFS}
        scores = {d: own.score(x_held, y_held) for d, own in ranked.items() if own is not None}
        best = cls.fit(x, y, max(scores, key=scores.__getitem__)) if scores else None
        if best is not None:
            yield best

    @classmethod
    def fit(cls, x: Array, y: Array, dof: float | None) -> Self | None:
        """Return it for pairs x (n, dx), y (n, dy); `None` if columns determine each other.

        Args:
            x: Rows.
            y: Their other side.
            dof: Degrees of freedom to whose quantiles ranks are mapped; `None` takes columns as
                given.
        """
        if dof is None:
            view = View(Frames(), Robust.fit(x).linear(), Robust.fit(y).linear())
        else:
            view = View(Frames(), StudentRanks.fit(x, dof), StudentRanks.fit(y, dof))
        rows = np.hstack([view.of_x(x), view.of_y(y)])
        covariance, sizes, shares = _maximised(rows)
        spread = np.linalg.eigvalsh(covariance)
        if not spread[0] > _SINGULAR * spread[-1]:
            return None
        centres = np.zeros((len(sizes), rows.shape[1]))
        return cls(Mixture(view, shares, centres, sizes[:, None, None] * covariance, x.shape[1]))

    def refit(self, x: Array, y: Array) -> Self:
        """Return the same kind, fitted to other pairs, or this one if they are singular."""
        return self.fit(x, y, self._dof) or self

    @property
    def _dof(self) -> float | None:
        scale = self.mixture.view.x_scale
        return scale.dof if isinstance(scale, StudentRanks) else None

    def score(self, x: Array, y: Array) -> float:
        """Return the mean log ratio of pairs."""
        return float(log_ratio(self.left(x), self.right(y), self.components).mean())

    @property
    def components(self) -> int:
        """The number of sizes."""
        return self.mixture.components

    @property
    def frames(self) -> Frames:
        """Columns as given."""
        return self.mixture.frames

    @property
    def informative(self) -> bool:
        """Whether a network can improve it."""
        return self.mixture.informative

    @property
    def name(self) -> str:
        """What results call it."""
        return "elliptical on " + ("columns" if self._dof is None else f"ranks, {self._dof:g} dof")

    def left(self, x: Array) -> Array:
        """Return the left factors of rows x."""
        return self.mixture.left(x)

    def right(self, y: Array) -> Array:
        """Return the right factors of rows y."""
        return self.mixture.right(y)


def _is_heavy(rows: Array) -> bool:
    """Tell whether normal scores have larger joint fourth moments than normal columns (Mardia)."""
    n, d = rows.shape
    scores = RankToNormal.fit(rows)(rows)
    squares = _squares(scores, scores.T @ scores / n)
    excess = float((squares**2).mean()) / (d * (d + 2)) - 1
    return bool(excess > _HEAVY + _CLEAR * math.sqrt(8 / (n * d * (d + 2))))


def _squares(rows: Array, covariance: Array) -> Array:
    """Return the squared norms (n,) of rows that a covariance makes white."""
    return np.asarray((rows @ np.linalg.pinv(covariance, hermitian=True) * rows).sum(axis=1))


def _maximised(rows: Array) -> tuple[Array, Array, Array]:
    """Return the covariance (d, d), sizes (k,) and their shares (k,) that suit rows best."""
    n, d = rows.shape
    far = np.maximum((rows**2).mean(axis=1, keepdims=True), 1e-300)
    covariance = (rows / far).T @ rows / n
    covariance *= float(np.median(_squares(rows, covariance))) / d
    shares, before = np.full(len(_SIZES), 1 / len(_SIZES)), -np.inf
    for _ in range(_STEPS):
        squares = _squares(rows, covariance)
        each = np.log(np.maximum(shares, 1e-300)) - d / 2 * np.log(_SIZES)
        each = each - squares[:, None] / (2 * _SIZES)
        posterior = log_softmax(each, axis=1)
        likelihood = float((each - posterior)[:, 0].mean())
        likelihood -= 0.5 * float(np.linalg.slogdet(covariance)[1])
        if not likelihood > before + _TOLERANCE:
            break
        before, posterior = likelihood, np.exp(posterior)
        covariance = (rows * (posterior @ (1 / _SIZES))[:, None]).T @ rows / n
        shares = posterior.mean(axis=0)
    kept = shares > _RARE
    kept_shares = np.asarray(shares[kept] / shares[kept].sum(), dtype=np.float64)
    return np.asarray(covariance, dtype=np.float64), _SIZES[kept], kept_shares
