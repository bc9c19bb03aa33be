"""GM: three flows whose densities make a log ratio."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from deminat import GM, DataError
from deminat.flows import FLOW_AUTO, FlowRatio
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


def test_the_score_is_the_log_likelihood():
    x, y = gaussian(1, 1.0).sample(500, seed=0)
    training = replace(FLOW_AUTO, steps=300, learning_rate=1e-2)
    fitted = GM(hidden=(8,), training=training).fit(x, y)
    assert fitted.score(x, y) > fitted.score(x, np.random.default_rng(0).permutation(y))


def test_images_are_refused():
    with pytest.raises(DataError, match="takes columns, not images"):
        GM().fit(np.random.default_rng(0).normal(size=(30, 1, 4, 4)), np.arange(30.0))
