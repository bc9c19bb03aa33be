"""How close a step of Deep InfoMax comes to its convolutions and matrix products.

Two times, measured in turns in one process on one thread: `limit`, the convolutions of the encoder
and the matrix products of encoder, critic and table of scores, forward and backward; and `deminat`,
a step of `deminat paper infomax` on random images, from bytes to new weights.
"""

from collections.abc import Callable, Sequence

import torch

from ...infomax import DeepInfoMax, DotCritic, Encoder, InfoMaxLoss
from ...runtime.rowstore import Cell, Row
from ..paper.encoder import adam, training_step
from .runner import Bench, grouped, mark, medians
from .speed import matrix_products, step_times

__all__ = ["BENCHES"]

_CLAIM = "a step of Deep InfoMax takes little more time than its convolutions and matrix products"
_BATCH, _LOCATIONS = 64, 64
_CONVOLUTIONS = ((3, 64, 32), (64, 128, 16), (128, 256, 8))  # channels in and out, width


def _rounds(seeds: Sequence[int]) -> list[Cell]:
    return [{"units": units, "round": seed, "steps": 20} for seed in seeds for units in (256, 512)]


def _time_round(cell: Cell) -> Row:
    """Return the milliseconds of a step and of its limit, and images a second."""
    timed = {"limit": _limit(cell["units"]), "deminat": _deminat(cell["units"])}
    times = step_times(timed, cell["steps"], warmup=2)
    return {**times, "images_per_second": 1e3 * _BATCH / times["deminat_ms"]}


def _deminat(units: int) -> Callable[[int], None]:
    torch.manual_seed(0)
    model = DeepInfoMax(Encoder(), DotCritic(units=units), InfoMaxLoss())
    step = training_step(model, adam(model), torch.device("cpu"))
    images = torch.randint(256, (16 * _BATCH, 3, 32, 32), dtype=torch.uint8)

    def run(steps: int) -> None:
        for _ in range(steps):
            step(images[torch.randperm(len(images))[:_BATCH]], None)

    return run


def _limit(units: int) -> Callable[[int], None]:
    n, locations = _BATCH, _BATCH * _LOCATIONS
    local = [(locations, 128, units), (locations, units, units), (locations, 128, units)]
    whole = [(n, 64, units), (n, units, units), (n, 64, units)]
    encoder = [(n, 4096, 1024), (n, 1024, 64)]
    multiply = matrix_products([(n, units, locations), *local, *whole, *encoder])
    convolve = [_convolution(*shape) for shape in _CONVOLUTIONS]

    def run(steps: int) -> None:
        for _ in range(steps):
            multiply(1)
            for layer in convolve:
                layer()

    return run


def _convolution(inputs: int, outputs: int, width: int) -> Callable[[], None]:
    """Return a convolution, forward and backward."""
    images = torch.randn(_BATCH, inputs, width, width)
    weight = torch.randn(outputs, inputs, 4, 4)
    gradient = torch.randn(_BATCH, outputs, width // 2, width // 2)
    geometry = [2, 2], [1, 1], [1, 1], False, [0, 0], 1
    wanted = [inputs > 3, True, False]  # the images need no gradient

    def run() -> None:
        torch.conv2d(images, weight, None, 2, 1)
        torch.ops.aten.convolution_backward(gradient, images, weight, None, *geometry, wanted)

    return run


def _verdict(rows: Sequence[Row]) -> list[str]:
    lines = []
    for (units,), own in grouped(rows, "units").items():
        limit, ours, speed = medians(own, "limit_ms", "deminat_ms", "images_per_second")
        lines.append(
            f"{mark(limit / ours >= 0.5)} critic of {units} units: {speed:.0f} images a second, "
            f"{ours:.0f} ms a step, convolutions and products {limit:.0f} ms: {limit / ours:.0%} "
            "of the limit (at least 50%)"
        )
    return lines


BENCHES = {"infomax": Bench(_CLAIM, _rounds, _time_round, _verdict, runs=7, jobs=1)}
