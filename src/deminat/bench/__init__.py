"""Speed and accuracy, measured by a command: `deminat bench NAME`."""

from .accuracy import ACCURACY
from .runner import Bench, run_bench
from .speed import SPEED

__all__ = ["BENCHES", "Bench", "run_bench"]

BENCHES: dict[str, Bench] = {"speed": SPEED, **ACCURACY}
