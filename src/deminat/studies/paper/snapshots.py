"""Trainings of encoders that outlive the process: what is needed to go on, after each epoch.

    demi-0-<of what>-0004-<sha256>.safetensors
    demi-0-<of what>.csv                         the rows so far, to look at

The name tells the sha256 of the whole file, as those of folds do (`persistence.checkpoints`), so a
bit that changed is known. Two epochs are kept: if the last file is damaged, the one before serves.
"""

import re
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ...persistence.serialise import pack, unpack
from ...runtime.atomic import DRAFT, sha256_of, write_atomically
from ...runtime.rowstore import Cell, key_of
from .distributed import ranks
from .encoder import EncoderRun

__all__ = ["Snapshots"]

_END = ".safetensors"
_KEPT = 2


@dataclass(frozen=True)
class Snapshots:
    """The last epochs of one training.

    Args:
        folder: Where.
        cell: Of what.
    """

    folder: Path
    cell: Cell

    def keep(self, run: EncoderRun) -> None:
        """Write the state of a run, and forget those long before; the last alone at the end."""
        data = pack({"of": self._of, **run.state()})
        path = self.folder / f"{self._stem}-{run.epoch:04d}-{sha256_of(data)}{_END}"
        write_atomically(path, lambda draft: draft.write_bytes(data))
        so_far = pl.DataFrame(run.rows, infer_schema_length=None)
        write_atomically(self.folder / f"{self._stem}.csv", so_far.write_csv)
        kept = 1 if run.epoch == self.cell["epochs"] else _KEPT
        for old in [*self._files()[:-kept], *self.folder.glob(f"{self._stem}-*{DRAFT}")]:
            old.unlink(missing_ok=True)

    def restore(self, run: EncoderRun) -> bool:
        """Set a run to the last state that is whole; return whether there is one."""
        for path in reversed(self._files()):
            try:
                run.set_state(self._read(path))
            except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
                warnings.warn(
                    f"{path.name} is damaged ({error}) and deleted: going on from before it",
                    stacklevel=2,
                )
                with suppress(OSError):
                    path.unlink()
            else:
                return True
        return False

    def _read(self, path: Path) -> dict[str, object]:
        data = path.read_bytes()
        if not path.name.endswith(f"-{sha256_of(data)}{_END}"):
            raise ValueError("its sha256 is not that of its name")
        told: dict[str, object] = unpack(data)
        if told["of"] != self._of:
            raise ValueError("it is of another training")
        return told

    def _files(self) -> list[Path]:
        """Return what is there, the last epoch last."""
        return sorted(self.folder.glob(f"{self._stem}-[0-9]*{_END}"))

    @property
    def _of(self) -> str:
        # Batch norm depends on how many processes train: others do not go on from here.
        return key_of({**self.cell, "processes": ranks()})

    @property
    def _stem(self) -> str:
        name = re.sub(r"[^a-z0-9.=]+", "_", self.cell["training"]).strip("_")
        return f"{name}-{self.cell['draw']}-{sha256_of(self._of.encode())[:12]}"
