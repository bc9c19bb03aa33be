r"""The estimators of the paper as two functions of the same scores.

A critic scores pairs: `joint` (n,) for pairs that belong together and `product` (n, k) for
unpaired ones. At the optimum of every loss here the score is the log ratio
$f = \log\frac{p(x, y)}{p(x)\,p(y)}$ (for MINE up to a constant, for InfoNCE up to a function of
x), and an objective is a `loss` to train by with an `estimate` to read off:

| objective   | loss                                 | estimate of I(x; y), in nats             |
|-------------|--------------------------------------|------------------------------------------|
| DEMI(alpha) | cross-entropy, prior alpha           | mean f(joint)                            |
| JSD         | twice the cross-entropy, less 2 log 2 | mean f(joint)                           |
| CCMI        | cross-entropy                        | mean f(joint) - log mean exp f(product)  |
| SMILE(tau)  | cross-entropy                        | the same, f(product) clipped to +-tau    |
| MINE        | minus its estimate, unbiased gradient | mean f(joint) - log mean exp f(product) |
| DV          | minus its estimate                   | mean f(joint) - log mean exp f(product)  |
| NWJ         | minus its estimate                   | 1 + mean f(joint) - mean exp f(product)  |
| InfoNCE     | minus its estimate                   | log softmax over k + 1, at most log(k+1) |

Three things are called MINE. The method of that name divides its gradient by a moving average:
`MINE`. Public code of SMILE's authors leaves the average out: `DV`. The text of the DEMI paper
calls SMILE without a clip so: `SMILE(math.inf)`, which is trained by cross-entropy.

Objectives that share the cross-entropy share its training: see `trains_as`. With
$Z = E_{product}[e^f]$, DEMI = CCMI + log Z. The two differ by how far the classifier is from
being normalised, which DEMI does not have to estimate.

Traits tell the rest of the library what an objective allows, so that no room asks for its class.
Your own objective inherits from `Objective`, writes `name`, `loss` and `estimate`, and overrides
the traits that differ from the defaults.

All functions reduce the last axes, so scores may carry leading axes, (..., n) and (..., n, k).
Pairs that share their unpaired partners may share their scores too, as (..., 1, k).
Everything stays in log odds: a probability is 1 in float32 beyond 17 nats.

References:
    Liao et al. (2020), DEMI: Discriminative Estimator of Mutual Information.
    Belghazi et al. (2018), MINE. Song and Ermon (2020), SMILE. Mukherjee et al. (2020), CCMI.
    Nguyen et al. (2010), NWJ. van den Oord et al. (2018), InfoNCE. Hjelm et al. (2019), JSD.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn.functional import softplus

__all__ = [
    "CCMI",
    "DEMI",
    "DV",
    "JSD",
    "MINE",
    "NWJ",
    "SMILE",
    "InfoNCE",
    "Loss",
    "Objective",
    "donsker_varadhan",
    "log_mean_exp",
]

Loss = Callable[[Tensor, Tensor], Tensor]


@runtime_checkable
class Objective(Protocol):
    """A loss to train by, an estimate to read off, and traits with defaults."""

    @property
    def name(self) -> str:
        """What results call it."""
        ...

    def loss(self, joint: Tensor, product: Tensor) -> Tensor:
        """Return the loss of scores `joint` (n,) and `product` (n, k)."""
        ...

    def estimate(self, joint: Tensor, product: Tensor) -> Tensor:
        """Return the mutual information in nats, from scores of held-out pairs."""
        ...

    @property
    def trains_as(self) -> "Objective":
        """The objective whose training serves this one too; itself by default."""
        return self

    @property
    def normalised(self) -> bool:
        """Whether the loss fixes the constant of f, so that f is the log ratio itself."""
        return True

    @property
    def is_mean_log_ratio(self) -> bool:
        """Whether the estimate is the mean of f over joint pairs.

        Only then is there an interval, and a correction for overfitting.
        """
        return False

    @property
    def sampled_prior(self) -> float | None:
        """Probability by which training examples are drawn as joint; `None` weighs instead."""
        return None

    @property
    def trains_on_all_pairs(self) -> bool:
        """Whether its authors train it on all pairs of a batch, at a constant rate.

        The preset `paper` does so. The default recipe trains every objective on all pairs.
        """
        return False

    def ceiling(self, k: int) -> float:
        """Return the largest estimate possible with k unpaired partners, in nats."""
        return math.inf

    def training_loss(self) -> Loss:
        """Return the loss of one training, which may differ from `loss` and keep a memory."""
        return self.loss


@dataclass(frozen=True)
class DEMI(Objective):
    r"""Cross-entropy training, average log-ratio estimate: the method of the paper.

    Args:
        alpha: Prior probability $\alpha$ of a joint pair. It does not change the optimum.
        draw: Draw for each training example whether it is a joint pair, as the paper's text
            does, instead of weighing the two kinds by alpha: the same in expectation, noisier.
    """

    alpha: float = 0.5
    draw: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha must be in (0, 1), got {self.alpha!r}")

    @property
    def name(self) -> str:
        """`demi`, with alpha where it is not 1/2."""
        return "demi" if self.alpha == 0.5 else f"demi(alpha={self.alpha:g})"

    @property
    def prior(self) -> float:
        """The prior log odds of a joint pair."""
        return math.log(self.alpha) - math.log1p(-self.alpha)

    is_mean_log_ratio: ClassVar[bool] = True

    @property
    def sampled_prior(self) -> float | None:
        """Alpha, if examples are drawn."""
        return self.alpha if self.draw else None

    def loss(self, joint: Tensor, product: Tensor) -> Tensor:
        """Return the cross-entropy of scores `joint` (n,) and `product` (n, k)."""
        missed, mistaken = self._errors(joint, product)
        return self.alpha * missed.mean(-1) + (1 - self.alpha) * mistaken.mean((-2, -1))

    def estimate(self, joint: Tensor, product: Tensor) -> Tensor:
        """Return the mutual information in nats; `product` is not needed."""
        return joint.mean(-1)

    def training_loss(self) -> Loss:
        """Return the loss of one training; if examples are drawn, the draw contains alpha."""
        return self._loss_of_drawn if self.draw else self.loss

    def _loss_of_drawn(self, joint: Tensor, product: Tensor) -> Tensor:
        """Return the mean over examples of both kinds, joint (a,) and product (b, k)."""
        missed, mistaken = self._errors(joint, product)
        examples = missed.shape[-1] + mistaken.shape[-2]
        return (missed.sum(-1) + mistaken.mean(-1).sum(-1)) / examples

    def _errors(self, joint: Tensor, product: Tensor) -> tuple[Tensor, Tensor]:
        return softplus(-joint - self.prior), softplus(product + self.prior)


@dataclass(frozen=True)
class JSD(Objective):
    """The Jensen-Shannon objective of Deep InfoMax: DEMI at alpha = 1/2 in Fenchel form."""

    name: ClassVar[str] = "jsd"

    @property
    def trains_as(self) -> Objective:
        """DEMI(1/2): the same loss up to scale and a constant."""
        return DEMI()

    is_mean_log_ratio: ClassVar[bool] = True

    def loss(self, joint: Tensor, product: Tensor) -> Tensor:
        """Return minus twice the Jensen-Shannon lower bound; 0 for scores of 0."""
        return softplus(-joint).mean(-1) + softplus(product).mean((-2, -1)) - 2 * math.log(2)

    def estimate(self, joint: Tensor, product: Tensor) -> Tensor:
        """Return the mutual information in nats; `product` is not needed."""
        return joint.mean(-1)


class _CrossEntropy(Objective):
    """Objectives that train as DEMI(1/2) does."""

    @property
    def trains_as(self) -> Objective:
        """DEMI(1/2)."""
        return DEMI()

    def loss(self, joint: Tensor, product: Tensor) -> Tensor:
        """Return the balanced cross-entropy."""
        return DEMI().loss(joint, product)


@dataclass(frozen=True)
class SMILE(_CrossEntropy):
    r"""Cross-entropy training, Donsker-Varadhan estimate with clipped scores.

    Args:
        tau: Scores of unpaired pairs are clipped to $[-\tau, \tau]$; `math.inf` does not clip.
        all_pairs: Whether the preset `paper` trains it as its authors do, on all pairs of a batch
            at a constant rate, or reads it off the training of DEMI.
    """

    tau: float = 5.0
    all_pairs: bool = False

    def __post_init__(self) -> None:
        if not self.tau > 0:
            raise ValueError(f"tau must be positive, got {self.tau!r}")

    @property
    def name(self) -> str:
        """`smile`, with its tau."""
        return f"smile(tau={self.tau:g}{', all pairs' if self.all_pairs else ''})"

    @property
    def trains_on_all_pairs(self) -> bool:
        """Whether it was asked for."""
        return self.all_pairs

    def estimate(self, joint: Tensor, product: Tensor) -> Tensor:
        """Return the mutual information in nats."""
        return donsker_varadhan(joint, product.clamp(-self.tau, self.tau))


@dataclass(frozen=True)
class CCMI(_CrossEntropy):
    """Cross-entropy training, Donsker-Varadhan estimate."""

    name: ClassVar[str] = "ccmi"

    def estimate(self, joint: Tensor, product: Tensor) -> Tensor:
        """Return the mutual information in nats."""
        return donsker_varadhan(joint, product)


@dataclass(frozen=True)
class MINE(Objective):
    r"""The Donsker-Varadhan bound, trained on itself.

    The gradient of $\log E[e^f]$ over a batch is biased. `training_loss` divides by a moving
    average of $E[e^f]$ instead of the batch's own, which remembers some 1 / rate steps. Where
    information is high, from 6 nats on, and training long, that may be too few: scores diverge. A
    lower rate was seen to prevent it.

    Args:
        rate: Weight of the newest batch in that moving average.
    """

    rate: float = 0.01

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ValueError(f"rate must be in (0, 1], got {self.rate!r}")

    name: ClassVar[str] = "mine"
    normalised: ClassVar[bool] = False  # the bound does not change if a constant is added to f

    def loss(self, joint: Tensor, product: Tensor) -> Tensor:
        """Return minus the bound; its gradient is that of this batch alone, hence biased."""
        return -donsker_varadhan(joint, product)

    def estimate(self, joint: Tensor, product: Tensor) -> Tensor:
        """Return the lower bound of mutual information, in nats."""
        return donsker_varadhan(joint, product)

    def training_loss(self) -> Loss:
        """Return the loss of one training: the value of `loss`, the corrected gradient."""
        log_average: Tensor | None = None

        def loss(joint: Tensor, product: Tensor) -> Tensor:
            nonlocal log_average
            value, log_average = self.corrected(joint, product, log_average)
            return value

        return loss

    def corrected(
        self, joint: Tensor, product: Tensor, log_average: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the value of `loss` with the corrected gradient, and the log of the new average.

        Args:
            joint: Scores (n,) of pairs.
            product: Scores (n, k) of unpaired ones.
            log_average: The log of the average after the last batch, `None` before the first.
        """
        log_mean = log_mean_exp(product)
        now = log_mean.detach()
        if log_average is not None and self.rate < 1:
            old = log_average + math.log1p(-self.rate)
            now = torch.logaddexp(old, now + math.log(self.rate))
        slope = (log_mean - now).exp() - joint.mean(-1)
        return slope - slope.detach() - donsker_varadhan(joint, product).detach(), now


@dataclass(frozen=True)
class DV(Objective):
    """The Donsker-Varadhan bound, trained on itself; the gradient of a batch is biased."""

    name: ClassVar[str] = "dv"
    normalised: ClassVar[bool] = False
    trains_on_all_pairs: ClassVar[bool] = True

    def loss(self, joint: Tensor, product: Tensor) -> Tensor:
        """Return minus the bound."""
        return -donsker_varadhan(joint, product)

    def estimate(self, joint: Tensor, product: Tensor) -> Tensor:
        """Return the lower bound of mutual information, in nats."""
        return donsker_varadhan(joint, product)


@dataclass(frozen=True)
class NWJ(Objective):
    """The bound of Nguyen, Wainwright and Jordan, shifted so that its optimum is f itself."""

    name: ClassVar[str] = "nwj"

    def loss(self, joint: Tensor, product: Tensor) -> Tensor:
        """Return minus the bound."""
        return -self.estimate(joint, product)

    def estimate(self, joint: Tensor, product: Tensor) -> Tensor:
        """Return the lower bound of mutual information, in nats."""
        return 1 + joint.mean(-1) - product.exp().mean((-2, -1))


@dataclass(frozen=True)
class InfoNCE(Objective):
    """Contrastive predictive coding: which of k + 1 partners is the true one?"""

    name: ClassVar[str] = "infonce"
    normalised: ClassVar[bool] = False  # the bound does not change if a function of x is added to f
    trains_on_all_pairs: ClassVar[bool] = True

    def ceiling(self, k: int) -> float:
        """Return log(k + 1)."""
        return math.log(k + 1)

    def loss(self, joint: Tensor, product: Tensor) -> Tensor:
        """Return minus the bound."""
        return -self.estimate(joint, product)

    def estimate(self, joint: Tensor, product: Tensor) -> Tensor:
        """Return the lower bound of mutual information, in nats, at most log(k + 1)."""
        # Where all others are impossible, the sum of none has no slope; that of hardly any has.
        others = product.clamp_min(torch.finfo(product.dtype).min).logsumexp(-1)
        candidates = torch.logaddexp(joint, others)
        return (joint - candidates).mean(-1) + math.log(product.shape[-1] + 1)


def donsker_varadhan(joint: Tensor, product: Tensor) -> Tensor:
    """Return mean f(joint) - log mean exp f(product)."""
    return joint.mean(-1) - log_mean_exp(product)


def log_mean_exp(product: Tensor) -> Tensor:
    """Return the log of the mean of exp f over the last two axes."""
    return product.logsumexp((-2, -1)) - math.log(product.shape[-2] * product.shape[-1])
