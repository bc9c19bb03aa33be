"""Names of methods and presets, without torch: commands list them before anything is loaded.

To add a method, write its objective (or estimator) and one line in `METHODS`. To add a preset,
write its recipe in `recipes` and one line in `PRESETS`. Both also take entries from outside:
`METHODS["mine2"] = MyObjective`, `PRESETS["tiny"] = MyRecipe`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, Union

if TYPE_CHECKING:
    from ..data.sample import Sample
    from ..objectives import Objective
    from .base import MIEstimator
    from .recipes import Recipe

__all__ = ["METHODS", "PRESETS", "Entry", "Method", "Preset", "estimator_for", "trains"]

Method: TypeAlias = Union[str, "Objective", "MIEstimator"]
Preset: TypeAlias = str


@dataclass(frozen=True)
class Entry:
    """Something to be made when it is needed.

    Args:
        module: Where it is, within deminat.
        name: What it is called there.
        settings: To make it with.
        trains: Whether it trains anything.
    """

    module: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    trains: bool = True

    def __call__(self) -> Any:
        """Return it."""
        return getattr(import_module(f"deminat.{self.module}"), self.name)(**self.settings)


METHODS: dict[str, Callable[[], "Objective | MIEstimator"]] = {
    "demi": Entry("objectives", "DEMI"),
    "jsd": Entry("objectives", "JSD"),
    "ccmi": Entry("objectives", "CCMI"),
    "smile": Entry("objectives", "SMILE"),
    "smile-all-pairs": Entry("objectives", "SMILE", {"all_pairs": True}),
    "mine": Entry("objectives", "MINE"),
    "dv": Entry("objectives", "DV"),
    "nwj": Entry("objectives", "NWJ"),
    "infonce": Entry("objectives", "InfoNCE"),
    "gm": Entry("estimators.flows", "GM"),
    "ksg": Entry("estimators.ksg", "KSG", trains=False),
    "gaussian": Entry("estimators.gaussian", "Gaussian", trains=False),
    "copula": Entry("estimators.gaussian", "Gaussian", {"ranks": True}, trains=False),
}
PRESETS: dict[str, Callable[[], "Recipe"]] = {
    "auto": Entry("estimators.recipes", "Auto"),
    "quick": Entry("estimators.recipes", "Quick"),
    "paper": Entry("estimators.recipes", "Paper"),
}


def trains(method: str) -> bool:
    """Tell whether a method trains anything."""
    return getattr(METHODS[method], "trains", True)


def estimator_for(
    method: Method, preset: Preset = "auto", sample: "Sample | None" = None, seed: int = 0
) -> "MIEstimator":
    """Return the estimator that a method and a preset stand for.

    Args:
        method: A name, an objective, or an estimator, which is returned as it is.
        preset: A name of `PRESETS`.
        sample: What it is to be used on, since images need another critic.
        seed: Of all randomness.
    """
    from ..objectives import Objective
    from .flows import GM

    if preset not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}; got {preset!r}")
    recipe = PRESETS[preset]()
    if isinstance(method, str):
        if method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
        method = METHODS[method]()
        if isinstance(method, GM):
            return recipe.flows(seed)
    if isinstance(method, Objective):
        return recipe.neural(method, sample, seed)
    return method
