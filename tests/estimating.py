"""An estimate in a process of its own, to be killed: python estimating.py FOLDER [JOBS].

Each evaluation takes a while, so that a kill interrupts it, and each fold that begins is logged.
"""

import json
import os
import sys
import time
from dataclasses import replace

import deminat
from common import QUICK
from deminat.tasks import gaussian

FOLDS = 6


class Slow:
    """Waits at each evaluation, and logs which folds are trained."""

    def on_begin(self, fold, training):
        if training == 0:
            with open(os.environ["FOLD_LOG"], "a") as log:
                log.write(f"{fold}\n")

    def on_step(self, step, loss):
        pass

    def on_evaluation(self, step, held_out):
        time.sleep(0.03)

    def on_end(self, history):
        pass


def estimated(folder, callbacks=()):
    x, y = gaussian(2, 1.0).sample(120, seed=0)
    method = deminat.Estimator(training=replace(QUICK, steps=30))
    return deminat.estimate(
        x, y, method=method, folds=FOLDS, callbacks=callbacks, checkpoint=folder
    )


def all_bits(result):
    """Return all that a result holds, to be compared exactly."""
    return {**result.to_dict(), "pointwise": result.pointwise.tobytes().hex()}


if __name__ == "__main__":
    print(json.dumps(all_bits(estimated(sys.argv[1], [Slow()]))))  # noqa: T201
