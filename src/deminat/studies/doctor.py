"""Is this installation sound? Versions, device, threads, and an estimate that must be right."""

import os
import platform
import time
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from ..api import estimate
from ..estimators.neural import Estimator
from ..runtime.progress import Progress
from ..tasks import gaussian
from ..training.config import AUTO

__all__ = ["examine"]

_PACKAGES = "numpy", "scipy", "scikit-learn", "torch", "polars", "typer", "matplotlib", "zuko"
_FAR = 5.0  # standard errors; a right estimator is farther off once in a million


def examine(progress: Progress | None = None) -> dict[str, Any]:
    """Return what there is to know of the installation; `self_test` is "passed" if all is well."""
    report: dict[str, Any] = {"python": platform.python_version()}
    report |= {name: _version(name) for name in ("deminat", *_PACKAGES)}
    cuda = "CUDA is there, unused" if torch.cuda.is_available() else "no CUDA"
    report["device"] = f"cpu ({cuda}; deminat trains on the CPU)"
    report["threads"] = f"1 a process for training; {os.cpu_count()} cores: n_jobs may use them"
    return report | _self_test(progress)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _self_test(progress: Progress | None) -> dict[str, Any]:
    task = gaussian(1, 0.5)
    x, y = task.sample(1000, seed=0)
    quick = Estimator(training=replace(AUTO, batch=128, steps=300))
    start = time.perf_counter()
    result = estimate(x, y, method=quick, folds=2, progress=progress)
    off = abs(result.mi - task.log_ratio(x, y).mean())
    passed = off < max(_FAR * result.standard_error, 0.05)
    seconds = time.perf_counter() - start
    return {
        "self_test": "passed" if passed else "FAILED",
        "estimate": f"{result.mi:.3f} nats, the truth is {task.mi:.3f}, in {seconds:.1f} s",
    }
