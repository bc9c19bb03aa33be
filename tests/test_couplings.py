"""The likelihood of flows written by hand is zuko's, and so is its gradient."""

import pytest
import torch
from torch import Tensor, nn

from deminat.data.pairs import Batch, batches
from deminat.estimators.flows import FlowRatio, _batch_loss
from deminat.runtime.process import one_thread
from deminat.tasks import gaussian
from deminat.training.analytic.realnvp import Density, likelihood_loss
from deminat.training.config import Training
from deminat.training.loop import train

SIZES = [(2, 2, 3, (8,)), (3, 2, 1, (8, 4)), (5, 4, 4, ()), (6, 7, 3, (16, 16, 8))]


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def flow_ratio(x_features=3, y_features=2, blocks=3, hidden=(8,)):
    torch.manual_seed(0)
    return FlowRatio(x_features, y_features, blocks, hidden).double()


def all_rows(n):
    return Batch(torch.arange(n), torch.arange(n), None)


def gradients(flows, loss):
    flows.zero_grad()
    loss.backward()
    return [weight.grad.clone() for weight in flows.parameters()]


@pytest.mark.parametrize("far", [1, 30])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_log_densities_are_those_of_zuko(sizes, far):
    flows, x, y = flow_ratio(*sizes), far * normal(9, sizes[0]), far * normal(9, sizes[1], seed=1)
    seen = zip(flows.flows, flows.tables(x, y), strict=True)
    found = [Density(flow)(table) for flow, table in seen]
    torch.testing.assert_close(found, list(flows.log_densities(x, y)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_by_hand_is_as_automatic(sizes):
    flows, x, y = flow_ratio(*sizes), normal(9, sizes[0]), normal(9, sizes[1], seed=1)
    written, derived = _batch_loss(flows, x, y)(all_rows(9)), flows.loss(x, y)
    assert not isinstance(written, Tensor)
    assert written.item() == pytest.approx(derived.item(), rel=1e-12)
    both = [gradients(flows, loss) for loss in (written, derived)]
    torch.testing.assert_close(*both, rtol=1e-10, atol=1e-12)
    assert all(gradient.any() for gradient in both[1][:2])


def test_weights_that_change_are_followed():
    flows, x, y = flow_ratio(), normal(9, 3), normal(9, 2, seed=1)
    loss = _batch_loss(flows, x, y)
    torch.manual_seed(1)
    flows.load_state_dict(FlowRatio(3, 2, hidden=(8,)).state_dict())
    assert loss(all_rows(9)).item() == pytest.approx(flows.loss(x, y).item(), rel=1e-12)


def losses_of(flows, loss, steps):
    """Return the loss of each step; in single precision roundings would part ways soon."""
    losses = []

    def noted(batch):
        descent = loss(batch)
        losses.append(descent.item())
        return descent

    stream = batches(1_000, 64, None, torch.Generator().manual_seed(0))
    with one_thread():
        train(flows, noted, stream, 15, Training(steps=steps, learning_rate=5e-3))
    return losses


def test_a_training_by_hand_goes_as_one_by_zuko():
    x, y = (torch.as_tensor(a) for a in gaussian(4, 2.0).sample(1_000, seed=0))
    by_hand, automatic = flow_ratio(4, 4, hidden=(32, 32)), flow_ratio(4, 4, hidden=(32, 32))
    written = losses_of(by_hand, _batch_loss(by_hand, x, y), 100)
    derived = losses_of(automatic, lambda b: automatic.loss(x[b.joint], y[b.joint]), 100)
    assert written == pytest.approx(derived, abs=1e-9)
    assert derived[-1] < derived[0] - 1
    torch.testing.assert_close(by_hand(x, y), automatic(x, y), rtol=0, atol=1e-8)


def frozen(flow):
    next(flow.parameters()).requires_grad_(False)


def with_another_activation(flow):
    flow.transform.transforms[0].hyper[1] = nn.Tanh()


def with_other_turns(flow):
    flow.transform.transforms[1].mask.logical_not_()


def with_a_wider_base(flow):
    flow.base.scale.mul_(2)


def with_a_weight_more(flow):
    flow.temperature = nn.Parameter(torch.ones(()))


@pytest.mark.parametrize(
    "change",
    [frozen, with_another_activation, with_other_turns, with_a_wider_base, with_a_weight_more],
)
def test_a_modified_flow_is_differentiated_automatically(change):
    flows = FlowRatio(4, 2, hidden=(8,))
    assert likelihood_loss(list(flows.flows)) is not None
    change(flows.flows[1])
    assert likelihood_loss(list(flows.flows)) is None


def test_another_bound_of_the_scales_is_noticed(monkeypatch):
    flows = flow_ratio()
    monkeypatch.setattr("deminat.training.analytic.realnvp._BOUND", 7.0)
    assert likelihood_loss(list(flows.flows)) is None


def test_a_single_column_has_no_couplings():
    flows, x, y = FlowRatio(1, 2, hidden=(8,)), torch.randn(5, 1), torch.randn(5, 2)
    loss = _batch_loss(flows, x, y)(all_rows(5))
    assert isinstance(loss, Tensor)
    torch.testing.assert_close(loss, flows.loss(x, y))
