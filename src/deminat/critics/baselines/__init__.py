r"""Baselines: log ratios in closed form, without a network.

A model $r$ of the pairs with known marginals gives a log ratio at once,
$f_0 = \log r(x, y) - \log r(x) - \log r(y)$. Its mean over joint pairs is

$$ \mathbb E f_0 = I - \bigl[D(p_{xy}\|r_{xy}) - D(p_x\|r_x) - D(p_y\|r_y)\bigr]. $$

Its error depends on how wrong the model is, not on how much information there is. A classifier
needs no model. But above some ten nats it separates joint pairs from unpaired samples without an
error. Its cross-entropy is then saturated: near zero for every critic, so that training cannot
improve it. Hence both are used. While cross-entropy is informative, it chooses a Gaussian copula
or, where some values are frequent, a sum over pairs of columns, and networks learn the rest. Where
it is saturated, the likelihood of held-out rows chooses a Gaussian mixture without a network.
"""

from .additive import Additive, ColumnBasis
from .base import Baseline, BaselineFactory, Frames
from .choose import choose_baseline
from .copula import GaussianCopula
from .mixture import Mixture

__all__ = [
    "Additive",
    "Baseline",
    "BaselineFactory",
    "ColumnBasis",
    "Frames",
    "GaussianCopula",
    "Mixture",
    "choose_baseline",
]
