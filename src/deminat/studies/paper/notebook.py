r"""The notebook that the authors released: is the preset `paper` their recipe?

The notebook trains on 160,000 pairs of 20-d Gaussians and prints, for each epoch, the sum of the
losses of its 2,500 steps. The loss of the last epoch tells recipes apart far better than the
estimate, which scatters by .1 nat at 5 nats and by more above. Beside it stand the estimates of
the released checkpoints on their test sets, a single training each.

| variant        | differs from the notebook by                                                 |
|----------------|------------------------------------------------------------------------------|
| `notebook`     | nothing: the preset `paper`                                                  |
| `drawn`        | labels that are drawn with probability 1/2, as in the text                   |
| `constant`     | a constant rate, as in the text                                              |
| `all rows`     | unpaired partners from all training rows, as in the text                     |
| `half batches` | 32 joint and 32 unpaired examples a step, and half as many passes            |

References:
    Liao et al. (2020), the notebook and checkpoints released with it.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from ...estimators.neural import Estimator
from ...estimators.registry import estimator_for
from ...objectives import DEMI
from ...runtime.rowstore import Cell, Row
from ...training.callbacks import Recorder, listen
from ...training.config import PAPER, Training
from .gaussian import draw_pairs
from .recipe import check_study, fit_once, held_out_results, result_rows
from .tables import Table

__all__ = ["PRINTED", "RELEASED", "NotebookStudy", "notebook_tables", "run_notebook"]

# By true nats: the loss that the notebook prints for its last epoch, and the estimate of the
# released checkpoint.
PRINTED = {0.1: 1624.9, 5.0: 261.7, 10.0: 29.0, 15.0: 2.56, 20.0: 0.332}
RELEASED = {0.1: 0.052, 5.0: 4.576, 10.0: 8.741, 15.0: 14.276, 20.0: 17.720}

_D, _N, _EPOCHS = 20, 160_000, 20
_VARIANTS: dict[str, tuple[DEMI, Training]] = {
    "notebook": (DEMI(), PAPER),
    "drawn": (DEMI(draw=True), PAPER),
    "constant": (DEMI(), replace(PAPER, halve_at=())),
    "all rows": (DEMI(), replace(PAPER, in_batch=False)),
    "half batches": (DEMI(), replace(PAPER, batch=32, in_batch=False, epochs=10)),
}


@dataclass(frozen=True)
class NotebookStudy:
    """Settings of the experiment.

    Args:
        variants: Recipes to train by.
        reps: Trainings of each, on other pairs.
        scale: Share of the training pairs to use, for a quick run.
    """

    variants: tuple[str, ...] = tuple(_VARIANTS)
    reps: int = 10
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_study(self.scale)

    def cells(self) -> list[Cell]:
        """Return a cell for each training."""
        n = max(64, round(self.scale * _N))
        return [
            {"kind": "normal", "d": _D, "n": n, "truth": truth, "draw": draw, "variant": variant}
            for variant in self.variants
            for draw in range(self.reps)
            for truth in PRINTED
        ]


def run_notebook(cell: Cell) -> list[Row]:
    """Train once and return the loss of the last epoch with the estimate."""
    start = time.perf_counter()
    train, held_out = draw_pairs(cell)
    objective, training = _VARIANTS[cell["variant"]]
    paper = cast(Estimator, estimator_for(objective, "paper", seed=cell["draw"]))
    recorder = Recorder()
    with listen(0, [recorder]):
        fitted = fit_once(replace(paper, training=training), cell, train)
    losses = [values[1] for event, values in recorder.events if event == "on_step"]
    (row,) = result_rows(cell, held_out_results(fitted, [objective], held_out, k=1), start)
    loss, truth = sum(losses[-max(1, len(losses) // _EPOCHS) :]), cell["truth"]
    return [{**row, "loss": loss, "printed": PRINTED[truth], "released": RELEASED[truth]}]


def notebook_tables(rows: Sequence[Row]) -> list[Table]:
    """Return loss and estimate of each variant, by true nats, beside those of the authors."""
    return [
        _beside(rows, "loss", "sum of the losses of the last epoch", "printed", PRINTED),
        _beside(rows, "estimate", "estimate in nats", "released checkpoint", RELEASED),
    ]


def _beside(
    rows: Sequence[Row], key: str, title: str, theirs: str, known: dict[float, float]
) -> Table:
    """Return mean and standard deviation of a value over draws below the authors' value."""
    heads = sorted({r["truth"] for r in rows})
    lines = [(theirs, tuple(f"{known[head]:.4g}" for head in heads))]
    for variant in dict.fromkeys(r["variant"] for r in rows):
        own = [r for r in rows if r["variant"] == variant]
        values = [[r[key] for r in own if r["truth"] == head] for head in heads]
        lines.append((f"{variant} ({_draws(values)})", tuple(map(_entry, values))))
    return Table(f"{title}, by true nats", "recipe", tuple(f"{h:g}" for h in heads), tuple(lines))


def _draws(values: Sequence[Sequence[float]]) -> str:
    least, most = (choose(map(len, values)) for choose in (min, max))
    return f"{most} draw{'s' * (most > 1)}" if least == most else f"{least} to {most} draws"


def _entry(values: Sequence[float]) -> str:
    if len(values) < 2:
        return f"{values[0]:.4g}" if values else ""
    return f"{np.mean(values):.4g} ± {np.std(values, ddof=1):.2g}"
