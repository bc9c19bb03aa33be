"""Fitted objects as arrays and JSON, and back: nothing that could run code.

A value becomes a plan, which is JSON, and arrays, which go into a safetensors file with the plan
in its header. Only the kinds listed here are written and read. A network is its weights: their
shapes give the number of layers and units, so a file cannot ask for more memory than it holds. A
user's own critic is its weights and the shapes that it was built for; to read it, its constructor
has to be given. Equal arrays, such as the quantiles of columns without ties, are stored once.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from itertools import chain, count, takewhile
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save
from scipy.interpolate import PchipInterpolator
from torch import nn

from .. import records
from ..critics import composed
from ..critics.baselines.experts import SAVED
from ..critics.networks import (
    CONV_CHANNELS,
    ConvCritic,
    CriticFactory,
    MLPCritic,
    SeparableConvCritic,
    SeparableCritic,
    build_critic,
)
from ..data import transforms
from ..data.schema import Schema
from ..errors import DataError, printable
from ..estimators.crossfit import Fold
from ..estimators.fitted import ColumnNames, FittedModel, FittedScorer, FoldEnsemble, PooledScorer
from ..estimators.flows import FlowRatio
from ..estimators.gaussian import Gaussian
from ..estimators.ksg import KSG
from ..estimators.neural import Estimator
from ..estimators.normaliser import LogNormalisers
from ..estimators.scaling import Scales
from ..estimators.scores import Scores
from ..results import Caution
from ..runtime.atomic import sha256_of
from ..training.callbacks import History

__all__ = ["check_packable", "pack", "plan_of", "unpack", "value_of"]

Arrays = dict[str, NDArray[Any]]
Plan = Any  # what JSON can hold
Weights = Mapping[str, torch.Tensor]

_KIND = "$"
_CUSTOM = "critic"  # a user's own
_DIGITS = 32  # of an array's sha256 that are its name

# Dataclasses, whose fields are all stored.
_RECORDS: tuple[type[Any], ...] = (
    *(transforms.Identity, transforms.Indicators, transforms.Linear, transforms.Norms),
    *(transforms.NoColumns, transforms.Projected, transforms.RankToNormal),
    *(transforms.Robust, transforms.SmoothRanks, transforms.Standardize, transforms.Views),
    *SAVED,
    *(Scales, Schema, FittedScorer, PooledScorer, ColumnNames, FoldEnsemble, FittedModel),
    *(Caution, Fold, History, LogNormalisers, Scores),
    *(records.CalibrationBin, records.Diagnostics, records.LearningCurve, records.Stage),
    *(records.RunDescription, records.SideDescription),
)
# Attributes that are given to the constructor, and those that are set afterwards.
_ATTRIBUTES: dict[type[Any], tuple[tuple[str, ...], tuple[str, ...]]] = {
    **{kind: (tuple(f.name for f in fields(kind)), ()) for kind in _RECORDS},
    composed.BaselineCritic: (("critic",), ()),
    composed.ColumnCritic: (("critic", "x_columns", "y_columns"), ()),
    composed.MeanCritic: (("critics",), ()),
    composed.NormalisedCritic: (("critic", "x_rows", "y_rows", "x_logs", "y_logs"), ()),
    composed.StagedCritic: (("critics",), ()),
    composed.SumCritic: (("staged", "concat"), ()),
    composed.ClosedForm: (("components",), ()),
    KSG: (("k",), ("n_features_in_", "schema_", "maps_", "reference_")),
    Gaussian: (
        ("ranks",),
        ("n_features_in_", "schema_", "maps_", "means_", "directions_", "correlations_"),
    ),
}


def pack(value: Any) -> bytes:
    """Return a value as a safetensors file with its plan in the header."""
    arrays: Arrays = {}
    plan = json.dumps(plan_of(value, arrays))
    return save(arrays, {"plan": plan})


def unpack(data: bytes, critic: CriticFactory | None = None) -> Any:
    """Return what `pack` was given; whatever else it is, a ValueError.

    Args:
        data: A safetensors file.
        critic: Constructor of a user's own critic, if the value holds one.
    """
    try:
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        arrays = {name: np.array(array) for name, array in load(data).items()}
        return value_of(json.loads(header["__metadata__"]["plan"]), arrays, critic)
    except (SafetensorError, KeyError, TypeError, RuntimeError, AttributeError) as error:
        raise ValueError(f"it cannot be read ({type(error).__name__}: {error})") from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def plan_of(value: Any, arrays: Arrays) -> Plan:
    """Return the plan of a value, and put its arrays among `arrays`."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {_KIND: "float", "is": str(float(value))}
    if isinstance(value, list):
        return [plan_of(v, arrays) for v in value]
    if isinstance(value, tuple):
        return {_KIND: "tuple", "of": [plan_of(v, arrays) for v in value]}
    if isinstance(value, dict) and all(isinstance(k, str) and k != _KIND for k in value):
        return {k: plan_of(v, arrays) for k, v in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _stored(value, arrays)
    if isinstance(value, torch.Tensor):
        return {_KIND: "tensor", "of": _stored(value.detach().cpu().numpy(), arrays)}
    return _planned(value, arrays)


def check_packable(estimator: Any) -> None:
    """Refuse, before it is trained, an estimator whose scaling only its user has."""
    if isinstance(estimator, Estimator) and estimator.scaling not in _RECORDS:
        raise _foreign(estimator.scaling_name)


def _foreign(name: str) -> DataError:
    return DataError(
        f"{name} is not part of deminat, and files without code cannot restore it: save results of "
        "deminat's own scalings and baselines, or use log_ratio unsaved"
    )


def _stored(value: Any, arrays: Arrays) -> Plan:
    """Return the plan of an array, with its order in memory: sums depend on it."""
    array = np.asarray(value)
    turned = array.flags.f_contiguous and not array.flags.c_contiguous
    array = np.asarray(array.T if turned else array, order="C")
    if array.dtype.kind not in "biuf":
        raise DataError(f"an array of {array.dtype} cannot be saved")
    name = sha256_of(f"{array.dtype.str} {array.shape} ".encode() + array.tobytes())[:_DIGITS]
    arrays.setdefault(name, array)
    kind = "scalar" if isinstance(value, np.generic) else "array"
    return {_KIND: kind, "name": name, **({"turned": True} if turned else {})}


def _planned(value: Any, arrays: Arrays) -> Plan:
    """Return the plan of something that is neither plain nor an array."""
    name = type(value).__name__
    if type(value) in _ATTRIBUTES:
        inner = {a: getattr(value, a) for a in chain(*_ATTRIBUTES[type(value)])}
    elif type(value) in _NETWORKS:
        inner = {"weights": dict(value.state_dict())}
    elif isinstance(value, PchipInterpolator):
        name, inner = "curve", {"c": value.c, "x": value.x}
    elif isinstance(value, nn.ModuleList):
        return plan_of(list(value), arrays)
    elif isinstance(value, nn.Module) and hasattr(value, "shapes"):
        inner = {"class": name, "shapes": value.shapes, "weights": dict(value.state_dict())}
        name = _CUSTOM
    else:
        raise _foreign(name)
    return {_KIND: name, **{key: plan_of(v, arrays) for key, v in inner.items()}}


def value_of(plan: Plan, arrays: Arrays, critic: CriticFactory | None = None) -> Any:
    """Return the value of a plan."""
    if isinstance(plan, list):
        return [value_of(p, arrays, critic) for p in plan]
    if not isinstance(plan, dict):
        return plan
    kind = plan.get(_KIND)
    if kind in ("array", "scalar"):
        array = arrays[plan["name"]]
        array = array.T if plan.get("turned") else array
        return array[()] if kind == "scalar" else array
    inner = {key: value_of(p, arrays, critic) for key, p in plan.items() if key != _KIND}
    if kind == _CUSTOM:
        return _custom(inner, critic)
    return inner if kind is None else _made(kind, inner)


def _custom(inner: dict[str, Any], factory: CriticFactory | None) -> nn.Module:
    """Return a user's own critic, built by its constructor and filled with its weights."""
    name = printable(inner["class"])
    if factory is None:
        raise DataError(
            f"it holds a critic of your own, {name}: give its class, "
            f"deminat.load(folder, critic={name})"
        )
    with torch.random.fork_rng(devices=[]):  # its random weights are replaced
        network = build_critic(factory, *inner["shapes"])
    try:
        return _filled(network, inner["weights"]).eval()
    except RuntimeError as error:  # torch lists what is missing, on many lines
        raise DataError(f"the given critic does not fit the weights of {name}") from error


def _made(kind: str, inner: dict[str, Any]) -> Any:
    """Return a value of one of the kinds."""
    made = _KINDS.get(kind)
    if made in _NETWORKS:
        return _NETWORKS[made](inner["weights"]).eval()
    if made is not None:
        given, later = _ATTRIBUTES[made]
        if set(inner) != {*given, *later}:
            raise ValueError(f"it has another {kind}")
        value = made(**{name: inner[name] for name in given})
        for name in later:
            setattr(value, name, inner[name])
        return value.eval() if isinstance(value, nn.Module) else value
    simple: dict[str, Callable[[dict[str, Any]], Any]] = {
        "tuple": lambda parts: tuple(parts["of"]),
        "float": lambda parts: float(parts["is"]),
        "tensor": lambda parts: torch.from_numpy(np.array(parts["of"])),
        "curve": lambda parts: PchipInterpolator.construct_fast(parts["c"], parts["x"]),
    }
    if kind not in simple:
        raise ValueError(f"it holds {kind!r}, which this version does not know")
    return simple[kind](inner)


def _mlp(weights: Weights) -> nn.Module:
    inputs, *hidden, _ = _sizes(weights, "layers")
    with torch.device("meta"):  # neither memory nor randomness is spent
        return _filled(MLPCritic((inputs,), (0,), hidden), weights)


def _separable(weights: Weights) -> nn.Module:
    (x, *hidden, outputs), (y, *_) = _sizes(weights, "u"), _sizes(weights, "v")
    with torch.device("meta"):
        return _filled(SeparableCritic((x,), (y,), hidden, rank=outputs - 1), weights)


def _separable_conv(weights: Weights) -> nn.Module:
    shapes = [_encoder_shape(weights, side) for side in "uv"]
    outputs = [w for name, w in weights.items() if name.startswith("v.")][-1]
    with torch.device("meta"):
        return _filled(SeparableConvCritic(shapes[0], shapes[1], rank=len(outputs) - 1), weights)


def _encoder_shape(weights: Weights, side: str) -> tuple[int, ...]:
    """Return a shape of rows that an encoder takes; of the shape of images nothing depends."""
    if f"{side}.0.weight" not in weights:
        return (weights[f"{side}.1.weight"].shape[1],)
    pixels = weights[f"{side}.5.weight"].shape[1] // CONV_CHANNELS[1]
    return weights[f"{side}.0.weight"].shape[1], 4 * pixels, 1


def _conv(weights: Weights) -> nn.Module:
    channels, inputs = weights["convolution.weight"].shape[:2]
    features, hidden, _ = _sizes(weights, "layers")
    pixels = features // channels  # after a stride of 2: of their shape nothing depends
    shapes = (inputs, 2 * pixels, 1), (0, 2 * pixels, 1)
    with torch.device("meta"):
        return _filled(ConvCritic(*shapes, channels, hidden), weights)


def _flow_ratio(weights: Weights) -> nn.Module:
    x, y = (len(weights[f"flows.{flow}.base.loc"]) for flow in (1, 2))
    layer = "flows.0.transform.transforms"
    blocks = sum(f"{layer}.{i}.mask" in weights for i in range(len(weights)))
    _, *hidden, _ = _sizes(weights, f"{layer}.0.hyper")
    with torch.random.fork_rng(devices=[]):  # zuko cannot build without memory
        return _filled(FlowRatio(x, y, blocks, hidden), weights)


# Networks, and how to make them from their weights.
_NETWORKS: dict[type[nn.Module], Callable[[Weights], nn.Module]] = {
    MLPCritic: _mlp,
    SeparableCritic: _separable,
    SeparableConvCritic: _separable_conv,
    ConvCritic: _conv,
    FlowRatio: _flow_ratio,
}
_KINDS = {kind.__name__: kind for kind in (*_ATTRIBUTES, *_NETWORKS)}


def _filled(network: nn.Module, weights: Weights) -> nn.Module:
    network.load_state_dict(weights, assign=True)
    return network


def _sizes(weights: Weights, name: str) -> list[int]:
    """Return the inputs of each layer of a network, and the outputs of the last one."""
    keys = takewhile(weights.__contains__, (f"{name}.{2 * i}.weight" for i in count()))
    layers = [weights[key] for key in keys]  # activations have the odd numbers
    if not layers:
        raise ValueError(f"it has no weights of {name}")
    return [*(layer.shape[1] for layer in layers), len(layers[-1])]
