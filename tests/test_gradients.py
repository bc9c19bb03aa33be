"""Gradients written by hand are those of automatic differentiation, where they may be."""

from contextlib import contextmanager
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from deminat import DEMI, JSD, MINE, NWJ, ConvCritic, InfoNCE, MLPCritic, SeparableCritic
from deminat.critics.composed import BaselineCritic
from deminat.critics.scoring import all_pairs, batch_scores
from deminat.data.pairs import Batch, batches, partners
from deminat.objectives import training_loss
from deminat.runtime.process import one_thread
from deminat.tasks import gaussian
from deminat.training.analytic.all_pairs import ConvTable, _that_matter
from deminat.training.analytic.gradients import all_pairs_loss, batch_loss
from deminat.training.analytic.loss_gradients import table_slopes
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


@contextmanager
def products_of(precision):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def gradients(critic, loss):
    critic.zero_grad()
    loss.backward()
    return [weight.grad.clone() for weight in critic.parameters()]


def assert_same(critic, x, y, objective, batch, by_hand=True):
    loss = batch_loss(critic, x, y, objective)(batch)
    automatic = training_loss(objective)(*batch_scores(critic, x, y, batch))
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
    by_hand, automatic = batch_loss(critic, x, y, MINE(rate)), training_loss(MINE(rate))
    for batch in (a_batch(), a_batch(3), next(batches(N, 4, 2, generator()))):
        written, derived = by_hand(batch), automatic(*batch_scores(critic, x, y, batch))
        assert not isinstance(written, Tensor)
        assert written.item() == pytest.approx(derived.item(), rel=1e-12)
        both = [gradients(critic, loss) for loss in (written, derived)]
        torch.testing.assert_close(*both, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("size", [1e3, 1e6])
def test_scores_far_out_stay_finite(size):
    critic = MLPCritic((3,), (2,), (8,)).double()
    nn.init.constant_(critic.layers[-1].bias, size)
    assert_same(critic, normal(N, 3), normal(N, 2, seed=1), DEMI(), a_batch())


def test_weights_are_followed_wherever_they_go():
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
def test_a_critic_of_another_make_is_differentiated_automatically(build):
    x, y = normal(N, 3).float(), normal(N, 2, seed=1).float()
    assert isinstance(batch_loss(build(), x, y, DEMI())(a_batch()), Tensor)


OTHERS = [DEMI(draw=True), JSD(), MINE(), NWJ(), InfoNCE()]


@pytest.mark.parametrize("objective", OTHERS, ids=str)
def test_other_losses_have_automatic_slopes(objective):
    critic = MLPCritic((3,), (2,), (8, 4)).double()
    anchors = a_batch().anchors  # InfoNCE looks for the joint pair among the partners of its x
    batch = Batch(anchors, anchors, a_batch(2).partners)
    assert_same(critic, normal(N, 3), normal(N, 2, seed=1), objective, batch)


@pytest.mark.parametrize("objective", [DEMI(0.3), *OTHERS], ids=str)
@pytest.mark.parametrize("hidden", [(), (8,), (16, 8)], ids=str)
def test_all_pairs_of_a_concatenating_critic(objective, hidden):
    critic, x, y = MLPCritic((3,), (2,), hidden).double(), normal(N, 3), normal(N, 2, seed=1)
    rows = torch.tensor([5, 1, 7, 2, 11])
    assert_same(critic, x, y, objective, Batch(rows, rows, None), by_hand=bool(hidden))


def convolutional():
    torch.manual_seed(0)
    return ConvCritic((1, 6, 7), (2, 6, 7), channels=3, hidden=5).double()


def images(n=N):
    return normal(n, 1, 6, 7), normal(n, 2, 6, 7, seed=1)


@pytest.mark.parametrize("objective", [DEMI(0.3), *OTHERS], ids=str)
def test_all_pairs_of_a_convolutional_critic(objective):
    rows = torch.tensor([5, 1, 7, 2, 11])
    assert_same(convolutional(), *images(), objective, Batch(rows, rows, None))


def test_few_pairs_of_images_that_matter_are_pulled_back():
    critic, rows = convolutional(), torch.arange(40)
    with torch.no_grad():
        critic.layers[-1].weight *= 1e4  # each x has one y that it cannot be told from
    assert_same(critic, *images(40), InfoNCE(), Batch(rows, rows, None))
    pulled = ConvTable(critic, table_slopes(InfoNCE(), InfoNCE().loss)).sums(
        normal(40, 36), normal(40, 36, seed=1)
    )
    assert len(pulled.rows) == len(pulled.sums) < 40 * 40 / 2


@pytest.mark.parametrize("black", [0, 2, 4, 6])
@pytest.mark.parametrize("loud", [1, 1e4], ids=["all", "few"])
def test_where_all_images_of_a_side_agree_they_are_scored_once(black, loud):
    critic, rows = convolutional(), torch.arange(20)
    with torch.no_grad():
        critic.layers[-1].weight *= loud
    x, y = images(20)
    y[:, :, 6 - black :] = normal(6)[6 - black :, None]  # alike, if not black
    y[:, :, :, :2] = 0
    assert_same(critic, x, y, InfoNCE(), Batch(rows, rows, None))
    rows, columns = ConvTable(critic, table_slopes(InfoNCE(), InfoNCE().loss))._box(y)
    # Of 6 x 7 pixels, 3 x 4 windows of 5 x 5 by twos: the first window sees columns 0 to 2.
    expected = range(min(3, (8 - black) // 2)), range(4)
    assert (range(3)[rows], range(4)[columns]) == (expected if black < 6 else (range(0), range(0)))


@pytest.mark.usefixtures("bfloat16")
def test_images_are_scored_in_bfloat16_where_torch_may_multiply_in_it():
    critic, rows = convolutional().float(), torch.arange(40)
    x, y = (a.float() for a in images(40))
    found = []
    for precision in ("highest", "medium"):
        with products_of(precision):
            loss = batch_loss(critic, x, y, InfoNCE())(Batch(rows, rows, None))
        found.append(torch.cat([g.flatten() for g in gradients(critic, loss)]))
    assert found[1].dtype == torch.float32
    assert 1e-5 < (found[1] - found[0]).norm() / found[0].norm() < 0.1


def with_another_convolution(**other):
    critic = convolutional()
    critic.convolution = nn.Conv2d(3, 3, 5, 2, **{"padding": 2, **other}).double()
    return critic


def test_a_convolutional_critic_of_another_make_is_differentiated_automatically():
    x, y = images()
    rows = torch.arange(5)
    frozen = convolutional()
    frozen.convolution.weight.requires_grad_(False)
    for critic, by_hand in [
        (convolutional(), True),
        (with_another_convolution(), True),
        (with_another_convolution(padding_mode="circular"), False),
        (with_another_convolution(bias=False), False),
        (frozen, False),
    ]:
        loss = batch_loss(critic, x, y, InfoNCE())(Batch(rows, rows, None))
        assert isinstance(loss, Tensor) != by_hand


def trained(truth, steps):
    """Return a critic that cross-entropy trained, InfoNCE's loss of it, and a fresh batch."""
    x, y = (torch.as_tensor(a).float() for a in gaussian(20, truth).sample(4_000, seed=0))
    torch.manual_seed(0)
    critic, stream = MLPCritic((20,), (20,), (64, 64)), batches(len(x), 64, 1, generator())
    with one_thread():
        of_pairs = batch_loss(critic, x, y, DEMI())
        train(critic, of_pairs, stream, 60, Training(steps=steps, learning_rate=2e-3))
    rows = next(stream).joint
    return critic, batch_loss(critic, x, y, InfoNCE()), Batch(rows, rows, None)


@pytest.mark.parametrize(("truth", "steps", "few"), [(30.0, 2500, True), (2.0, 20, False)])
def test_slopes_next_to_nothing_are_left_out(monkeypatch, truth, steps, few):
    critic, loss, batch = trained(truth, steps)
    found = {}
    for name, share in (("as it is", None), ("all", 0.0), ("picked", 1.0)):
        if share is not None:
            monkeypatch.setattr("deminat.training.analytic.all_pairs._FEW", share)
        found[name] = torch.cat([g.flatten() for g in gradients(critic, loss(batch))])
    assert torch.equal(found["as it is"], found["picked" if few else "all"])
    error = (found["picked"] - found["all"]).norm() / found["all"].norm()
    assert error < 10 * torch.finfo(torch.float32).eps  # bits apart, as sums in another order are


def test_what_is_left_out_is_less_than_rounding_takes_off_the_largest():
    slopes = 10.0 ** -torch.arange(4096.0).div(100).view(64, 64)  # a hundred of each size
    for dtype in (torch.float32, torch.bfloat16):
        kept = _that_matter(slopes, dtype)
        others = slopes.flatten().clone()
        others[kept] = 0
        assert others.sum() < torch.finfo(dtype).eps * slopes.max()
        assert len(kept) % 256 == 0
        more = slopes.flatten().sort(descending=True).values[len(kept) - 256 :].sum()
        assert more > torch.finfo(dtype).eps * slopes.max()  # one block less would not do


def test_where_a_slope_is_not_a_number_all_matter():
    slopes = torch.ones(64, 64)
    slopes[3, 5] = torch.nan
    assert len(_that_matter(slopes, torch.float32)) == 4096


@pytest.mark.usefixtures("bfloat16")
@pytest.mark.parametrize(("truth", "steps"), [(30.0, 2500), (2.0, 20)])
def test_where_torch_may_multiply_in_bfloat16_so_do_tables(truth, steps):
    found = {}
    for precision in ("highest", "medium"):
        critic, _, batch = trained(truth, steps)
        x, y = (torch.as_tensor(a).float() for a in gaussian(20, truth).sample(4_000, seed=0))
        with products_of(precision):
            loss = batch_loss(critic, x, y, InfoNCE())(batch)
        found[precision] = torch.cat([g.flatten() for g in gradients(critic, loss)])
    assert found["medium"].dtype == torch.float32
    error = (found["medium"] - found["highest"]).norm() / found["highest"].norm()
    assert 1e-4 < error < 0.1  # of eight bits; at the start joint and unpaired nearly cancel


def test_without_a_slope_the_gradient_of_a_table_is_zero():
    critic, x, y = MLPCritic((3,), (2,), (8,)), normal(N, 3).float(), normal(N, 2, seed=1).float()
    loss = all_pairs_loss(critic, lambda joint, product: 0 * (joint.sum() + product.sum()))(x, y)
    assert not any(gradient.any() for gradient in gradients(critic, loss))


@pytest.mark.parametrize("objective", OTHERS, ids=str)
def test_all_pairs_of_a_separable_critic_by_other_losses(objective):
    x, y, rows = normal(N, 5), normal(N, 4, seed=1), torch.tensor([5, 1, 7, 2, 11])
    assert_same(separable(2), x, y, objective, Batch(rows, rows, None))


def test_all_pairs_of_any_critic():
    x, y = normal(5, 3).float(), normal(5, 2, seed=1).float()
    for critic in (MLPCritic((3,), (2,)), MLPCritic((3,), (2,), ()), exchanged()):
        loss = all_pairs_loss(critic, DEMI().loss)(x, y)
        expected = DEMI().loss(*all_pairs(critic, x, y))
        assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
        torch.testing.assert_close(gradients(critic, loss), gradients(critic, expected))


def test_pairs_that_are_not_named_have_no_rows():
    with pytest.raises(ValueError, match="none is named"):
        Batch(torch.arange(3), torch.arange(3), None).rows()


def separable(start=0):
    critic = SeparableCritic((3,), (2,), hidden=(8, 4), rank=5).double()
    for weight in critic.parameters():  # away from the silent start, where gradients vanish
        nn.init.normal_(weight, std=0.5)
    return BaselineCritic(critic, start).double() if start else critic


@pytest.mark.parametrize("alpha", [0.5, 0.2])
@pytest.mark.parametrize("start", [0, 2])
def test_all_pairs_by_hand_are_as_automatic(alpha, start):
    x, y = normal(N, 3 + start), normal(N, 2 + start, seed=1)
    rows = torch.tensor([5, 1, 7, 2, 11])
    assert_same(separable(start), x, y, DEMI(alpha), Batch(rows, rows, None))


def test_a_separable_critic_with_named_partners_is_differentiated_automatically():
    x, y = normal(N, 3), normal(N, 2, seed=1)
    assert isinstance(batch_loss(separable(), x, y, DEMI())(a_batch()), Tensor)


def test_a_frozen_separable_critic_is_differentiated_automatically():
    critic, rows = separable(2), torch.arange(5)
    critic.critic.offset.requires_grad_(False)
    loss = batch_loss(critic, normal(N, 5), normal(N, 4, seed=1), DEMI())
    assert isinstance(loss(Batch(rows, rows, None)), Tensor)


@pytest.mark.parametrize("k", [1, 3])
def test_a_concatenating_critic_on_a_start_is_differentiated_by_hand(k):
    critic = BaselineCritic(MLPCritic((3,), (2,), (8,)), 2).double()
    assert_same(critic, normal(N, 5), normal(N, 4, seed=1), DEMI(0.3), a_batch(k))


def test_the_loss_that_is_told_of_a_large_table_is_near_that_of_all_its_rows():
    x, y, rows = normal(200, 3), normal(200, 2, seed=1), torch.arange(200)
    critic = separable()
    batch = Batch(rows, rows, None)
    told = batch_loss(critic, x, y, DEMI())(batch).item()
    whole = DEMI().loss(*batch_scores(critic, x, y, batch)).item()
    assert told == pytest.approx(whole, rel=0.5)
    assert told != whole
