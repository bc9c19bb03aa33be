"""Does `MISelector` find the columns that matter, and faster than scikit-learn's scores?

Tables of columns of which some are known to matter, in single nonlinear effects, in pairs that
matter only together, among noisy copies of each other, as labels, counts and with heavy tails. Each
has a target of numbers and one of classes. As many columns are selected as have effects. Hits are
effects of which a column is selected; a noisy copy is as good as its original. Selected columns
without effect are false.

The other side is `SelectKBest` with `mutual_info_regression` or `mutual_info_classif`, which is
told which columns are labels. Both are timed in seconds of one processor.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from ...runtime.rowstore import Cell, Row
from ...selection import MISelector
from .runner import Bench, grouped, mark

__all__ = ["BENCHES", "TABLES"]

Array = NDArray[np.float64]

_OWN = "relevance", "mrmr", "jmi"
_OTHER = "scikit-learn"
_SIZES = 500, 1_500, 5_000
_TARGETS = "number", "class"
_COPIES = 3  # of each column in the table of copies
_LEVELS = 4
_NOISE = 0.5  # standard deviations of the sum of the effects


@dataclass(frozen=True)
class Table:
    """Columns, the sum of their effects, and which column has which effect.

    Args:
        x: (n, d).
        signal: (n,) of mean 0 and variance 1.
        effect: (d,) the effect of a column, or of its original; -1 for none.
        labels: (d,) columns whose order means nothing.
    """

    x: Array
    signal: Array
    effect: NDArray[np.int64]
    labels: NDArray[np.bool_]

    def target(self, kind: str, rng: np.random.Generator) -> Array:
        """Return the signal with noise, as numbers or in three classes of equal size."""
        heavy = rng.standard_t(3, size=len(self.signal))
        noisy = self.signal + _NOISE * heavy
        if kind == "number":
            return noisy
        return np.searchsorted(np.quantile(noisy, [1 / 3, 2 / 3]), noisy).astype(np.float64)


def _singles(rng: np.random.Generator, n: int, transform: Callable[[Array], Array]) -> Table:
    """Return 30 columns of which six have single effects, of six shapes."""
    z = rng.normal(size=(n, 30))
    shapes = (
        z[:, 0] ** 2,
        np.sin(3 * z[:, 1]),
        np.sign(z[:, 2]),
        np.abs(z[:, 3]),
        np.exp(z[:, 4] / 2),
        z[:, 5],
    )
    return _table(transform(z), shapes, range(6))


def _heavy(rng: np.random.Generator, n: int) -> Table:
    """Return the same with tails heavier than those of a Cauchy distribution."""
    return _singles(rng, n, lambda z: np.sign(z) * np.expm1(3 * np.abs(z)))


def _counts(rng: np.random.Generator, n: int) -> Table:
    """Return 30 columns of counts, of which four have effects."""
    x = rng.poisson(np.exp(rng.normal(1, 0.7, size=(n, 30)))).astype(np.float64)
    shapes = np.log1p(x[:, 0]), x[:, 1] == 0, x[:, 2] % 2, np.abs(x[:, 3] - 3) < 2
    return _table(x, shapes, range(4))


def _labels(rng: np.random.Generator, n: int) -> Table:
    """Return 30 columns of labels, of which two have effects, and two together."""
    x = rng.integers(0, _LEVELS, size=(n, 30)).astype(np.float64)
    effects = rng.permuted(np.tile([-1.5, -0.5, 0.5, 1.5], (2, 1)), axis=1)
    codes = x.astype(np.int64)
    agree = (codes[:, 2] + codes[:, 3]) % 2
    shapes = effects[0][codes[:, 0]], effects[1][codes[:, 1]], agree
    return _table(x, shapes, (0, 1, 2, 3), labels=True)


def _pairs(rng: np.random.Generator, n: int, d: int) -> Table:
    """Return columns of which two have single effects, and two pairs effects together only."""
    x = rng.normal(size=(n, d))
    shapes = x[:, 0], np.abs(x[:, 1]), np.sign(x[:, 2] * x[:, 3]), x[:, 4] * x[:, 5]
    return _table(x, shapes, range(6))


def _copies(rng: np.random.Generator, n: int) -> Table:
    """Return four columns with effects of falling size, three noisy copies of each, and noise."""
    z = rng.normal(size=(n, 4))
    copies = np.repeat(z, _COPIES, axis=1) + 0.3 * rng.normal(size=(n, 4 * _COPIES))
    x = np.hstack([copies, rng.normal(size=(n, 20))])
    sizes = 1.5, 1.2, 1.0, 0.8
    shapes = [size * _standard(z[:, i]) for i, size in enumerate(sizes)]
    effect = np.full(x.shape[1], -1)
    effect[: 4 * _COPIES] = np.repeat(np.arange(4), _COPIES)
    signal = _standard(np.sum(shapes, axis=0))
    return Table(x, signal, effect, np.zeros(x.shape[1], dtype=bool))


def _table(
    x: Array, shapes: Sequence[NDArray[Any]], own: Sequence[int], labels: bool = False
) -> Table:
    signal = _standard(np.sum([_standard(shape) for shape in shapes], axis=0))
    effect = np.full(x.shape[1], -1)
    effect[list(own)] = np.arange(len(own))
    return Table(x, signal, effect, np.full(x.shape[1], labels))


def _standard(a: NDArray[Any]) -> Array:
    a = np.asarray(a, dtype=np.float64)
    return np.asarray((a - a.mean()) / a.std())


TABLES: dict[str, Callable[[np.random.Generator, int], Table]] = {
    "single": partial(_singles, transform=lambda z: z),
    "heavy": _heavy,
    "counts": _counts,
    "labels": _labels,
    "pairs-30": partial(_pairs, d=30),
    "pairs-200": partial(_pairs, d=200),
    "copies": _copies,
}


def _cells(seeds: Sequence[int]) -> list[Cell]:
    return [
        {"table": table, "target": target, "n": n, "method": method, "seed": seed}
        for seed in seeds
        for table in TABLES
        for target in _TARGETS
        for n in _SIZES
        for method in (*_OWN, _OTHER)
    ]


def _run(cell: Cell) -> Row:
    """Return hits, false selections and seconds of a way to select columns."""
    place = list(TABLES).index(cell["table"])
    rng = np.random.default_rng([cell["seed"], cell["n"], place])
    table = TABLES[cell["table"]](rng, cell["n"])
    order = rng.permutation(table.x.shape[1])  # ties must not favour the first
    y = table.target(cell["target"], rng)
    x, effect, labels = table.x[:, order], table.effect[order], table.labels[order]
    count = int(effect.max()) + 1
    select = _sklearn if cell["method"] == _OTHER else partial(_own, method=cell["method"])
    with threadpool_limits(1):
        start = time.process_time()
        selected = select(x, y, labels, count, cell["target"] == "class")
        cpu = time.process_time() - start
    hits = len(set(effect[selected].tolist()) - {-1})
    false = int((effect[selected] < 0).sum())
    return {"effects": count, "hits": hits, "false": false, "cpu": round(cpu, 4)}


def _own(
    x: Array, y: Array, labels: NDArray[np.bool_], count: int, is_class: bool, *, method: str
) -> NDArray[np.int64]:
    named = [f"column {j}" for j in np.flatnonzero(labels)] or None
    selector = MISelector(count, method=method, discrete=named, discrete_target=is_class)  # type: ignore[arg-type]
    return np.asarray(selector.fit(x, y).get_support(indices=True))


def _sklearn(
    x: Array, y: Array, labels: NDArray[np.bool_], count: int, is_class: bool
) -> NDArray[np.int64]:
    from sklearn.feature_selection import SelectKBest, mutual_info_classif, mutual_info_regression

    score = mutual_info_classif if is_class else mutual_info_regression
    scored = partial(score, discrete_features=labels, random_state=0)
    return np.asarray(SelectKBest(scored, k=count).fit(x, y).get_support(indices=True))


def _verdict(rows: Sequence[Row]) -> list[str]:
    """Return a line for each of our methods beside the other side, and its worst cell."""
    of_method = {method: own for (method,), own in grouped(rows, "method").items()}
    other = of_method.get(_OTHER, [])
    return [
        line
        for method in _OWN
        if other and of_method.get(method)
        for line in _compared(method, of_method[method], other)
    ]


def _compared(method: str, own: Sequence[Row], other: Sequence[Row]) -> list[str]:
    shares, of_other = (_shares(rows) for rows in (own, other))
    lower = [cell for cell in of_other if shares.get(cell, 1.0) < of_other[cell] - 1e-9]
    mean, other_mean = (float(np.mean(list(s.values()))) for s in (shares, of_other))
    cpu, other_cpu = (float(np.mean([r["cpu"] for r in rows])) for rows in (own, other))
    false, other_false = (float(np.mean([r["false"] for r in rows])) for rows in (own, other))
    worst = "".join(
        f"; {' '.join(map(str, cell))}: {shares[cell]:.2f} beside {of_other[cell]:.2f}"
        for cell in lower
    )
    return [
        f"{mark(mean > other_mean)} {method}: {mean:.3f} of the effects found, scikit-learn "
        f"{other_mean:.3f}, {len(own)} tables",
        f"{mark(not lower)} {method}: fewer than scikit-learn in {len(lower)} of "
        f"{len(of_other)} cells{worst}",
        f"{mark(cpu <= other_cpu)} {method}: {cpu:.2f} s of a processor, scikit-learn "
        f"{other_cpu:.2f} s",
        f"{mark(false <= other_false)} {method}: {false:.2f} false columns a table, scikit-learn "
        f"{other_false:.2f}",
    ]


def _shares(rows: Sequence[Row]) -> dict[tuple[object, ...], float]:
    """Return the share of the effects that are found, by table, target and number of rows."""
    return {
        cell: float(np.mean([r["hits"] / r["effects"] for r in own]))
        for cell, own in grouped(rows, "table", "target", "n").items()
    }


BENCHES = {
    "selection": Bench(
        "MISelector finds what scikit-learn's scores find and more, in less time",
        _cells,
        _run,
        _verdict,
        runs=5,
        jobs=1,
    )
}
