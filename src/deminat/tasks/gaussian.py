r"""Normal tasks: the Gaussians of the paper, their cubes, and any covariance.

Split a normal vector into $x$ and $y$. Given $x$, $y$ is normal with mean $Bx$ and
covariance $C$, where $B = \Sigma_{yx}\Sigma_{xx}^{-1}$ and $C = \Sigma_{yy} - B\Sigma_{xy}$.
With $|v|_A^2 = v^\top A^{-1} v$, the log ratio $\log p(y \mid x) / p(y)$ is

$$f(x, y) = I + \tfrac12 |y|_{\Sigma_{yy}}^2 - \tfrac12 |y - Bx|_C^2,
\qquad I = \tfrac12 \log \frac{\det \Sigma_{yy}}{\det C}.$$

The paper's Gaussians have unit variances and correlate $x_i$ with $y_i$ alone, by
$\rho = \sqrt{1 - e^{-2I/d}}$; then $B = \rho$ and $C = e^{-2I/d}$ are scalars.

References:
    Liao et al. (2020), DEMI: Discriminative Estimator of Mutual Information, section 3.1.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from .maps import Array, cube
from .task import Task

__all__ = ["MOST_NATS_A_COLUMN", "cubic", "gaussian", "normal"]

# At 25 nats a column the noise is 1e-11, still well above the rounding of y - rho x.
MOST_NATS_A_COLUMN = 25


@dataclass(frozen=True, eq=False)
class _Columns:
    """Columns y = rho x + noise e, each with its own x and e."""

    d: int
    rho: float
    noise: float

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        x = rng.standard_normal((n, self.d))
        return x, self.rho * x + self.noise * rng.standard_normal((n, self.d))

    def score(self, x: Array, y: Array) -> Array:
        residual = (y - self.rho * x) / self.noise
        return _norm_drop(y, residual) - self.d * math.log(self.noise)


@dataclass(frozen=True, eq=False)
class _Regression:
    """Rows y = x B' + noise, with the lower Cholesky factors of x, y and the noise."""

    slope: Array
    factor_x: Array
    factor_y: Array
    factor_noise: Array

    @property
    def mi(self) -> float:
        return float(np.sum(np.log(np.diag(self.factor_y) / np.diag(self.factor_noise))))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        x = rng.standard_normal((n, len(self.factor_x))) @ self.factor_x.T
        noise = rng.standard_normal((n, len(self.factor_y))) @ self.factor_noise.T
        return x, x @ self.slope.T + noise

    def score(self, x: Array, y: Array) -> Array:
        residual = _whiten(y - x @ self.slope.T, self.factor_noise)
        return _norm_drop(_whiten(y, self.factor_y), residual) + self.mi


def _norm_drop(before: Array, after: Array) -> Array:
    """Return half the drop of the squared norm, from whitened rows (n, d), as (n,)."""
    return np.asarray(np.sum(before * before - after * after, axis=1) / 2)


def _whiten(rows: Array, factor: Array) -> Array:
    return np.asarray(solve_triangular(factor, rows.T, lower=True, check_finite=False).T)


def gaussian(d: int, mi: float) -> Task:
    """Return the paper's task: `d` columns a side, x_i and y_i correlated, `mi` nats in total."""
    if d < 1:
        raise ValueError(f"d must be at least 1, got {d!r}")
    if not 0 <= mi <= MOST_NATS_A_COLUMN * d:
        raise ValueError(f"mi must be in [0, {MOST_NATS_A_COLUMN} d], got {mi!r} for d={d}")
    columns = _Columns(d, rho=math.sqrt(-math.expm1(-2 * mi / d)), noise=math.exp(-mi / d))
    name = f"gaussian-{d}d-{mi:.12g}nats"
    return Task(name, float(mi), d, d, columns.draw, columns.score)


def cubic(d: int, mi: float) -> Task:
    """Return the paper's second task: `gaussian(d, mi)` with every y_i cubed."""
    base = gaussian(d, mi)
    return base.mapped(base.name.replace("gaussian", "cubic"), y=cube)


def normal(covariance: npt.ArrayLike, dim_x: int, name: str = "normal") -> Task:
    """Return the normal task of zero mean and a given covariance.

    Args:
        covariance: Symmetric and positive definite, (dim_x + dim_y, dim_x + dim_y).
        dim_x: How many of the leading columns are x.
        name: The name of the task.
    """
    sigma = np.asarray(covariance, dtype=np.float64)
    _check_covariance(sigma, dim_x)
    xx, xy, yy = sigma[:dim_x, :dim_x], sigma[:dim_x, dim_x:], sigma[dim_x:, dim_x:]
    slope = np.asarray(np.linalg.solve(xx, xy).T, dtype=np.float64)
    rows = _Regression(slope, _factor(xx), _factor(yy), _factor(yy - slope @ xy))
    return Task(name, rows.mi, dim_x, len(sigma) - dim_x, rows.draw, rows.score)


def _factor(covariance: Array) -> Array:
    return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)


def _check_covariance(sigma: Array, dim_x: int) -> None:
    if sigma.ndim != 2 or sigma.shape[0] != sigma.shape[1]:
        raise ValueError(f"covariance must be square, got shape {sigma.shape}")
    if not np.allclose(sigma, sigma.T):
        raise ValueError("covariance must be symmetric")
    if not np.linalg.eigvalsh(sigma)[0] > 0:
        raise ValueError("covariance must be positive definite")
    if not 0 < dim_x < len(sigma):
        raise ValueError(f"dim_x must be in [1, {len(sigma) - 1}], got {dim_x!r}")
