"""Speed and accuracy, measured by a command: `deminat bench NAME`."""

from .accuracy import ACCURACY
from .cells import CELLS
from .columns import COLUMNS
from .images import IMAGES
from .ruler import RULER
from .runner import Bench, narrowed, run_bench
from .speed import SPEED
from .trust import TRUST
from .waiting import WAITING

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
