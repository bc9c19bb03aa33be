r"""Is the test of independence given z right, and does it find dependence? Level, power and cost.

Each family is a way in which x and y depend on z and on noise $e$ and $f$ of their own. Under
independence given z the noises are independent. Three shapes of dependence are added to $f$, with
strengths that fall with the root of n, so that no power is near 1 for large n alone:

- `line`: $c\, e$;
- `bend`: $c\, (\min(e^2, 9) - 1)$, which no correlation of residuals sees;
- `varying`: $c\, e\, s(z)$ with a sign that changes with z.

Other tests run where they are installed: RCIT and FastKCI of causal-learn. GCM is the correlation
of residuals, here under additive penalised splines. They get the indicators of labels in z.

References:
    Shah and Peters (2020), The hardness of conditional independence testing and the generalised
    covariance measure (GCM).
    Strobl, Zhang and Visweswaran (2019), Approximate kernel-based conditional independence tests
    for fast non-parametric causal discovery (RCIT).
    Schacht and Huang (2025), A fast kernel-based conditional independence test with application to
    causal discovery (FastKCI).
"""

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from ...inference.independence import independence_test
from ...runtime.rowstore import Cell, Row
from .runner import Bench, grouped, mark

__all__ = ["BENCHES", "FAMILIES", "SHAPES"]

Array = NDArray[np.float64]

_LEVEL = 0.05
_LOW, _HIGH = 0.03, 0.08  # false alarms that are allowed
_SIZES = 500, 2_000
_CPU_SECONDS = 0.1  # at the largest size
_OWN = "deminat"
_NONE = "none"
_STRENGTHS = {_NONE: 0.0, "line": 0.15, "bend": 0.15, "varying": 0.25}  # at the smallest size
SHAPES = tuple(_STRENGTHS)
_LEAST_REFUTED = 0.05  # p-value below which a level is above what is allowed
_FEW_VALUES = 5  # of labels in z


@dataclass(frozen=True)
class _Noise:
    """Noise of x and of y, made dependent in some shape."""

    rng: np.random.Generator
    n: int
    shape: str

    def pair(self, signs: Array, heavy: bool = False) -> tuple[Array, Array]:
        """Return e and f (n,) each; `signs` (n,) are s(z)."""
        size, strength = (2, self.n), _STRENGTHS[self.shape] * math.sqrt(_SIZES[0] / self.n)
        e, f = self.rng.standard_t(2, size) / 1.5 if heavy else self.rng.normal(size=size)
        if self.shape == "bend":
            return e, f + strength * (np.minimum(e**2, 9) - 1)
        return e, f + strength * e * (signs if self.shape == "varying" else 1)


_Draw = Callable[[np.random.Generator, _Noise], tuple[Array, Array, Array]]


def _single(of_x: Callable[[Array, Array], Array], of_y: Callable[[Array, Array], Array]) -> _Draw:
    """Return a family with one normal z, and maps of z and the noise of x and of y."""

    def draw(rng: np.random.Generator, noise: _Noise) -> tuple[Array, Array, Array]:
        z = rng.normal(size=noise.n)
        e, f = noise.pair(np.sign(z))
        return of_x(z, e), of_y(z, f), z

    return draw


def _heavy(rng: np.random.Generator, noise: _Noise) -> tuple[Array, Array, Array]:
    """Return a chain whose z and noise have infinite variance."""
    z = rng.standard_t(2, noise.n)
    e, f = noise.pair(np.sign(z), heavy=True)
    return z + e, z + f, z


def _mixed(rng: np.random.Generator, noise: _Noise) -> tuple[Array, Array, Array]:
    """Return a number x and a label y, given a number and a label."""
    number, label = rng.normal(size=noise.n), rng.integers(0, 3, noise.n)
    e, f = noise.pair(np.array([1.2, -1.2, 0.0])[label])
    x = np.array([1.0, -1.0, 0.5])[label] * number + e
    y = np.digitize(0.7 * number + np.array([0.0, 1.0, -1.0])[label] + f, [-0.8, 0.8])
    return x, y.astype(np.float64), np.column_stack([number, label])


def _wide(rng: np.random.Generator, noise: _Noise) -> tuple[Array, Array, Array]:
    """Return effects of five correlated columns, of which two interact."""
    z = rng.normal(size=(noise.n, 5)) + 0.5 * rng.normal(size=(noise.n, 1))
    e, f = noise.pair(np.sign(z[:, 0]))
    x = z[:, 0] + np.sin(2 * z[:, 1]) + 0.5 * z[:, 2] * z[:, 3] + e
    return x, z[:, 0] + np.cos(2 * z[:, 1]) + 0.5 * z[:, 4] ** 2 + f, z


FAMILIES: dict[str, _Draw] = {
    "chain": _single(lambda z, e: z + e, lambda z, f: z + f),
    "tight": _single(lambda z, e: z + 0.3 * e, lambda z, f: z + 0.3 * f),
    "bent": _single(lambda z, e: np.sin(2 * z) + 0.5 * e, lambda z, f: z**2 + 0.5 * f),
    "heavy": _heavy,
    "mixed": _mixed,
    "wide": _wide,
    "spread": _single(lambda z, e: z * e, lambda z, f: np.exp(z / 2) * f),
}


def _own(x: Array, y: Array, z: Array, seed: int) -> float:
    return independence_test(x, y, given=z, seed=seed).p_value


def _gcm(x: Array, y: Array, z: Array, seed: int) -> float:
    """Return the p-value of the correlation of residuals under additive splines."""
    known, products = _with_indicators(z), np.ones(len(x))
    for side in (x, y):
        splines = SplineTransformer(8, knots="quantile")
        regression = make_pipeline(splines, RidgeCV(np.logspace(-3, 4, 8)))
        products *= side - regression.fit(known, side).predict(known)
    return float(2 * norm.sf(abs(products.sum()) / (products.std() * math.sqrt(len(x)))))


def _causal_learn(name: str) -> Callable[[Array, Array, Array, int], float]:
    """Return a test of causal-learn, in one process."""

    def test(x: Array, y: Array, z: Array, seed: int) -> float:
        from causallearn.utils.cit import CIT

        columns = np.column_stack([x, y, _with_indicators(z)])
        np.random.seed(seed)  # noqa: NPY002 (causal-learn draws from the global generator)
        with joblib.parallel_config(backend="sequential"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return float(CIT(columns, name)(0, 1, list(range(2, columns.shape[1]))))

    return test


def _with_indicators(z: Array) -> Array:
    """Return columns of z (n, ...) with indicators of the values of labels."""
    columns: list[Array] = []
    for column in z.reshape(len(z), -1).T:
        values = np.unique(column)
        few = len(values) <= _FEW_VALUES
        columns += [(column == v).astype(np.float64) for v in values[1:]] if few else [column]
    return np.column_stack(columns)


@dataclass(frozen=True)
class _Method:
    """A test, in how many runs it is measured, the package that it needs, and at which sizes."""

    test: Callable[[Array, Array, Array, int], float]
    runs: int
    package: str = "sklearn"
    sizes: Sequence[int] = _SIZES

    def is_installed(self) -> bool:
        """Tell whether the package is there."""
        return find_spec(self.package) is not None


_METHODS = {
    _OWN: _Method(_own, 300),
    "gcm": _Method(_gcm, 100),
    "rcit": _Method(_causal_learn("rcit"), 100, "causallearn"),
    "fastkci": _Method(
        _causal_learn("fastkci"), 10, "causallearn", _SIZES[:1]
    ),  # 12 s each of 2,000 rows
}


def _cells(seeds: Sequence[int]) -> list[Cell]:
    """Return a cell for each family, size and shape, and each test that is installed."""
    return [
        {"method": name, "n": n, "family": family, "dependence": shape, "seed": seed}
        for seed in seeds
        for name, method in _METHODS.items()
        if method.is_installed()
        for n in method.sizes
        for family in FAMILIES
        for shape in SHAPES
    ]


def _run(cell: Cell) -> Row:
    """Return the number of runs, that of rejections at 5%, and the CPU-seconds of a test."""
    method, draw = _METHODS[cell["method"]], FAMILIES[cell["family"]]
    names = f"{cell['family']} {cell['dependence']}".encode()
    root = np.random.SeedSequence([cell["seed"], cell["n"], *names])
    rejected, cpu = 0, 0.0
    for child in root.spawn(method.runs):
        rng = np.random.default_rng(child)
        sample = draw(rng, _Noise(rng, cell["n"], cell["dependence"]))
        start = time.process_time()
        rejected += method.test(*sample, int(rng.integers(1 << 31))) <= _LEVEL
        cpu += time.process_time() - start
    return {"runs": method.runs, "rejected": rejected, "cpu": round(cpu / method.runs, 4)}


@dataclass(frozen=True)
class _Measured:
    """What rows say of a test, in one family and size."""

    level: float
    runs: int
    powers: dict[str, float]
    cpu: float

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "_Measured":
        """Return the shares of rejections in each shape."""
        shapes = {shape: own for (shape,), own in grouped(rows, "dependence").items()}
        counts = {shape: sum(r["runs"] for r in own) for shape, own in shapes.items()}
        shares = {s: sum(r["rejected"] for r in own) / counts[s] for s, own in shapes.items()}
        cpu = sum(r["cpu"] for r in rows) / len(rows)
        return cls(shares.pop(_NONE), counts[_NONE], shares, cpu)

    @property
    def power(self) -> float:
        """Mean over shapes of dependence."""
        return float(np.mean(list(self.powers.values())))

    def keeps_level(self) -> bool:
        """Tell whether false alarms are no evidence of a level above what is allowed."""
        count = round(self.level * self.runs)
        return bool(binom.sf(count - 1, self.runs, _HIGH) > _LEAST_REFUTED)


def measurements(rows: Sequence[Row]) -> dict[tuple[int, str], dict[str, _Measured]]:
    """Return what rows say of each test, by n and family; shapes must be complete."""
    found: dict[tuple[int, str], dict[str, _Measured]] = {}
    for (n, family, method), own in grouped(rows, "n", "family", "method").items():
        if {r["dependence"] for r in own} == set(SHAPES):
            found.setdefault((n, family), {})[method] = _Measured.of(own)
    return found


def _verdict(rows: Sequence[Row]) -> list[str]:
    """Return lines on level, power and time."""
    found = {key: by for key, by in measurements(rows).items() if _OWN in by}
    lines = [line for key, by in found.items() for line in _family_verdict(*key, by)]
    lines += [_shape_verdict(shape, list(found.values())) for shape in SHAPES[1:]]
    slowest = max((by[_OWN].cpu for (n, _), by in found.items() if n == _SIZES[-1]), default=0.0)
    missing = sorted(set(_METHODS) - {r["method"] for r in rows})
    lines.append(
        f"{mark(slowest <= _CPU_SECONDS)} {slowest:.3f} CPU-seconds a test in the slowest family, "
        f"n={_SIZES[-1]} (at most {_CPU_SECONDS})"
        + (f"; not run: {', '.join(missing)}" if missing else "")
    )
    return lines


def _peers(by_method: dict[str, _Measured]) -> dict[str, _Measured]:
    """Return the other tests that keep their level."""
    return {name: m for name, m in by_method.items() if name != _OWN and m.keeps_level()}


def _family_verdict(n: int, family: str, by_method: dict[str, _Measured]) -> list[str]:
    own, peers = by_method[_OWN], _peers(by_method)
    lines = [
        f"{mark(_LOW <= own.level <= _HIGH)} {family}, n={n}: {own.level:.1%} false alarms at "
        f"5% ({_LOW:.0%} to {_HIGH:.0%}), {own.runs} runs"
    ]
    if peers:
        best = max(peers, key=lambda name: peers[name].power)
        lines.append(
            f"{mark(own.power >= peers[best].power)} {family}, n={n}: mean power "
            f"{own.power:.2f}, {best} {peers[best].power:.2f}, the best that keeps its level"
        )
    return lines


def _shape_verdict(shape: str, families: Sequence[dict[str, _Measured]]) -> str:
    """Compare power for one shape with that of the best of the others, family by family."""
    ahead = [
        by[_OWN].powers[shape] - max(peer.powers[shape] for peer in _peers(by).values())
        for by in families
        if _peers(by)
    ]
    least = min(ahead, default=0.0)
    return (
        f"{mark(least >= 0)} {shape} alone: found at least as often as by the best of the others "
        f"in {sum(a >= 0 for a in ahead)} of {len(ahead)} families and sizes; difference in power "
        f"{least:+.2f} to {max(ahead, default=0.0):+.2f}"
    )


BENCHES = {"given": Bench("the test given z is right and finds", _cells, _run, _verdict, runs=1)}
