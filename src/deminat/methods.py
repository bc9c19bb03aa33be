"""Names become objects: the name of a method and the name of a preset choose an estimator.

Every estimator answers by one protocol, `MIEstimator`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, Protocol, Self, get_args

import numpy as np
from numpy.typing import NDArray

from .classical import KSG, Gaussian
from .critics import ConvCritic, MLPCritic
from .estimators import AUTO, PAPER, Estimator
from .flows import FLOW_PAPER, GM
from .inference import quick
from .inputs import Sample
from .objectives import CCMI, DEMI, JSD, MINE, NWJ, SMILE, InfoNCE, Objective
from .results import MIResult
from .training import Progress
from .transforms import Standardize

__all__ = ["METHODS", "MIEstimator", "Method", "Preset", "estimator_for"]

Preset = Literal["auto", "quick", "paper"]


class MIEstimator(Protocol):
    """What every estimator of this library does."""

    @property
    def name(self) -> str:
        """What results call it."""
        ...

    def fit(self, x: Any, y: Any) -> Self:
        """Learn from pairs."""
        ...

    def log_ratio(self, x: Any, y: Any) -> NDArray[np.float64]:
        """Return the log ratio (n,) of pairs, in nats."""
        ...

    def estimate(self, x: Any, y: Any) -> MIResult:
        """Return the mutual information of pairs, new ones if it is to be believed."""
        ...

    def score(self, x: Any, y: Any) -> float:
        """Return minus the held-out loss, for model selection."""
        ...

    def measure(
        self, sample: Sample, *, folds: int, n_jobs: int, progress: Progress | None
    ) -> MIResult:
        """Return the mutual information of all pairs of a sample."""
        ...


Method = str | Objective | MIEstimator

METHODS: dict[str, Callable[[], Objective | MIEstimator]] = {
    "demi": DEMI,
    "jsd": JSD,
    "ccmi": CCMI,
    "smile": SMILE,
    "mine": MINE,
    "nwj": NWJ,
    "infonce": InfoNCE,
    "gm": GM,
    "ksg": KSG,
    "gaussian": Gaussian,
    "copula": lambda: Gaussian(ranks=True),
}


def estimator_for(
    method: Method, preset: Preset = "auto", sample: Sample | None = None, seed: int = 0
) -> MIEstimator:
    """Return the estimator that a method and a preset stand for.

    Args:
        method: A name, an objective, or an estimator, which is returned as it is.
        preset: `"auto"`, `"quick"` or `"paper"`.
        sample: What it is to be used on, since images want another critic.
        seed: Of all randomness.
    """
    if preset not in get_args(Preset):
        raise ValueError(f'preset must be "auto", "quick" or "paper", got {preset!r}')
    if isinstance(method, str):
        if method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
        method = METHODS[method]()
        if isinstance(method, GM):
            return _flows(preset, seed)
    if isinstance(method, Objective):
        return _neural(method, preset, sample, seed)
    return method


def _flows(preset: Preset, seed: int) -> GM:
    if preset == "paper":
        return GM(scaling=Standardize, training=FLOW_PAPER, seed=seed)
    return GM(seed=seed)


def _neural(objective: Objective, preset: Preset, sample: Sample | None, seed: int) -> Estimator:
    image = sample is not None and _is_image_pair(sample)
    if preset == "auto" and not image:
        return Estimator(objective, seed=seed)
    if preset == "quick" and not image:
        return replace(quick(seed, sample), objective=objective)
    training = PAPER if preset == "paper" else replace(PAPER, halve_at=(), stopping=AUTO.stopping)
    if objective.trains_as is objective and not isinstance(objective, DEMI):
        training = replace(training, batch=64, epochs=20)  # no label z: 64 pairs a batch
    if isinstance(objective, InfoNCE):  # of a batch, all others: its ceiling is log(batch)
        training = replace(training, negatives=training.batch - 1)
    critic = ConvCritic if image else MLPCritic
    return Estimator(objective, critic, Standardize, training, None, seed, correct=False)


def _is_image_pair(sample: Sample) -> bool:
    """Tell whether both sides are (channels, height, width) of one size."""
    return sample.x.ndim == sample.y.ndim == 4 and sample.x.shape[2:] == sample.y.shape[2:]
