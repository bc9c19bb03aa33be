"""GM: three flows whose densities make a log ratio."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from deminat import GM, DataError
from deminat.estimators.flows import FLOW_AUTO, FlowRatio
from deminat.tasks import gaussian


def test_the_log_ratio_is_the_difference_of_log_densities():
    torch.manual_seed(0)
    flows, (x, y) = FlowRatio(2, 3, hidden=(8,)), (torch.randn(5, 2), torch.randn(5, 3))
    both, x_alone, y_alone = flows.log_densities(x, y)
    torch.testing.assert_close(flows(x, y), both - x_alone - y_alone)
    torch.testing.assert_close(flows.loss(x, y), -(both + x_alone + y_alone).mean())


def test_densities_of_one_column_integrate_to_one():
    torch.manual_seed(0)
    flows = FlowRatio(1, 1, hidden=(8,))
    grid = torch.linspace(-30, 30, 6001)[:, None]
    density = flows.log_densities(grid, grid)[1].detach().exp()
    assert float(torch.trapezoid(density, grid[:, 0])) == pytest.approx(1, abs=1e-3)


def test_a_short_training_finds_most_of_a_gaussian():
    task = gaussian(2, 1.0)
    x, y = task.sample(2_000, seed=0)
    training = replace(FLOW_AUTO, steps=400, learning_rate=3e-3)
    fitted = GM(hidden=(32, 32), training=training).fit(x, y)
    assert fitted.estimate(*task.sample(2_000, seed=1)).mi == pytest.approx(1.0, abs=0.25)


def test_sides_take_turns_in_the_joint_flow():
    assert FlowRatio(2, 2, hidden=(8,)).turns.tolist() == [0, 2, 1, 3]
    assert FlowRatio(4, 1, hidden=(8,)).turns.tolist() == [0, 1, 4, 2, 3]
    x, y = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]])
    assert FlowRatio(2, 2, hidden=(8,)).tables(x, y)[0].tolist() == [[1, 3, 2, 4]]


def test_columns_that_belong_together_find_each_other():
    """Side by side, each x_i and its y_i would be in the same half of every coupling: 0 nats."""
    task = gaussian(8, 2.0)
    fitted = GM(hidden=(32, 32), training=replace(FLOW_AUTO, steps=300)).fit(*task.sample(2_000, 0))
    assert fitted.estimate(*task.sample(2_000, seed=1)).mi == pytest.approx(2.0, abs=0.5)


def test_the_score_is_the_log_likelihood():
    x, y = gaussian(1, 1.0).sample(500, seed=0)
    training = replace(FLOW_AUTO, steps=300, learning_rate=1e-2)
    fitted = GM(hidden=(8,), training=training).fit(x, y)
    assert fitted.score(x, y) > fitted.score(x, np.random.default_rng(0).permutation(y))


def test_images_are_refused():
    with pytest.raises(DataError, match="takes columns, not images"):
        GM().fit(np.random.default_rng(0).normal(size=(30, 1, 4, 4)), np.arange(30.0))
