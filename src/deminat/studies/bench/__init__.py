"""Speed and accuracy, measured by a command: `deminat bench NAME`."""

from .accuracy import ACCURACY
from .infomax_step import INFOMAX_STEP
from .known_tasks import KNOWN_TASKS
from .mixed_conditional import MIXED_CONDITIONAL
from .paper_cells import PAPER_CELLS
from .runner import Bench, run_bench, with_filter
from .speed import SPEED
from .startup import STARTUP
from .trust import TRUST

__all__ = ["BENCHES", "Bench", "run_bench", "with_filter"]

BENCHES: dict[str, Bench] = {
    "speed": SPEED,
    "cells": PAPER_CELLS,
    "waiting": STARTUP,
    **ACCURACY,
    **KNOWN_TASKS,
    **MIXED_CONDITIONAL,
    "trust": TRUST,
    "infomax": INFOMAX_STEP,
}
