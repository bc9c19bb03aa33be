"""How close a training step comes to the matrix products that it consists of.

Three times, measured in turns in one process on one thread, so that a busy machine slows all alike:

- `limit`: the matrix products of a step of the paper's network (batch 64 + 64, 40-256-256-1),
  forward and backward, and nothing else;
- `deminat`: a step of `training.train` on the paper's settings;
- `plain`: the same step as it is often written, with a per-row `DataLoader` and the derangement
  of the demo that the paper's authors released: a Python loop that concatenates row by row.

A verdict is on medians over rounds of the mean time of a step.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from ...critics.networks import MLPCritic
from ...data.pairs import batches
from ...objectives import DEMI
from ...runtime.process import one_thread
from ...runtime.rowstore import Cell, Row
from ...training.analytic.gradients import batch_loss
from ...training.config import Training
from ...training.loop import train
from .runner import Bench, mark, medians

__all__ = ["BENCHES", "Layer", "matrix_products", "milliseconds", "mlp_layers", "step_times"]

Layer = tuple[int, int, int]  # rows, inputs, outputs

_CLAIM = "a training step takes little more time than its matrix products"
_BATCH, _DIM, _HIDDEN = 64, 20, 256
_ROWS = 16_000


def _rounds(seeds: Sequence[int]) -> list[Cell]:
    return [{"round": seed, "steps": 200} for seed in seeds]


def _time_round(cell: Cell) -> Row:
    x, y = torch.randn(2, _ROWS, _DIM, generator=torch.Generator().manual_seed(cell["round"]))
    limit = matrix_products(mlp_layers(2 * _BATCH))
    timed = {"limit": limit, "deminat": _deminat(x, y), "plain": _plain(x, y)}
    return step_times(timed, cell["steps"], warmup=20)


def step_times(timed: Mapping[str, Callable[[int], None]], steps: int, warmup: int) -> Row:
    """Return the milliseconds of a step of each, after some steps that are not timed."""
    with one_thread():
        for run in timed.values():
            run(warmup)
        return {f"{name}_ms": milliseconds(run, steps) for name, run in timed.items()}


def milliseconds(run: Callable[[int], None], steps: int) -> float:
    """Return the milliseconds of a step."""
    start = time.perf_counter()
    run(steps)
    return (time.perf_counter() - start) / steps * 1e3


def _verdict(rows: Sequence[Row]) -> list[str]:
    limit, ours, plain = medians(rows, "limit_ms", "deminat_ms", "plain_ms")
    of_limit, over_plain = limit / ours, plain / ours
    return [
        f"{mark(of_limit >= 0.5)} a step takes {ours:.2f} ms, its matrix products {limit:.2f} ms: "
        f"{of_limit:.0%} of the limit (at least 50%)",
        f"{mark(over_plain >= 2)} the plain loop takes {plain:.2f} ms: {over_plain:.2f} times as "
        "long (at least 2)",
    ]


def mlp_layers(rows: int, first: int | None = None) -> list[Layer]:
    """Return the layers of the paper's critic on `rows` pairs; of the first, on `first` rows."""
    widths = pairwise([2 * _DIM, _HIDDEN, _HIDDEN, 1])
    heights = [first or rows, rows, rows]
    return [(n, i, o) for n, (i, o) in zip(heights, widths, strict=True)]


def matrix_products(layers: Sequence[Layer]) -> Callable[[int], None]:
    """Return the matrix products of layers, forward and backward."""
    given = [(torch.randn(n, i), torch.randn(o, i), torch.randn(n, o)) for n, i, o in layers]
    outs = [(torch.empty(o.shape), torch.empty(w.shape), torch.empty(a.shape)) for a, w, o in given]

    def run(steps: int) -> None:
        for _ in range(steps):
            for (a, w, _), (out, _, _) in zip(given, outs, strict=True):
                torch.mm(a, w.T, out=out)
            for i, ((a, w, gradient), (_, to_w, to_a)) in enumerate(zip(given, outs, strict=True)):
                torch.mm(gradient.T, a, out=to_w)
                if i > 0:  # the data need no gradient
                    torch.mm(gradient, w, out=to_a)

    return run


def _deminat(x: Tensor, y: Tensor) -> Callable[[int], None]:
    critic, per_epoch = MLPCritic((_DIM,), (_DIM,)), len(x) // _BATCH
    stream = batches(len(x), _BATCH, 1, torch.Generator().manual_seed(0))

    def run(steps: int) -> None:
        loss = batch_loss(critic, x, y, DEMI())
        train(critic, loss, stream, per_epoch, Training(steps=steps))

    return run


def _plain(x: Tensor, y: Tensor) -> Callable[[int], None]:
    critic = MLPCritic((_DIM,), (_DIM,))
    optimizer = torch.optim.Adam(critic.parameters(), 5e-4)
    loader = DataLoader(TensorDataset(x, y), _BATCH, shuffle=True)
    loss_of = nn.BCEWithLogitsLoss()
    labels = torch.cat([torch.ones(_BATCH), torch.zeros(_BATCH)])

    def run(steps: int) -> None:
        for _, (a, b) in zip(range(steps), loader, strict=False):
            shifted = _shifted(b)
            scores = critic(torch.cat([a, a]), torch.cat([b, shifted]))
            optimizer.zero_grad()
            loss_of(scores, labels).backward()
            optimizer.step()

    return run


def _shifted(y: Tensor) -> Tensor:
    """Return the rows of y moved on by one, as the authors' demo builds them."""
    shifted = y[1:2]
    for i in range(1, len(y)):
        shifted = torch.cat([shifted, y[(i + 1) % len(y)].unsqueeze(0)])
    return shifted


BENCHES = {"speed": Bench(_CLAIM, _rounds, _time_round, _verdict, runs=15, jobs=1)}
