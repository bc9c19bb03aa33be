"""Gradients written by hand are those of automatic differentiation, where they may be."""

from dataclasses import dataclass
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from deminat import DEMI, JSD, MINE, NWJ, ConvCritic, InfoNCE, MLPCritic, SeparableCritic
from deminat.critics.composed import BaselineCritic
from deminat.critics.features import Features
from deminat.critics.scoring import batch_scores
from deminat.data.pairs import Batch, batches, partners
from deminat.objectives import Objective
from deminat.training.analytic.gradients import batch_loss
from deminat.training.analytic.loss_gradients import LOSS_ROWS
from deminat.training.config import Training
from deminat.training.loop import train

N = 12


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def a_batch(k=1):
    joint, anchors = torch.tensor([5, 1, 7]), torch.tensor([0, 3, 8, 10])
    return Batch(joint, anchors, partners(N, k, generator())[anchors])


def gradients(critic, loss):
    critic.zero_grad()
    loss.backward()
    return [weight.grad.clone() for weight in critic.parameters()]


def assert_same(critic, x, y, objective, batch, by_hand=True):
    loss = batch_loss(critic, x, y, objective)(batch)
    automatic = objective.training_loss()(*batch_scores(critic, x, y, batch))
    assert isinstance(loss, Tensor) != by_hand
    assert loss.item() == pytest.approx(automatic.item(), rel=1e-12)
    written, derived = gradients(critic, loss), gradients(critic, automatic)
    torch.testing.assert_close(written, derived, rtol=1e-10, atol=1e-12)
    assert any(gradient.any() for gradient in derived)


@pytest.mark.parametrize("hidden", [(), (8,), (16, 8), (4, 4, 4, 4)], ids=str)
@pytest.mark.parametrize("alpha", [0.5, 0.2])
@pytest.mark.parametrize("k", [1, 3])
def test_by_hand_is_as_automatic(hidden, alpha, k):
    critic = MLPCritic((3,), (2,), hidden).double()
    assert_same(critic, normal(N, 3), normal(N, 2, seed=1), DEMI(alpha), a_batch(k))


def test_images_are_flattened():
    critic = MLPCritic((1, 2, 3), (2,), (8,)).double()
    assert_same(critic, normal(N, 1, 2, 3), normal(N, 2, seed=1), DEMI(), a_batch())


def test_batches_may_differ_in_size():
    critic, x, y = MLPCritic((3,), (2,), (8,)).double(), normal(N, 3), normal(N, 2, seed=1)
    loss = batch_loss(critic, x, y, DEMI(0.3))
    for size in (4, 2, 4):
        batch = next(batches(N, size, 2, generator()))
        expected = DEMI(0.3).loss(*batch_scores(critic, x, y, batch)).item()
        assert loss(batch).item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rate", [0.01, 0.5, 1.0])
def test_mine_remembers_the_batches_before(rate):
    critic, x, y = MLPCritic((3,), (2,), (8,)).double(), normal(N, 3), normal(N, 2, seed=1)
    by_hand, automatic = batch_loss(critic, x, y, MINE(rate)), MINE(rate).training_loss()
    for batch in (a_batch(), a_batch(3), next(batches(N, 4, 2, generator()))):
        written, derived = by_hand(batch), automatic(*batch_scores(critic, x, y, batch))
        assert not isinstance(written, Tensor)
        assert written.item() == pytest.approx(derived.item(), rel=1e-12)
        both = [gradients(critic, loss) for loss in (written, derived)]
        torch.testing.assert_close(*both, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("objective", [MINE(), DEMI(0.3)], ids=str)
def test_training_by_hand_is_training_automatically(objective):
    x, y, trained = normal(N, 3), normal(N, 2, seed=1), []
    for by_hand in (True, False):
        torch.manual_seed(0)
        critic = MLPCritic((3,), (2,), (8,)).double()
        if by_hand:
            loss = batch_loss(critic, x, y, objective)
        else:
            of_scores = objective.training_loss()
            loss = partial(automatic_loss, of_scores, critic, x, y)
        history = train(critic, loss, batches(N, 4, 2, generator()), 3, Training(steps=30))
        trained.append((critic.state_dict(), history.loss))
    torch.testing.assert_close(*trained, rtol=1e-8, atol=1e-10)


def automatic_loss(of_scores, critic, x, y, batch):
    return of_scores(*batch_scores(critic, x, y, batch))


@pytest.mark.parametrize("size", [1e3, 1e6])
def test_scores_far_out_stay_finite(size):
    critic = MLPCritic((3,), (2,), (8,)).double()
    nn.init.constant_(critic.layers[-1].bias, size)
    assert_same(critic, normal(N, 3), normal(N, 2, seed=1), DEMI(), a_batch())


def test_weights_that_change_are_followed():
    critic, x, y = MLPCritic((3,), (2,), (8,)).double(), normal(N, 3), normal(N, 2, seed=1)
    loss, batch = batch_loss(critic, x, y, DEMI()), a_batch()
    critic.load_state_dict(MLPCritic((3,), (2,), (8,)).state_dict())
    expected = DEMI().loss(*batch_scores(critic, x, y, batch)).item()
    assert loss(batch).item() == pytest.approx(expected, rel=1e-12)


class Doubled(MLPCritic):
    def forward(self, x, y):
        return 2 * super().forward(x, y)


def exchanged():
    critic = MLPCritic((3,), (2,), (8,))
    critic.layers[1] = nn.Tanh()
    return critic


def with_dropout():
    critic = MLPCritic((3,), (2,), (8,))
    critic.layers.append(nn.Dropout(0.5))
    return critic


def frozen():
    critic = MLPCritic((3,), (2,), (8,))
    critic.layers[0].weight.requires_grad_(False)
    return critic


def normed():
    critic = MLPCritic((3,), (2,), (8,))
    nn.utils.parametrizations.weight_norm(critic.layers[0])
    return critic


def with_a_weight_more():
    critic = MLPCritic((3,), (2,), (8,))
    critic.temperature = nn.Parameter(torch.ones(()))
    return critic


@pytest.mark.parametrize(
    "build",
    [
        exchanged,
        with_dropout,
        frozen,
        normed,
        with_a_weight_more,
        partial(Doubled, (3,), (2,)),
        partial(SeparableCritic, (3,), (2,)),
    ],
)
def test_a_modified_critic_is_differentiated_automatically(build):
    x, y = normal(N, 3).float(), normal(N, 2, seed=1).float()
    assert isinstance(batch_loss(build(), x, y, DEMI())(a_batch()), Tensor)


OTHERS = [DEMI(draw=True), JSD(), MINE(), NWJ(), InfoNCE()]


@pytest.mark.parametrize("objective", OTHERS, ids=str)
def test_other_losses_have_automatic_slopes(objective):
    critic = MLPCritic((3,), (2,), (8, 4)).double()
    anchors = a_batch().anchors  # InfoNCE compares the joint pair with the partners of its x
    batch = Batch(anchors, anchors, a_batch(2).partners)
    assert_same(critic, normal(N, 3), normal(N, 2, seed=1), objective, batch)


@dataclass(frozen=True)
class Constant(Objective):
    """A user's own objective, whose loss has no slope."""

    name: str = "constant"

    def loss(self, joint, product):
        return 0 * (joint.mean(-1) + product.mean((-2, -1)))

    def estimate(self, joint, product):
        return joint.mean(-1)


def test_without_a_slope_all_gradients_are_zero():
    x, y, rows = normal(N, 3), normal(N, 2, seed=1), torch.arange(5)
    mlp = MLPCritic((3,), (2,), (8,)).double()
    for critic, batch in ((mlp, a_batch()), (separable(), Batch(rows, rows, None))):
        loss = batch_loss(critic, x, y, Constant())(batch)
        assert not isinstance(loss, Tensor)
        assert not any(gradient.any() for gradient in gradients(critic, loss))


def test_all_pairs_of_other_critics_are_differentiated_automatically():
    rows = torch.tensor([5, 1, 7, 2, 11])
    columns = normal(N, 3), normal(N, 2, seed=1)
    images = normal(N, 1, 6, 7), normal(N, 2, 6, 7, seed=1)
    convolutional = ConvCritic((1, 6, 7), (2, 6, 7), channels=3, hidden=5).double()
    for critic, sides in ((MLPCritic((3,), (2,), (8,)).double(), columns), (convolutional, images)):
        for objective in (DEMI(0.3), InfoNCE()):
            assert_same(critic, *sides, objective, Batch(rows, rows, None), by_hand=False)


@pytest.mark.parametrize("objective", OTHERS, ids=str)
def test_all_pairs_of_a_separable_critic_by_other_losses(objective):
    rows = torch.tensor([5, 1, 7, 2, 11])
    assert_same(separable(2), *sides(2), objective, Batch(rows, rows, None))


def test_a_batch_of_all_pairs_names_no_rows():
    with pytest.raises(ValueError, match="lists no partners"):
        Batch(torch.arange(3), torch.arange(3), None).rows()


def sides(rank=0, n=N):
    """Return x and y, with the factors (n, rank) of a baseline if there is one."""
    x, y = normal(n, 3), normal(n, 2, seed=1)
    if not rank:
        return x, y
    return Features(x, normal(n, rank, seed=2)), Features(y, normal(n, rank, seed=3))


def separable(rank=0):
    """Return a separable critic, added to a baseline if that has any factors."""
    critic = SeparableCritic((3,), (2,), hidden=(8, 4), rank=5).double()
    for i, weight in enumerate(critic.parameters()):  # untrained it is zero and gradients vanish
        nn.init.normal_(weight, std=0.5, generator=generator(i))
    return BaselineCritic(critic) if rank else critic


@pytest.mark.parametrize("alpha", [0.5, 0.2])
@pytest.mark.parametrize("rank", [0, 2])
def test_all_pairs_by_hand_are_as_automatic(alpha, rank):
    rows = torch.tensor([5, 1, 7, 2, 11])
    assert_same(separable(rank), *sides(rank), DEMI(alpha), Batch(rows, rows, None))


def test_all_pairs_of_images_are_flattened():
    critic, rows = SeparableCritic((1, 3, 2), (2, 2), hidden=(8,)).double(), torch.arange(5)
    for i, weight in enumerate(critic.parameters()):
        nn.init.normal_(weight, std=0.5, generator=generator(i))
    x, y = normal(N, 1, 3, 2), normal(N, 2, 2, seed=1)
    assert_same(critic, x, y, DEMI(), Batch(rows, rows, None))


def test_a_separable_critic_with_named_partners_is_differentiated_automatically():
    assert isinstance(batch_loss(separable(), *sides(), DEMI())(a_batch()), Tensor)


def test_a_frozen_separable_critic_is_differentiated_automatically():
    critic, rows = separable(2), torch.arange(5)
    critic.critic.offset.requires_grad_(False)
    loss = batch_loss(critic, *sides(2), DEMI())
    assert isinstance(loss(Batch(rows, rows, None)), Tensor)


@pytest.mark.parametrize("k", [1, 3])
def test_a_concatenating_critic_on_a_baseline_is_differentiated_by_hand(k):
    critic = BaselineCritic(MLPCritic((3,), (2,), (8,))).double()
    assert_same(critic, *sides(2), DEMI(0.3), a_batch(k))


@pytest.mark.parametrize("rank", [0, 2])
def test_the_reported_loss_of_a_table_is_that_of_its_first_rows_the_gradient_of_all(rank):
    objective, rows = DEMI(0.3), torch.arange(5 * LOSS_ROWS)
    (x, y), batch = sides(rank, len(rows)), Batch(rows, rows, None)
    critic = separable(rank)
    reported = batch_loss(critic, x, y, objective)(batch)
    joint, product = batch_scores(critic, x, y, batch)
    whole = objective.loss(joint, product)
    # The few joint scores are all counted; of the unpaired ones those of the first rows.
    expected = objective.loss(joint, product[:LOSS_ROWS])
    assert reported.item() == pytest.approx(expected.item(), rel=1e-12)
    assert reported.item() != pytest.approx(whole.item(), rel=1e-3)
    written, derived = gradients(critic, reported), gradients(critic, whole)
    torch.testing.assert_close(written, derived, rtol=1e-10, atol=1e-12)
