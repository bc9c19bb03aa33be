"""What to estimate and how: the settings of a call, checked once."""

from collections.abc import Sequence
from dataclasses import dataclass

from joblib import effective_n_jobs

from ..runtime.progress import Progress
from ..training.callbacks import Callback
from .registry import PRESETS, Method, Preset

__all__ = ["Request"]


@dataclass(frozen=True)
class Request:
    """The settings of `estimate`, `compare` and `check`.

    Args:
        methods: Names, objectives or estimators.
        preset: A name of `PRESETS`.
        folds: Number of folds.
        seed: Of all randomness.
        budget: Seconds to take at most; `None` for no limit.
        n_jobs: Processes to use, as in joblib.
        progress: Called with the share of the work that is done.
        callbacks: Called at each event of each training.
    """

    methods: Sequence[Method] = ("demi",)
    preset: Preset = "auto"
    folds: int = 5
    seed: int = 0
    budget: float | None = None
    n_jobs: int = 1
    progress: Progress | None = None
    callbacks: Sequence[Callback] = ()

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise ValueError(f"preset must be one of {', '.join(PRESETS)}; got {self.preset!r}")
        if self.folds < 2:
            raise ValueError(f"folds must be at least 2, got {self.folds!r}")
        if self.budget is not None and not self.budget > 0:
            raise ValueError(f"budget must be seconds, above 0; got {self.budget!r}")
        if not isinstance(self.n_jobs, int) or self.n_jobs == 0:
            raise ValueError(
                f"n_jobs must be a number of processes, -1 for all cores; got {self.n_jobs!r}"
            )

    @property
    def processes(self) -> int:
        """How many processes serve it."""
        return int(min(effective_n_jobs(self.n_jobs), self.folds))
