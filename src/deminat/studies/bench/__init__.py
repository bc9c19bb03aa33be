"""Speed and accuracy, measured by a command: `deminat bench NAME`."""

from .accuracy import ACCURACY
from .infomax_step import IMAGES
from .known_tasks import RULER
from .mixed_conditional import COLUMNS
from .paper_cells import CELLS
from .runner import Bench, narrowed, run_bench
from .speed import SPEED
from .startup import WAITING
from .trust import TRUST

__all__ = ["BENCHES", "Bench", "narrowed", "run_bench"]

BENCHES: dict[str, Bench] = {
    "speed": SPEED,
    "cells": CELLS,
    "waiting": WAITING,
    **ACCURACY,
    **RULER,
    **COLUMNS,
    "trust": TRUST,
    "infomax": IMAGES,
}
