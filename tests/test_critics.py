"""Critics map pairs to scores (n,); however the pairs are batched, the scores are the same."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from deminat import DEMI, ConvCritic, Estimator, MLPCritic, SeparableCritic, Standardize, Training
from deminat.critics import scoring as room
from deminat.critics.composed import BaselineCritic, ColumnCritic, StagedCritic, SumCritic
from deminat.critics.features import Features
from deminat.critics.networks import SeparableConvCritic
from deminat.critics.scoring import batch_scores, is_separable, joint_scores, product_scores
from deminat.data.pairs import Batch, partners
from deminat.tasks import gaussian

N, X_SHAPE, Y_SHAPE = 12, (3,), (2,)
SMALL = {
    "mlp": partial(MLPCritic, hidden=(8,)),
    "separable": partial(SeparableCritic, hidden=(8,), rank=4),
}
every = pytest.mark.parametrize("build", SMALL.values(), ids=SMALL)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def stirred(critic):
    """A critic with random weights, in float64: the separable one is zero before training."""
    for i, weight in enumerate(critic.double().parameters()):
        nn.init.normal_(weight, std=0.5, generator=generator(i))
    return critic


X, Y = normal(N, *X_SHAPE), normal(N, *Y_SHAPE, seed=1)


@pytest.mark.parametrize(
    ("critic", "x_shape", "y_shape"),
    [
        (MLPCritic, (3,), (2,)),
        (partial(MLPCritic, hidden=()), (3,), (2,)),
        (MLPCritic, (1, 4, 5), (2,)),
        (SeparableCritic, (3,), (2,)),
        (partial(SeparableCritic, hidden=(), rank=1), (3,), (2,)),
        (SeparableCritic, (2, 3), (1, 4, 5)),
        (partial(ConvCritic, hidden=8), (1, 4, 4), (1, 4, 4)),
        (partial(ConvCritic, hidden=8), (1, 7, 5), (3, 7, 5)),
        (partial(ConvCritic, hidden=8), (2, 1, 1), (1, 1, 1)),
        (SeparableConvCritic, (1, 7, 5), (3, 4, 9)),
        (SeparableConvCritic, (2, 1, 1), (3,)),
    ],
)
@pytest.mark.parametrize("n", [0, 1, 5])
def test_scores_are_one_a_pair(critic, x_shape, y_shape, n):
    scores = critic(x_shape, y_shape)(torch.zeros(n, *x_shape), torch.zeros(n, *y_shape))
    assert scores.shape == (n,)


@pytest.mark.parametrize(
    "shapes", [((3,), (2,)), ((1, 4, 4), (1, 4, 5)), ((4, 4), (4, 4))], ids=str
)
def test_convolutions_need_images_of_one_size(shapes):
    with pytest.raises(ValueError, match=r"equal height and width.*MLPCritic"):
        ConvCritic(*shapes)


def test_a_separable_critic_of_images_is_an_inner_product_and_starts_at_zero():
    critic = SeparableConvCritic((1, 6, 6), (2, 4, 4), rank=3)
    x, y = normal(N, 1, 6, 6), normal(N, 2, 4, 4, seed=1)
    assert torch.equal(critic(x.float(), y.float()), torch.zeros(N))
    stirred(critic)
    table = critic.left(x) @ critic.right(y).T
    torch.testing.assert_close(critic(x, y), table.diagonal())


def test_a_separable_critic_is_an_inner_product():
    critic = stirred(SeparableCritic(X_SHAPE, Y_SHAPE))
    table = critic.left(X) @ critic.right(Y).T
    torch.testing.assert_close(critic(X, Y), table.diagonal())
    assert table.std() > 0.1


def test_a_separable_critic_has_a_term_of_each_side_alone():
    critic = SeparableCritic(X_SHAPE, Y_SHAPE, hidden=(), rank=1).double()
    for weight in critic.parameters():
        nn.init.zeros_(weight)
    nn.init.constant_(critic.u[0].bias[-1:], 2.0)
    nn.init.constant_(critic.v[0].bias[-1:], 3.0)
    nn.init.constant_(critic.offset, 5.0)
    assert torch.equal(critic(X, Y), torch.full((N,), 10.0, dtype=torch.float64))


def test_a_separable_critic_is_zero_before_training_yet_learns():
    critic = SeparableCritic(X_SHAPE, Y_SHAPE, hidden=(8, 8)).double()
    optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
    everything = Batch(torch.arange(N), torch.arange(N), None)
    assert not critic(X, Y).any()
    for _ in range(2):  # the first step moves the last layer of x, the second all the others
        optimizer.zero_grad()
        DEMI().loss(*batch_scores(critic, X, Y, everything)).backward()
        optimizer.step()
    assert critic(X, Y).any()
    assert all(weight.grad.any() for weight in critic.parameters())
    assert critic.u[-1].weight.grad[:-1].any()  # of the inner product, not of a(x) alone
    assert critic.v[-1].weight.grad[:-1].any()


def test_only_critics_with_both_embeddings_are_separable():
    assert is_separable(SeparableCritic(X_SHAPE, Y_SHAPE))
    assert not is_separable(MLPCritic(X_SHAPE, Y_SHAPE))
    assert not is_separable(nn.Bilinear(3, 2, 1))


@every
def test_all_pairs_of_a_batch_are_the_same_as_explicit_ones(build):
    critic = stirred(build(X_SHAPE, Y_SHAPE))
    rows = torch.tensor([7, 2, 11, 4, 0])
    others = torch.stack([rows[rows != row] for row in rows])
    joint, product = batch_scores(critic, X, Y, Batch(rows, rows, None))
    expected = batch_scores(critic, X, Y, Batch(rows, rows, others))
    assert product.shape == (5, 4)
    torch.testing.assert_close(joint, expected[0])
    torch.testing.assert_close(product, expected[1])


@every
@pytest.mark.parametrize("k", [1, 3])
def test_batch_scores_are_those_of_the_named_rows(build, k):
    critic = stirred(build(X_SHAPE, Y_SHAPE))
    joint, anchors = torch.tensor([5, 1]), torch.tensor([0, 3, 8])
    others = partners(N, k, generator())[anchors]
    scores, product = batch_scores(critic, X, Y, Batch(joint, anchors, others))
    torch.testing.assert_close(scores, critic(X[joint], Y[joint]))
    assert product.shape == (3, k)
    for row in range(3):
        for column in range(k):
            one = critic(X[anchors[row]][None], Y[others[row, column]][None])
            torch.testing.assert_close(product[row, column], one[0])


def test_batch_scores_carry_a_gradient():
    critic = stirred(SMALL["mlp"](X_SHAPE, Y_SHAPE))
    rows = torch.arange(N)
    for others in (None, partners(N, 2, generator())):
        joint, product = batch_scores(critic, X, Y, Batch(rows, rows, others))
        assert joint.requires_grad
        assert product.requires_grad


@every
@pytest.mark.parametrize("tile", [1, 5, 6, 12, 100])
def test_tiles_do_not_change_the_scores(build, tile, monkeypatch):
    monkeypatch.setattr(room, "_ROWS_AT_ONCE", tile)
    critic, others = stirred(build(X_SHAPE, Y_SHAPE)), partners(N, 4, generator())
    joint, product = joint_scores(critic, X, Y), product_scores(critic, X, Y, others)
    torch.testing.assert_close(joint, critic(X, Y).detach())
    brute = torch.stack([critic(X, Y[others[:, j]]) for j in range(4)], dim=1).detach()
    torch.testing.assert_close(product, brute)
    assert not joint.requires_grad
    assert not product.requires_grad


def test_images_are_scored_in_tiles_too(monkeypatch):
    monkeypatch.setattr(room, "_ROWS_AT_ONCE", 5)
    critic = stirred(ConvCritic((1, 3, 5), (2, 3, 5), channels=2, hidden=4))
    x, y, others = normal(N, 1, 3, 5), normal(N, 2, 3, 5, seed=1), partners(N, 2, generator())
    brute = torch.stack([critic(x, y[others[:, j]]) for j in range(2)], dim=1).detach()
    torch.testing.assert_close(product_scores(critic, x, y, others), brute)


# A user's own critic


class Own(nn.Module):
    def __init__(self, x_shape, y_shape):
        super().__init__()
        self.layer = nn.Bilinear(*x_shape, *y_shape, 1)

    def forward(self, x, y):
        return self.layer(x, y).squeeze(1)


class OwnColumn(Own):
    def forward(self, x, y):
        return self.layer(x, y)


class Siamese(nn.Module):
    """Its embeddings happen to be called left and right; its score is no inner product."""

    def __init__(self, x_shape, y_shape):
        super().__init__()
        self.left, self.right = nn.Linear(*x_shape, 4), nn.Linear(*y_shape, 4)

    def forward(self, x, y):
        return 1 - (self.left(x) - self.right(y)).square().sum(dim=1)


def fitted(critic, training):
    x, y = gaussian(2, 0.5).sample(60, seed=0)
    return Estimator(DEMI(), critic, Standardize, training).fit(x, y)


@pytest.mark.parametrize("negatives", [1, 3, None])
def test_any_module_of_two_arguments_serves(negatives):
    estimator = fitted(Own, Training(steps=5, negatives=negatives))
    assert isinstance(estimator.critic_.critic, Own)  # added to the baseline
    assert estimator.history_.steps == 5
    assert np.isfinite(estimator.estimate(*gaussian(2, 0.5).sample(30, seed=1)).mi)


def test_the_shapes_are_those_of_one_scaled_row():
    seen = []

    def build(x_shape, y_shape):
        seen.append((x_shape, y_shape))
        return Own(x_shape, y_shape)

    fitted(build, Training(steps=1))
    assert seen == [((2,), (2,))]


def test_a_critic_with_modules_left_and_right_is_scored_by_its_forward():
    critic, others = Siamese((3,), (2,)).double(), partners(N, 2, generator())
    brute = torch.stack([critic(X, Y[others[:, j]]) for j in range(2)], dim=1).detach()
    torch.testing.assert_close(product_scores(critic, X, Y, others), brute)


def test_scores_of_the_wrong_shape_are_an_error_that_says_so():
    with pytest.raises(ValueError, match="shape"):
        fitted(OwnColumn, Training(steps=5))


# Critics made of others


def sides(n=6, rank=2):
    """Return features of x and y with the factors of a baseline."""
    x, y = (normal(n, *shape, seed=i) for i, shape in enumerate((X_SHAPE, Y_SHAPE)))
    return Features(x, normal(n, rank, seed=2)), Features(y, normal(n, rank, seed=3))


def on_columns(x_columns, y_columns):
    """Return a separable critic that sees the named columns."""
    critic = stirred(SeparableCritic((len(x_columns),), (len(y_columns),), (4,)))
    return ColumnCritic(critic, torch.tensor(x_columns), torch.tensor(y_columns))


@every
def test_a_critic_on_a_baseline_is_added_to_it(build):
    critic, (x, y) = stirred(build(X_SHAPE, Y_SHAPE)), sides()
    both = BaselineCritic(critic)
    expected = critic(x.seen, y.seen) + (x.baseline * y.baseline).sum(dim=1)
    torch.testing.assert_close(both(x, y), expected)
    assert is_separable(both) == is_separable(critic)
    others = torch.arange(6).roll(1)[:, None]
    torch.testing.assert_close(product_scores(both, x, y, others)[:, 0], both(x, y[others[:, 0]]))


def test_a_plain_network_leaves_the_baseline_out():
    critic, (x, y) = stirred(MLPCritic(X_SHAPE, Y_SHAPE, (4,))), sides()
    torch.testing.assert_close(joint_scores(critic, x, y), critic(x.seen, y.seen).detach())


def test_a_sum_of_stages_and_pairs_adds_up():
    narrow, concat = on_columns([2], [0]), stirred(MLPCritic(X_SHAPE, Y_SHAPE, (4,)))
    x, y = sides()
    expected = narrow.critic(x.seen[:, [2]], y.seen[:, [0]]) + concat(x.seen, y.seen)
    expected = expected + (x.baseline * y.baseline).sum(dim=1)
    torch.testing.assert_close(SumCritic(StagedCritic([narrow]), concat)(x, y), expected)


def test_the_columns_of_a_critic_are_buffers():
    critic = on_columns([2, 0], [1])
    assert {"x_columns", "y_columns"} <= critic.state_dict().keys()
    assert {"x_columns", "y_columns"} == {name for name, _ in critic.named_buffers()}
    other = on_columns([0, 1], [0])
    other.load_state_dict(critic.state_dict())
    assert other.x_columns.tolist() == [2, 0]
    assert other.y_columns.tolist() == [1]
    torch.testing.assert_close(other.left(X), critic.left(X))
    assert critic.float().double().x_columns.dtype == torch.int64  # indices stay indices
    assert critic.left(X).dtype == torch.float64
    moved = critic.to("meta")
    assert {buffer.device.type for buffer in moved.buffers()} == {"meta"}


def test_product_scores_by_table_are_those_by_pairs():
    critic = stirred(SeparableCritic((2,), (2,), (4,)))
    x, y = normal(50, 2), normal(50, 2, seed=1)
    others = partners(50, 20, generator())
    by_pairs = torch.stack([joint_scores(critic, x, y[rows]) for rows in others.T], dim=1)
    torch.testing.assert_close(product_scores(critic, x, y, others), by_pairs)
    torch.testing.assert_close(product_scores(critic, x, y, others[:, :3]), by_pairs[:, :3])
