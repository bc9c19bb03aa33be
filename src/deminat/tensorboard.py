"""Trainings in TensorBoard: a run for each training of each fold.

`deminat.estimate(x, y, callbacks=[deminat.TensorBoard("logs")])`, then `tensorboard --logdir logs`.
"""

from os import PathLike
from pathlib import Path
from typing import Any

from .errors import DataError, printable
from .history import History

__all__ = ["TensorBoard"]


class TensorBoard:
    """Writes the losses of trainings to a folder, as `fold 1/training 1` and so on.

    Tags are `loss`, of each step; `held_out`, of the rows that decide when to stop; and
    `kept_step`, the step whose weights were kept, when a training is over.

    Args:
        logdir: Where to; what is there already stays.
    """

    def __init__(self, logdir: PathLike[str] | str):
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise DataError(
                "TensorBoard is not installed: pip install 'deminat[tensorboard]'"
            ) from error
        self.logdir = Path(logdir)
        self._open: Any = SummaryWriter
        self._writer: Any = None

    def on_begin(self, fold: int, training: int) -> None:
        """Begin a run."""
        self._close()  # of a training that failed
        folder = self.logdir / f"fold {fold + 1}" / f"training {training + 1}"
        try:
            self._writer = self._open(str(folder))
        except OSError as error:
            raise DataError(f"cannot write to {printable(folder, 300)}: {error}") from error

    def on_step(self, step: int, loss: float) -> None:
        """Write the loss of a step."""
        self._writer.add_scalar("loss", loss, step)

    def on_look(self, step: int, held_out: float) -> None:
        """Write the loss of held-out rows."""
        self._writer.add_scalar("held_out", held_out, step)

    def on_end(self, history: History) -> None:
        """End the run; what was written is on disk."""
        self._writer.add_scalar("kept_step", history.best_step, history.steps)
        self._close()

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
