r"""Starts in closed form: log ratios that need no network.

A model $r$ of the pairs whose marginals are known too gives a log ratio at once,
$f_0 = \log r(x, y) - \log r(x) - \log r(y)$. Averaged over the true pairs it reads

$$ \mathbb E f_0 = I - \bigl[D(p_{xy}\|r_{xy}) - D(p_x\|r_x) - D(p_y\|r_y)\bigr], $$

so what it misses depends on how far the model is off, not on how much information there is. A
classifier is the other way round: it needs no model, but above some ten nats it tells pairs from
strangers without a fault, its cross-entropy is near zero for every critic, and nothing is left to
learn from. Hence both: where the cross-entropy can see, a Gaussian copula starts, or a sum over
columns where some values are frequent, and networks go on; where it is blind, the likelihood of
held-out rows chooses among Gaussian mixtures, which stand alone.
"""

from .additive import Additive, Bends
from .base import Baseline, BaselineFactory, Frames
from .choose import choose_baseline
from .copula import GaussianCopula
from .mixture import Mixture

__all__ = [
    "Additive",
    "Baseline",
    "BaselineFactory",
    "Bends",
    "Frames",
    "GaussianCopula",
    "Mixture",
    "choose_baseline",
]
