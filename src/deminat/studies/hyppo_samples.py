"""Samples of hyppo's twenty simulations, for `deminat bench power`.

hyppo needs other libraries than deminat, so this file imports nothing of it. Run it by the Python
of an environment of its own, where hyppo is installed:

    python -m venv hyppo && hyppo/bin/pip install hyppo
    hyppo/bin/python src/deminat/studies/hyppo_samples.py samples
    DEMINAT_HYPPO=samples deminat bench power --out results/power.csv

With noise where a simulation has it; sample i has the seed 100,000 + i.
"""

import inspect
import sys
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["FIRST", "SHAPES", "write_samples"]

SHAPES = (50, 1, 400), (100, 1, 400), (300, 1, 100)  # rows, columns, samples
FIRST = 100_000


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


if __name__ == "__main__":
    write_samples(Path(sys.argv[1]))
