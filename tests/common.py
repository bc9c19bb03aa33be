"""What several test files use."""

import struct
from dataclasses import replace
from functools import partial

import numpy as np

from deminat import DEMI, GM, KSG, MINE, NWJ, Estimator, Gaussian, InfoNCE, MLPCritic, Standardize
from deminat.estimators.flows import FLOW_AUTO
from deminat.training.config import AUTO
from deminat.training.early_stopping import EarlyStopping

QUICK = replace(AUTO, batch=64, steps=20, average=None, stopping=EarlyStopping(every=10))

# One of each kind of estimator, trained so briefly that a contract can be checked in seconds.
QUICK_ESTIMATORS = {
    "demi": Estimator(training=QUICK),
    "demi-concat": Estimator(
        DEMI(0.25), partial(MLPCritic, hidden=(32,)), Standardize, replace(QUICK, negatives=2)
    ),
    "demi-drawn": Estimator(DEMI(0.25, draw=True), training=QUICK),
    "mine": Estimator(MINE(), training=QUICK),
    "nwj": Estimator(NWJ(), training=QUICK),
    "infonce": Estimator(InfoNCE(), training=QUICK),
    "gm": GM(hidden=(16,), training=replace(FLOW_AUTO, batch=64, steps=12)),
    "ksg": KSG(),
    "gaussian": Gaussian(),
    "copula": Gaussian(ranks=True),
}


def write_idx(path, values):
    """Write an array of bytes as the publisher of MNIST does."""
    array = np.asarray(values, np.uint8)
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    path.write_bytes(header + array.tobytes())
