"""How much does X tell you about Y?

    import deminat
    print(deminat.estimate(x, y))

Names are imported on first use, so that `import deminat` and the command line start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import datasets as datasets
    from . import infomax as infomax
    from . import tasks as tasks
    from .api import compare, estimate
    from .checks import Check, check
    from .classical import KSG, Gaussian
    from .critics import ConvCritic, MLPCritic, SeparableCritic
    from .errors import DataError, TrainingError
    from .estimators import AUTO, PAPER, Estimator
    from .flows import GM
    from .history import Callback
    from .inference import independence_test
    from .matrix import PairwiseResult, pairwise
    from .methods import METHODS
    from .objectives import CCMI, DEMI, JSD, MINE, NWJ, SMILE, InfoNCE
    from .reference import GaussianCopula, choose_start
    from .results import Caution, IndependenceResult, MIResult
    from .saving import load
    from .selection import MISelector
    from .tensorboard import TensorBoard
    from .training import EarlyStopping, Training
    from .transforms import RankToNormal, Robust, Standardize, Views

__version__ = "0.1.0"

_ROOMS = {
    "api": ("compare", "estimate"),
    "checks": ("Check", "check"),
    "classical": ("KSG", "Gaussian"),
    "critics": ("ConvCritic", "MLPCritic", "SeparableCritic"),
    "errors": ("DataError", "TrainingError"),
    "estimators": ("AUTO", "PAPER", "Estimator"),
    "flows": ("GM",),
    "history": ("Callback",),
    "inference": ("independence_test",),
    "matrix": ("PairwiseResult", "pairwise"),
    "methods": ("METHODS",),
    "objectives": ("CCMI", "DEMI", "JSD", "MINE", "NWJ", "SMILE", "InfoNCE"),
    "reference": ("GaussianCopula", "choose_start"),
    "results": ("Caution", "IndependenceResult", "MIResult"),
    "saving": ("load",),
    "selection": ("MISelector",),
    "tensorboard": ("TensorBoard",),
    "training": ("EarlyStopping", "Training"),
    "transforms": ("RankToNormal", "Robust", "Standardize", "Views"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "AUTO",
    "CCMI",
    "DEMI",
    "GM",
    "JSD",
    "KSG",
    "METHODS",
    "MINE",
    "NWJ",
    "PAPER",
    "SMILE",
    "Callback",
    "Caution",
    "Check",
    "ConvCritic",
    "DataError",
    "EarlyStopping",
    "Estimator",
    "Gaussian",
    "GaussianCopula",
    "IndependenceResult",
    "InfoNCE",
    "MIResult",
    "MISelector",
    "MLPCritic",
    "PairwiseResult",
    "RankToNormal",
    "Robust",
    "SeparableCritic",
    "Standardize",
    "TensorBoard",
    "Training",
    "TrainingError",
    "Views",
    "__version__",
    "check",
    "choose_start",
    "compare",
    "datasets",
    "estimate",
    "independence_test",
    "infomax",
    "load",
    "pairwise",
    "tasks",
]


def __getattr__(name: str) -> Any:
    if name in ("datasets", "infomax", "tasks"):
        return import_module(f".{name}", __name__)
    if name in _ROOM_OF:
        return getattr(import_module(f".{_ROOM_OF[name]}", __name__), name)
    raise AttributeError(f"module 'deminat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
