"""Samples of hyppo's twenty simulations, and the power of its tests, for `deminat bench power`.

hyppo needs other libraries than deminat, so this file imports nothing of it. Run it by the Python
of an environment of its own, where hyppo is installed:

    python -m venv hyppo && hyppo/bin/pip install hyppo
    hyppo/bin/python src/deminat/studies/hyppo_samples.py samples
    DEMINAT_HYPPO=samples deminat bench power --out results/power.csv

With noise where a simulation has it; sample i has the seed 100,000 + i.

Of several columns a side the power of hyppo's tests is measured on the same samples, at 5%, the way
hyppo's `tools.power` does it. Dcorr, HSIC and MGC find a sample dependent if their statistic is
above 95% of those of samples whose y was shuffled. KMERF has the p-value of its own fast
approximation, on the first samples only: it grows a forest for each. The rows go into `peers.csv`,
beside the samples; what is in it is not run again.
"""

import csv
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FIRST", "SHAPES", "write_peers", "write_samples"]

Array = NDArray[np.float64]

SHAPES = (50, 1, 400), (100, 1, 400), (300, 1, 100), (100, 3, 200), (100, 10, 200)
"""Rows, columns a side, samples."""
FIRST = 100_000
_FIELDS = "n", "columns", "simulation", "peer", "samples", "power"
_STATISTICS = "dcorr", "hsic", "mgc"
_LEVEL = 0.05
_SHUFFLES = 5  # of each sample, for the law of a statistic
_GROWN = 25  # samples of a simulation that KMERF is run on


def write_samples(folder: Path) -> None:
    """Write a file for each number of rows and columns: x and y of all samples, by simulation."""
    from hyppo.tools import SIMULATIONS  # type: ignore[import-not-found]

    folder.mkdir(parents=True, exist_ok=True)
    for n, columns, count in SHAPES:
        arrays: dict[str, Any] = {}
        for name, simulate in SIMULATIONS.items():
            noise = {"noise": True} if "noise" in inspect.signature(simulate).parameters else {}
            samples = []
            for i in range(count):
                np.random.seed(FIRST + i)  # noqa: NPY002 (hyppo draws by it)
                samples.append(simulate(n, columns, **noise))
            arrays[f"{name}_x"] = np.array([x for x, _ in samples])
            arrays[f"{name}_y"] = np.array([y for _, y in samples])
        np.savez(folder / f"{n}_{columns}.npz", **arrays)


def write_peers(folder: Path) -> None:
    """Write the power of hyppo's tests on the samples of several columns a side."""
    path = folder / "peers.csv"
    done = _peers_done(path)
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if not done:
            writer.writerow(_FIELDS)
        for peers in (_STATISTICS, ("kmerf",)):
            for n, columns, name, x, y in _several_columns(folder):
                for peer in peers:
                    if (str(n), str(columns), name, peer) not in done:
                        writer.writerow([n, columns, name, peer, *_found(peer, x, y)])
                file.flush()


def _peers_done(path: Path) -> set[tuple[str, ...]]:
    """Return the rows, columns, simulations and peers that a file has."""
    if not path.exists():
        return set()
    with path.open(encoding="utf-8") as file:
        return {tuple(row[key] for key in _FIELDS[:4]) for row in csv.DictReader(file)}


def _several_columns(folder: Path) -> Iterator[tuple[int, int, str, Array, Array]]:
    """Yield rows, columns, name, x and y of each simulation of several columns a side."""
    for n, columns, _ in SHAPES:
        if columns > 1:
            with np.load(folder / f"{n}_{columns}.npz") as arrays:
                for name in sorted({key[:-2] for key in arrays}):
                    yield n, columns, name, arrays[f"{name}_x"], arrays[f"{name}_y"]


def _found(peer: str, x: Array, y: Array) -> tuple[int, float]:
    """Return how many samples (m, n, d) a peer was run on, and its power."""
    from hyppo.independence import KMERF, MGC, Dcorr, Hsic  # type: ignore[import-not-found]

    if peer != "kmerf":
        test = {"dcorr": Dcorr, "hsic": Hsic, "mgc": MGC}[peer]()
        return len(x), _power(test.statistic, x, y)
    some = list(zip(x, y, strict=True))[:_GROWN]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        p_values = [KMERF(random_state=0).test(a, b)[1] for a, b in some]
    return len(some), float(np.mean(np.array(p_values) <= _LEVEL))


def _power(statistic: Callable[[Array, Array], float], x: Array, y: Array) -> float:
    """Return the share of samples whose statistic is above that of shuffled ones."""
    rng = np.random.default_rng(FIRST)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = [statistic(a, b) for a, b in zip(x, y, strict=True)]
        null = [
            statistic(a, rng.permutation(b))
            for a, b in zip(x, y, strict=True)
            for _ in range(_SHUFFLES)
        ]
    return float(np.mean(np.array(seen) > np.quantile(null, 1 - _LEVEL)))


if __name__ == "__main__":
    write_samples(Path(sys.argv[1]))
    write_peers(Path(sys.argv[1]))
