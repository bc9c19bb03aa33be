"""Learning representations that keep information: the objectives as losses, and Deep InfoMax."""

from ..data.pairs import partners
from .deep import ConcatCritic, DeepInfoMax, DotCritic, Encoder, Features
from .losses import InfoMaxLoss, gathered

__all__ = [
    "ConcatCritic",
    "DeepInfoMax",
    "DotCritic",
    "Encoder",
    "Features",
    "InfoMaxLoss",
    "gathered",
    "partners",
]
