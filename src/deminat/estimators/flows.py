r"""GM: mutual information from three densities, each fitted by a normalising flow.

$I(x; y) = E[\log p(x, y) - \log p(x) - \log p(y)]$ with RealNVP flows (Dinh et al., 2017) for
the joint and both marginals, trained by maximum likelihood. Flows start from a Gaussian, so they
excel on Gaussians; errors of three large terms do not cancel elsewhere.

A flow of a single column can only be an affine map, hence the marginals are made normal first:
that keeps the information and leaves the flows what couples the columns.

A coupling moves every other column by what the rest tell. So columns of x and y take turns in the
joint flow: side by side, those that belong together may be in the same half of every coupling, and
what they tell about each other would have to go through others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from ..data.pairs import Batch, batches
from ..data.sample import Sample, as_sample
from ..data.transforms import RankToNormal, Transform
from ..errors import DataError
from ..results import MIResult
from ..runtime.process import one_thread
from ..runtime.progress import Progress
from ..training.analytic.realnvp import likelihood_loss
from ..training.callbacks import training_diagnostics
from ..training.config import Training
from ..training.early_stopping import EarlyStopping
from ..training.loop import Descent, train
from .base import TrainedEstimator, split_for_stopping
from .crossfit import CrossFit
from .fitted import FittedScorer
from .scaling import Scales
from .scores import result_from_pointwise

__all__ = ["FLOW_AUTO", "FLOW_PAPER", "GM", "FlowRatio"]

FLOW_PAPER = Training(batch=64, epochs=20, halve_at=())
FLOW_AUTO = Training(
    batch=256,
    steps=2000,
    learning_rate=1e-3,
    halve_at=(),
    cosine=True,
    clip=10.0,
    stopping=EarlyStopping(min_delta=1e-3),
)


class FlowRatio(nn.Module):
    """Three flows whose log densities make a log ratio.

    Args:
        x_features: Columns of x.
        y_features: Columns of y.
        blocks: Coupling blocks of each flow.
        hidden: Units of the layers of a block.
    """

    def __init__(
        self,
        x_features: int,
        y_features: int,
        blocks: int = 3,
        hidden: Sequence[int] = (256, 256),
    ):
        super().__init__()
        try:
            from zuko.flows import RealNVP
        except ImportError as error:
            raise DataError("method 'gm' needs zuko: pip install 'deminat[flows]'") from error
        sizes = x_features + y_features, x_features, y_features
        self.flows = nn.ModuleList(
            RealNVP(size, transforms=blocks, hidden_features=tuple(hidden)) for size in sizes
        )
        self.turns: Tensor
        self.register_buffer("turns", _turns(x_features, y_features))

    def tables(self, x: Tensor, y: Tensor) -> list[Tensor]:
        """Return what each flow sees, (n, columns): both sides, x and y."""
        return [torch.cat([x, y], dim=1).index_select(1, self.turns), x, y]

    def log_densities(self, x: Tensor, y: Tensor) -> list[Tensor]:
        """Return log p(x, y), log p(x) and log p(y), each (n,)."""
        seen = zip(self.flows, self.tables(x, y), strict=True)
        return [flow().log_prob(table) for flow, table in seen]

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the log ratio (n,)."""
        both, x_alone, y_alone = self.log_densities(x, y)
        return both - x_alone - y_alone

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Return minus the mean log likelihood, summed over the three flows."""
        return -torch.stack(self.log_densities(x, y)).sum(dim=0).mean()


@dataclass(eq=False, repr=False)
class GM(TrainedEstimator):
    """The generative model of the paper: flows for the joint and both marginals.

    Args:
        blocks: Coupling blocks of each flow.
        hidden: Units of the layers of a block.
        scaling: Map of each side, fitted on the training rows.
        training: How to train.
        seed: Of all randomness.

    After `fit`: `flows_` (a `FlowRatio`), `history_`.
    """

    blocks: int = 3
    hidden: Sequence[int] = (256, 256)
    scaling: type[Transform] = RankToNormal
    training: Training = FLOW_AUTO
    seed: int = 0

    @property
    def name(self) -> str:
        """`gm`."""
        return "gm"

    @property
    def flows_(self) -> nn.Module:
        """The trained flows."""
        return cast(FittedScorer, self.scorer_).critic

    def estimate(self, x: Any, y: Any) -> MIResult:
        """Return the mutual information of pairs, which should be new to the fit."""
        check_is_fitted(self)
        sample = as_sample(x, y)
        figures = training_diagnostics([self.history_])
        return result_from_pointwise(
            self.scorer_.joint(sample), self.name, sample.warnings, figures
        )

    def score(self, x: Any, y: Any) -> float:
        """Return the mean log likelihood of pairs, for model selection."""
        check_is_fitted(self)
        with one_thread():
            scales = cast(FittedScorer, self.scorer_).scales
            return -_loss_of(*_tensors(scales, as_sample(x, y, least=1)))(self.flows_)

    def reading(self, fit: CrossFit, sample: Sample) -> MIResult:
        """Return the mean log ratio of cross-fitted scores."""
        figures = fit.diagnostics(self.scaling_name)
        return result_from_pointwise(fit.scores.joint, self.name, sample.warnings, figures)

    def partners_scored(self) -> int:
        """Return 1."""
        return 1

    def fit_sample(self, sample: Sample, progress: Progress | None = None) -> Self:
        """Train on a checked sample."""
        if sample.x.ndim > 2 or sample.y.ndim > 2:
            raise DataError("method 'gm' takes columns, not images; flatten them, or use 'demi'")
        fitted, held = split_for_stopping(sample, self.training.stopping, self.seed)
        self.n_features_in_ = sample.x.shape[1]
        scales = Scales.fit(self.scaling, fitted)
        x, y = _tensors(scales, fitted)
        generator = torch.Generator().manual_seed(self.seed)
        with one_thread(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            flows = FlowRatio(x.shape[1], y.shape[1], self.blocks, self.hidden)
            self.history_ = train(
                flows,
                _batch_loss(flows, x, y),
                batches(len(x), self.training.batch, None, generator),
                max(1, len(x) // self.training.batch),
                self.training,
                held_loss=None if held is None else _loss_of(*_tensors(scales, held)),
                progress=progress,
            )
        self.scorer_ = FittedScorer(scales, flows)
        return self


def _tensors(scales: Scales, sample: Sample) -> tuple[Tensor, Tensor]:
    x, y = scales(sample)
    return x.seen, y.seen


def _turns(x_features: int, y_features: int) -> Tensor:
    """Return the order of x and y columns, (columns,), in which the sides take turns."""
    places = [(torch.arange(size) + 0.5) / size for size in (x_features, y_features)]
    return torch.cat(places).argsort(stable=True)


def _batch_loss(flows: FlowRatio, x: Tensor, y: Tensor) -> Callable[[Batch], Descent]:
    """Return the loss of one training, as a function of a batch of rows of x and y."""
    by_hand = likelihood_loss(list(flows.flows))

    def of_batch(batch: Batch) -> Descent:
        some_x, some_y = x.index_select(0, batch.joint), y.index_select(0, batch.joint)
        if by_hand is None:
            return flows.loss(some_x, some_y)
        return by_hand(flows.tables(some_x, some_y))

    return of_batch


def _loss_of(x: Tensor, y: Tensor) -> Callable[[nn.Module], float]:
    """Return the loss of pairs as a function of the flows, without gradient."""

    @torch.no_grad()
    def loss(flows: nn.Module) -> float:
        return float(flows.loss(x, y))  # type: ignore[operator]

    return loss
