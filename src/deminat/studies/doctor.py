"""Is this installation sound? Versions, device, threads, and an estimate with a known answer."""

import os
import platform
import time
from dataclasses import replace
from typing import Any

import torch

from ..api import estimate
from ..estimators.neural import Estimator
from ..runtime.environment import versions
from ..runtime.progress import Progress
from ..tasks import gaussian
from ..training.config import AUTO

__all__ = ["examine"]

_PACKAGES = "numpy", "scipy", "scikit-learn", "torch", "polars", "typer", "matplotlib", "zuko"
_FAR = 5.0  # standard errors; a correct estimator is farther off once in a million


def examine(progress: Progress | None = None) -> dict[str, Any]:
    """Return facts about the installation; `self_test` is "passed" if the estimate is right."""
    task = gaussian(1, 0.5)
    x, y = task.sample(1000, seed=0)
    estimator = Estimator(training=replace(AUTO, batch=128, steps=300))
    start = time.perf_counter()
    result = estimate(x, y, method=estimator, folds=2, progress=progress)
    error = abs(result.mi - task.log_ratio(x, y).mean())
    passed = error < max(_FAR * result.standard_error, 0.05)
    seconds = time.perf_counter() - start
    cuda = "CUDA is there, unused" if torch.cuda.is_available() else "no CUDA"
    return {
        "python": platform.python_version(),
        **versions(_PACKAGES),
        "device": f"cpu ({cuda}; deminat trains on the CPU)",
        "threads": f"1 a process for training; {os.cpu_count()} cores: n_jobs may use them",
        "self_test": "passed" if passed else "FAILED",
        "estimate": f"{result.mi:.3f} nats, the truth is {task.mi:.3f}, in {seconds:.1f} s",
    }
