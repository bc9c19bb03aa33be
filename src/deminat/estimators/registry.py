"""Names of methods."""

from collections.abc import Callable
from typing import TypeAlias, get_args

from ..data.sample import Sample
from ..objectives import CCMI, DEMI, JSD, MINE, NWJ, SMILE, InfoNCE, Objective
from .base import MIEstimator
from .flows import GM
from .gaussian import Gaussian
from .ksg import KSG
from .recipes import Preset, flow_estimator, neural_estimator

__all__ = ["METHODS", "Method", "estimator_for"]

Method: TypeAlias = str | Objective | MIEstimator
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
            return flow_estimator(preset, seed)
    if isinstance(method, Objective):
        return neural_estimator(method, preset, sample, seed)
    return method
