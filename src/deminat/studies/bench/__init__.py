"""Speed and accuracy, measured by a command: `deminat bench NAME`.

Each module has its benches by name in `BENCHES`. A new module is added by its name below.
"""

from importlib import import_module

from .runner import Bench, run_bench, with_filter

__all__ = ["BENCHES", "Bench", "run_bench", "with_filter"]

_MODULES = (
    "speed",
    "paper_cells",
    "startup",
    "accuracy",
    "known_tasks",
    "mixed_conditional",
    "wild",
    "plasmode",
    "trust",
    "power",
    "given",
    "pairs",
    "selection",
    "infomax_step",
)
BENCHES: dict[str, Bench] = {
    name: bench
    for module in _MODULES
    for name, bench in import_module(f".{module}", __name__).BENCHES.items()
}
