"""The loop: it learns, stops, restores the best weights, and recovers from a diverging loss."""

import copy
import itertools
import math
import pickle
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from torch import nn

from deminat import DEMI, ConvCritic, MLPCritic, SeparableCritic
from deminat.critics.scoring import batch_scores
from deminat.data.pairs import batches
from deminat.errors import TrainingError
from deminat.estimators.flows import FlowRatio
from deminat.runtime.process import one_thread
from deminat.runtime.progress import progress_of_part
from deminat.training.analytic.gradients import batch_loss
from deminat.training.config import Training
from deminat.training.early_stopping import EarlyStopping
from deminat.training.loop import train

FAST = Training(steps=200, learning_rate=0.05, halve_at=())


class Point(nn.Module):
    """A single number to move."""

    def __init__(self, start=1.0):
        super().__init__()
        self.at = nn.Parameter(torch.tensor(start))


def endless():
    return itertools.repeat(None)


def run(module, loss, settings=FAST, **options):
    return train(module, lambda _: loss(module.at), endless(), 10, settings, **options)


def test_a_loss_is_descended():
    point = Point()
    history = run(point, lambda at: (at - 3) ** 2)
    assert float(point.at.detach()) == pytest.approx(3, abs=0.05)
    assert history.steps == history.best_step == 200
    assert history.held_out == ()
    assert not point.training


def test_epochs_count_passes():
    assert run(Point(), lambda at: at**2, replace(FAST, steps=None, epochs=3)).steps == 30


def test_the_best_weights_on_held_out_rows_are_restored():
    # Training wants 10, the held-out rows want 2: the walk passes 2 and must come back to it.
    point = Point(0.0)
    stopping = EarlyStopping(every=1, patience=8, min_delta=0.0)
    history = run(
        point,
        lambda at: (at - 10) ** 2,
        replace(FAST, stopping=stopping),
        held_loss=lambda m: float((m.at.detach() - 2) ** 2),
    )
    assert float(point.at.detach()) == pytest.approx(2, abs=0.1)
    assert history.steps == history.best_step + 8
    assert min(history.held_out) == history.held_out[history.best_step]


def test_the_last_step_is_evaluated_too():
    point = Point(0.0)
    history = run(
        point,
        lambda at: (at - 10) ** 2,
        replace(FAST, steps=30, stopping=EarlyStopping(every=50)),
        held_loss=lambda m: float((m.at.detach() - 10) ** 2),
    )
    assert history.best_step == 30
    assert float(point.at.detach()) > 0


def test_initial_patience_ends_a_training_that_learns_nothing_sooner():
    def steps_taken(held_losses):
        losses = iter(held_losses)
        stopping = EarlyStopping(every=1, patience=6, initial_patience=3, min_delta=0.1)
        settings = replace(FAST, stopping=stopping)
        return run(Point(), lambda at: at**2, settings, held_loss=lambda _: next(losses)).steps

    assert steps_taken([1.0] * 9) == 3
    assert steps_taken([1.0, 1.2, 0.96, 0.96, 0.96, 0.96, 0.96]) == 3
    assert steps_taken([1.0, 1.2, 0.94, *[0.96] * 6]) == 3  # less than min_delta
    assert steps_taken([1.0, 1.2, 0.89, *[0.96] * 6]) == 8
    assert steps_taken([1.0, 1.2, 0.8, *[0.96] * 6]) == 8


def test_a_training_that_is_behind_after_its_trial_is_given_up():
    def steps_taken(held_losses, to_beat):
        losses = iter(held_losses)
        stopping = EarlyStopping(every=1, patience=9, min_delta=0.01, to_beat=to_beat, trial=4)
        settings = replace(FAST, steps=8, stopping=stopping)
        return run(Point(), lambda at: at**2, settings, held_loss=lambda _: next(losses)).steps

    falling = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]
    assert steps_taken(falling, to_beat=0.65) == 8
    assert steps_taken(falling, to_beat=0.55) == 4
    assert (
        steps_taken([1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.4, 0.3, 0.2], to_beat=0.55) == 8
    )  # a plateau


def test_untrained_weights_win_where_nothing_can_be_learnt():
    point = Point(0.0)
    history = run(
        point,
        lambda at: (at - 10) ** 2,
        replace(FAST, stopping=EarlyStopping(every=5, patience=3)),
        held_loss=lambda m: float(m.at.detach() ** 2),
    )
    assert float(point.at.detach()) == 0
    assert history.best_step == 0


def test_an_average_lags_behind_the_weights():
    plain, averaged = Point(0.0), Point(0.0)
    run(plain, lambda at: (at - 10) ** 2, replace(FAST, steps=60))
    run(averaged, lambda at: (at - 10) ** 2, replace(FAST, steps=60, average=0.9))
    assert 0 < float(averaged.at.detach()) < float(plain.at.detach())


def test_a_loss_that_is_not_finite_restarts_at_half_the_rate():
    calls = itertools.count()

    def loss(at):
        return at**2 if next(calls) != 5 else at * math.nan

    assert run(Point(), loss).restarts == 1


def test_divergence_that_persists_is_an_error():
    with pytest.raises(TrainingError, match="training diverged"):
        run(Point(), lambda at: at * math.inf)


def test_gradients_are_clipped():
    # Adam hides the scale of a gradient, not of one among many: the second step must not be lost.
    point = Point(0.0)
    sizes = iter([1e6] + [1.0] * 500)
    run(point, lambda at: next(sizes) * (at - 3).abs(), replace(FAST, clip=1.0))
    assert float(point.at.detach()) == pytest.approx(3, abs=0.2)


# The same as torch.optim.AdamW


class Half(nn.Module):
    """Has a weight that no loss depends on."""

    def __init__(self):
        super().__init__()
        self.used, self.idle = nn.Linear(5, 1), nn.Linear(5, 1)

    def forward(self, x, y):
        return self.used(torch.cat([x, y], dim=1)).squeeze(1)


MODULES = {
    "mlp": lambda: MLPCritic((3,), (2,), hidden=(16, 16)),
    "separable": lambda: SeparableCritic((3,), (2,), hidden=(16,)),
    "convolution": lambda: ConvCritic((1, 3, 3), (1, 3, 3), channels=4, hidden=8),
    "flows": lambda: FlowRatio(3, 2, blocks=2, hidden=(8,)),
    "half": Half,
}


def by_torch(module, loss, stream, settings):
    """Train by the optimizer of torch, and return the averaged module."""
    averaged = copy.deepcopy(module)
    optimizer = torch.optim.AdamW(
        module.parameters(), settings.learning_rate, weight_decay=settings.weight_decay
    )
    for step, batch in zip(range(1, settings.steps + 1), stream, strict=False):
        optimizer.zero_grad()
        loss(batch).backward()
        nn.utils.clip_grad_norm_(module.parameters(), settings.clip)
        optimizer.step()
        decay = min(settings.average, (step + 1) / (step + 10))
        with torch.no_grad():
            for mean, weight in zip(averaged.parameters(), module.parameters(), strict=True):
                mean.mul_(decay).add_((1 - decay) * weight)
    return averaged


@pytest.mark.parametrize("build", MODULES.values(), ids=MODULES)
def test_steps_are_those_of_adamw(build):
    torch.manual_seed(0)
    ours = build()
    theirs = copy.deepcopy(ours)
    shapes = ((1, 3, 3), (1, 3, 3)) if isinstance(ours, ConvCritic) else ((3,), (2,))
    x, y = (torch.randn(40, *shape) for shape in shapes)
    settings = replace(FAST, steps=50, learning_rate=0.01, weight_decay=0.1, clip=0.05, average=0.9)

    def stream():
        return batches(40, 8, 2, torch.Generator().manual_seed(0))

    def automatic(module):
        if isinstance(module, FlowRatio):
            return lambda batch: module.loss(x[batch.joint], y[batch.joint])
        return lambda batch: DEMI().loss(*batch_scores(module, x, y, batch))

    flows = isinstance(ours, FlowRatio)
    untrained = copy.deepcopy(ours)
    train(ours, automatic(ours) if flows else batch_loss(ours, x, y, DEMI()), stream(), 5, settings)
    expected = by_torch(theirs, automatic(theirs), stream(), settings).state_dict()
    torch.testing.assert_close(ours.state_dict(), expected, rtol=1e-4, atol=1e-6)
    assert not torch.equal(next(ours.parameters()), next(untrained.parameters()))
    assert len(pickle.dumps(ours)) == len(pickle.dumps(untrained.eval()))


def test_the_rate_follows_the_paper():
    rates = [Training().rate(epoch * 100, 2000) for epoch in (0, 5, 6, 12, 13, 19)]
    assert rates == [5e-4, 5e-4, 2.5e-4, 2.5e-4, 1.25e-4, 1.25e-4]
    assert Training(halve_at=()).rate(1999, 2000) == 5e-4


def test_a_cosine_warms_up_and_ends_at_nothing():
    settings = Training(cosine=True, halve_at=(), learning_rate=1.0)
    assert settings.rate(0, 1000) == pytest.approx(1 / 50)
    assert settings.rate(500, 1000) == pytest.approx(0.5)
    assert settings.rate(999, 1000) < 1e-4


def test_progress_grows_to_one():
    seen: list[float] = []
    run(Point(), lambda at: at**2, progress=progress_of_part(seen.append, 1, 2))
    assert seen == sorted(seen)
    assert seen[-1] == 1
    assert min(seen) > 0.5


def test_threads_are_restored_after_an_error():
    before = torch.get_num_threads()
    with pytest.raises(RuntimeError), one_thread():
        raise RuntimeError
    assert torch.get_num_threads() == before


def test_training_does_not_load_the_compiler():
    code = (
        "import sys; from deminat import Estimator, EarlyStopping, Training, tasks\n"
        "x, y = tasks.gaussian(1, 0.5).sample(60, seed=0)\n"
        "Estimator(training=Training(steps=3), baseline=None).fit(x, y)\n"
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
