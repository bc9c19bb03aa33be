r"""Multivariate Student tasks: dependent even where nothing correlates.

$x$ and $y$ are independent normals divided by one common $\sqrt{w/\nu}$ with
$w \sim \chi^2_\nu$: a large $|x|$ suggests a small $w$, hence a large $|y|$. The density of $k$
such columns is, up to factors that cancel in the ratio,

$$p_k(z) \propto \Gamma\bigl(\tfrac{\nu + k}2\bigr)\,(1 + |z|^2/\nu)^{-(\nu + k)/2},$$

and with $g(u) = \ln\Gamma(u/2) - \tfrac u2\,\psi(u/2)$ for $m$ and $n$ columns

$$I(x; y) = g(\nu) + g(\nu + m + n) - g(\nu + m) - g(\nu + n).$$

Correlate $x_i$ with $y_i$ before the division, by $\rho$ as in the paper's Gaussians, and
$|z|^2$ becomes $|x|^2 + |y - \rho x|^2/(1 - \rho^2)$, while each side alone is unchanged:
the information of the $d$ Gaussian columns, $-\tfrac d2 \log(1 - \rho^2)$, is added.

References:
    Arellano-Valle et al. (2013), Shannon entropy and mutual information for multivariate
    skew-elliptical distributions, Scandinavian Journal of Statistics 40.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln

from .gaussian import MOST_NATS_A_COLUMN
from .maps import Array
from .task import Task

__all__ = ["correlated_student", "student"]


@dataclass(frozen=True, eq=False)
class _Student:
    """Rows (x, y) = (u, rho u + noise e), u and e with a common divisor; dim_x = dim_y if nats."""

    dim_x: int
    dim_y: int
    dof: float
    nats: float = 0.0

    @property
    def mi(self) -> float:
        v, m, n = self.dof, self.dim_x, self.dim_y
        return _g(v) + _g(v + m + n) - _g(v + m) - _g(v + n) + self.dim_y * self.nats

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        z = rng.standard_normal((n, self.dim_x + self.dim_y))
        z /= np.sqrt(rng.chisquare(self.dof, size=(n, 1)) / self.dof)
        x, e = z[:, : self.dim_x], z[:, self.dim_x :]
        return x, self._mean(x) + math.exp(-self.nats) * e

    def score(self, x: Array, y: Array) -> Array:
        e = (y - self._mean(x)) / math.exp(-self.nats)
        square_x, square_y, square_e = (np.sum(rows * rows, axis=1) for rows in (x, y, e))
        joint = self._log_density(square_x + square_e, self.dim_x + self.dim_y)
        apart = self._log_density(square_x, self.dim_x) + self._log_density(square_y, self.dim_y)
        return joint - apart + self.dim_y * self.nats

    def _mean(self, x: Array) -> Array | float:
        """Return the mean of y given x, column by column."""
        return math.sqrt(-math.expm1(-2 * self.nats)) * x if self.nats else 0.0

    def _log_density(self, square: Array, k: int) -> Array:
        """Return the log density of `k` columns at |z|^2 (n,), without terms that cancel."""
        half = (self.dof + k) / 2
        scale = gammaln(half) - gammaln(self.dof / 2)
        return np.asarray(scale - half * np.log1p(square / self.dof))


def _g(u: float) -> float:
    return float(gammaln(u / 2) - u / 2 * digamma(u / 2))


def student(dim_x: int, dim_y: int, dof: float) -> Task:
    """Return the Student task with identity dispersion and `dof` degrees of freedom."""
    if min(dim_x, dim_y) < 1:
        raise ValueError(f"dim_x and dim_y must be at least 1, got {dim_x!r} and {dim_y!r}")
    if not 0 < dof < np.inf:
        raise ValueError(f"dof must be positive and finite, got {dof!r}")
    rows = _Student(dim_x, dim_y, dof)
    name = f"student-identity-{dim_x}-{dim_y}-{dof:.12g}"
    return Task(name, rows.mi, dim_x, dim_y, rows.draw, rows.score)


def correlated_student(d: int, mi: float, dof: float) -> Task:
    """Return the Student task of `d` columns a side, x_i and y_i correlated, `mi` nats in total.

    The common divisor alone contributes `student(d, d, dof).mi`; `mi` cannot be less.
    """
    least = student(d, d, dof).mi
    most = least + MOST_NATS_A_COLUMN * d
    if not least <= mi <= most:
        raise ValueError(
            f"mi must be in [{least:.4g}, {most:.4g}] for d={d} and dof={dof:.12g}, got {mi!r}"
        )
    rows = _Student(d, d, dof, nats=(mi - least) / d)
    name = f"student-{d}d-{mi:.12g}nats-dof{dof:.12g}"
    return Task(name, float(mi), d, d, rows.draw, rows.score)
