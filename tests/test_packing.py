"""What is packed comes back the same, bit for bit; nothing else is read, and no code is run."""

import dataclasses
import json
import math
import pickle
from functools import partial

import numpy as np
import pytest
import torch
from safetensors.numpy import save
from torch import nn

from common import QUICK_ESTIMATORS
from deminat import ConvCritic, DataError, Estimator, MLPCritic, SeparableCritic, Standardize
from deminat.critics.baselines import Additive, GaussianCopula
from deminat.critics.baselines.hidden import HiddenClasses
from deminat.critics.baselines.mixture import Mixture, views
from deminat.critics.composed import (
    BaselineCritic,
    ClosedForm,
    ColumnCritic,
    StagedCritic,
    SumCritic,
)
from deminat.critics.features import Features
from deminat.critics.networks import SeparableConvCritic, build_critic
from deminat.data.sample import as_sample
from deminat.data.transforms import (
    Identity,
    NoColumns,
    Projected,
    RankToNormal,
    Robust,
    SmoothRanks,
    Views,
)
from deminat.estimators.flows import FlowRatio
from deminat.persistence.serialise import check_packable, pack, plan_of, unpack
from deminat.records import CalibrationBin, Diagnostics, Stage
from deminat.tasks import gaussian
from deminat.training.callbacks import History

X, Y = gaussian(2, 1.0).sample(90, seed=0)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        "größe",
        1 / 3,
        -math.inf,
        [1, [2.5, None]],
        (1, (2, [3])),
        {"a": {"b": (1,)}, "": []},
        History(
            3,
            2,
            0.1,
            (0.2, 0.3),
            0,
            stage=Stage("related", (2, 3)),
            stages=(History(1, 1, 0.5, (), 0),),
        ),
        Diagnostics(calibration=(CalibrationBin(0.1, 0.2, 0.3),), learning=((),), restarts=0),
    ],
)
def test_plain_values_come_back(value):
    assert unpack(pack(value)) == value


def test_what_is_no_number_comes_back():
    assert math.isnan(unpack(pack(math.nan)))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12).reshape(3, 4)[:, ::2],
        np.array(2.5),
        np.zeros((0, 3)),
        np.array([True, False]),
        np.array([-0.0, 0.0, np.nan]),
        np.float32(1.5),
        np.int64(7),
    ],
)
def test_arrays_come_back_with_their_type_and_order(array):
    again = unpack(pack([array]))[0]
    assert type(again) is type(array)
    assert again.dtype == array.dtype
    assert again.tobytes() == array.tobytes()
    assert again.shape == array.shape
    if array.ndim == 2 and array.flags.f_contiguous != array.flags.c_contiguous:
        assert again.flags.f_contiguous == array.flags.f_contiguous


def test_equal_arrays_are_stored_once():
    one = np.random.default_rng(0).normal(size=1000)
    assert len(pack([one, one.copy(), one[None, 0:1]])) < 1.2 * len(pack(one))


def random_rows(shape):
    """Rows of one shape, or features: rows that networks see, and factors of a baseline."""
    if isinstance(shape[0], tuple):
        return Features(*(torch.randn(9, *part) for part in shape))
    return torch.randn(9, *shape)


@pytest.mark.parametrize(
    ("network", "x_shape", "y_shape"),
    [
        (MLPCritic((3,), (2,)), (3,), (2,)),
        (MLPCritic((2, 2), (3,), hidden=(5, 4, 3)), (2, 2), (3,)),
        (SeparableCritic((3,), (2,)), (3,), (2,)),
        (SeparableCritic((9,), (1,), hidden=(8,), rank=3), (9,), (1,)),
        (ConvCritic((1, 7, 5), (2, 7, 5), channels=4, hidden=8), (1, 7, 5), (2, 7, 5)),
        (SeparableConvCritic((1, 7, 5), (2, 9, 4), rank=3), (1, 7, 5), (2, 9, 4)),
        (SeparableConvCritic((3, 8, 8), (5,)), (3, 8, 8), (5,)),
        (FlowRatio(1, 1, blocks=2, hidden=(8,)), (1,), (1,)),
        (FlowRatio(3, 2, blocks=3, hidden=(8, 6)), (3,), (2,)),
        (BaselineCritic(SeparableCritic((2,), (2,))), ((2,), (1,)), ((2,), (1,))),
        (ClosedForm(2), ((1,), (4,)), ((3,), (4,))),
        (
            SumCritic(
                StagedCritic(
                    [
                        ColumnCritic(
                            SeparableCritic((2,), (1,)), torch.tensor([0, 2]), torch.tensor([1])
                        )
                    ]
                ),
                MLPCritic((3,), (2,), hidden=(4,)),
            ),
            ((3,), (1,)),
            ((2,), (1,)),
        ),
    ],
    ids=lambda v: type(v).__name__,
)
def test_networks_come_back(network, x_shape, y_shape):
    for weight in network.parameters():
        nn.init.normal_(weight)
    network.eval()
    x, y = random_rows(x_shape), random_rows(y_shape)
    before = torch.get_rng_state()
    again = unpack(pack(network))
    assert torch.equal(before, torch.get_rng_state())
    assert not again.training
    assert torch.equal(again(x, y), network(x, y))


@pytest.mark.parametrize(
    "kind",
    [Identity, NoColumns, Projected, Standardize, Robust, RankToNormal, SmoothRanks, Views],
)
def test_maps_come_back(kind):
    fitted = kind.fit(X)
    assert np.array_equal(unpack(pack(fitted))(Y), fitted(Y))


def test_maps_of_images_come_back():
    images = np.random.default_rng(0).normal(size=(9, 1, 4, 4))
    fitted = Views.fit(images)
    assert np.array_equal(unpack(pack(fitted))(images), fitted(images))


@pytest.mark.parametrize(
    "baseline",
    [
        GaussianCopula.fit(X, Y),
        Additive.fit(np.round(X), np.round(Y)),
        GaussianCopula.fit(X, Y, scale=Standardize),
        HiddenClasses.fit(X, Y, ((False,) * 2, (False, True)), 3),
        *(Mixture.fit(X, Y, view, 2) for view in views(X, Y, None)),
    ],
    ids=lambda s: s.name,
)
def test_baselines_come_back(baseline):
    again = unpack(pack(baseline))
    assert again.name == baseline.name
    assert np.array_equal(again.left(X), baseline.left(X))
    assert np.array_equal(again.right(Y), baseline.right(Y))


@pytest.mark.parametrize("estimator", QUICK_ESTIMATORS.values(), ids=QUICK_ESTIMATORS)
def test_fitted_estimators_score_as_before(estimator):
    fitted = estimator.fit(X[:60], Y[:60])
    new = as_sample(X[60:], Y[60:])
    scorer = getattr(fitted, "scorer_", fitted)
    assert np.array_equal(unpack(pack(scorer)).joint(new), scorer.joint(new))


class Own(nn.Module):
    def __init__(self, x_shape, y_shape):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, x, y):
        return self.weight * x[:, 0] * y[:, 0]


@dataclasses.dataclass(frozen=True)
class OwnScaling(Identity):
    pass


@pytest.mark.parametrize("value", [Own((1,), (1,)), OwnScaling(), object(), {3: 4}, {"$": 1}, 1j])
def test_what_is_not_of_deminat_is_refused_by_name(value):
    with pytest.raises(DataError, match=type(value).__name__):
        pack(value)


def test_an_estimator_of_own_parts_is_refused_before_it_is_trained():
    for good in (Estimator(), Estimator(critic=partial(MLPCritic, hidden=(3,)), scaling=Robust)):
        check_packable(good)
    check_packable(Estimator(critic=Own))  # its class can be given when it is read
    with pytest.raises(DataError, match="OwnScaling"):
        check_packable(Estimator(scaling=OwnScaling))


def test_a_critic_of_ones_own_comes_back_if_its_constructor_is_given():
    critic = build_critic(Own, (1,), (1,))
    nn.init.ones_(critic.weight)
    data = pack([critic])
    (again,) = unpack(data, Own)
    assert again.weight == 1
    assert again.shapes == ((1,), (1,))
    with pytest.raises(DataError, match="critic=Own"):
        unpack(data)


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("it was unpickled",))


def planned(plan, **arrays):
    return save(arrays, {"plan": plan if isinstance(plan, str) else json.dumps(plan)})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nothing of the kind",
        pickle.dumps(Bomb()),
        save({"a": np.zeros(3)}),
        planned("{"),
        planned({"$": "Bomb"}),
        planned({"$": "os.system", "of": ["true"]}),
        planned({"$": "array", "name": "there is none"}),
        planned({"$": "Standardize", "center": 0}),
        planned({"$": "Standardize", "center": 0, "scale": 1, "more": 2}),
        planned({"$": "MLPCritic", "weights": {}}),
        planned({"$": "MLPCritic", "weights": 3}),
        planned({"$": "FlowRatio", "weights": {}}),
        planned({"$": ["list"]}),
        planned("[" * 100_000),
        pack([np.arange(3.0)])[:-1],
    ],
)
def test_what_was_not_packed_is_refused(data):
    with pytest.raises(ValueError, match=r"\w"):
        unpack(data)


def test_weights_that_do_not_fit_together_are_refused():
    arrays = {}
    plan = plan_of(MLPCritic((3,), (2,), hidden=(4, 4)), arrays)
    weights = plan["weights"]
    weights["layers.2.weight"] = weights["layers.0.weight"]
    with pytest.raises(ValueError, match="cannot be read"):
        unpack(planned(plan, **arrays))
