r"""The multivariate Student task: no correlation, and yet dependent.

$x$ and $y$ are independent normals divided by one common $\sqrt{w/\nu}$ with
$w \sim \chi^2_\nu$: a far $x$ tells of a small $w$, hence of a far $y$. The density of $k$
such columns is, up to factors that cancel in the ratio,

$$p_k(z) \propto \Gamma\bigl(\tfrac{\nu + k}2\bigr)\,(1 + |z|^2/\nu)^{-(\nu + k)/2},$$

and with $g(u) = \ln\Gamma(u/2) - \tfrac u2\,\psi(u/2)$ for $m$ and $n$ columns

$$I(x; y) = g(\nu) + g(\nu + m + n) - g(\nu + m) - g(\nu + n).$$

References:
    Arellano-Valle et al. (2013), Shannon entropy and mutual information for multivariate
    skew-elliptical distributions, Scandinavian Journal of Statistics 40.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln

from deminat.tasks.maps import Array
from deminat.tasks.task import Task

__all__ = ["student"]


@dataclass(frozen=True, eq=False)
class _Student:
    dim_x: int
    dim_y: int
    dof: float

    @property
    def mi(self) -> float:
        v, m, n = self.dof, self.dim_x, self.dim_y
        return _g(v) + _g(v + m + n) - _g(v + m) - _g(v + n)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        z = rng.standard_normal((n, self.dim_x + self.dim_y))
        z /= np.sqrt(rng.chisquare(self.dof, size=(n, 1)) / self.dof)
        return z[:, : self.dim_x], z[:, self.dim_x :]

    def score(self, x: Array, y: Array) -> Array:
        square_x, square_y = np.sum(x * x, axis=1), np.sum(y * y, axis=1)
        joint = self._log_density(square_x + square_y, self.dim_x + self.dim_y)
        apart = self._log_density(square_x, self.dim_x) + self._log_density(square_y, self.dim_y)
        return joint - apart

    def _log_density(self, square: Array, k: int) -> Array:
        """Return the log density of `k` columns at |z|^2 (n,), less what the ratio cancels."""
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
