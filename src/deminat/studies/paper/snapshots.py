"""Snapshots of the training of an encoder after each epoch, from which it can continue.

    demi-0-<hash of the cell>-0004-<sha256>.safetensors
    demi-0-<hash of the cell>.csv                         the rows so far, for people to read

A file's name contains its sha256, as those of folds do (`persistence.checkpoints`), so that damage
is detected. Two epochs are stored: if the last file is damaged, the one before is used.
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
_EPOCHS = 2  # that are stored


@dataclass(frozen=True)
class Snapshots:
    """The last epochs of one training.

    Args:
        folder: Where the files are.
        cell: What is trained.
    """

    folder: Path
    cell: Cell

    def save(self, run: EncoderRun) -> None:
        """Write the state of a run and delete older ones; at the end only the last is left."""
        data = pack({"of": self._key, **run.state()})
        path = self.folder / f"{self._stem}-{run.epoch:04d}-{sha256_of(data)}{_END}"
        write_atomically(path, lambda draft: draft.write_bytes(data))
        so_far = pl.DataFrame(run.rows, infer_schema_length=None)
        write_atomically(self.folder / f"{self._stem}.csv", so_far.write_csv)
        count = 1 if run.epoch == self.cell["epochs"] else _EPOCHS
        for old in [*self._files()[:-count], *self.folder.glob(f"{self._stem}-*{DRAFT}")]:
            old.unlink(missing_ok=True)

    def restore(self, run: EncoderRun) -> bool:
        """Set a run to the last undamaged state; return whether there is one."""
        for path in reversed(self._files()):
            try:
                run.set_state(self._read(path))
            except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
                warnings.warn(
                    f"{path.name} is damaged ({error}) and deleted: continuing from before it",
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
        state: dict[str, object] = unpack(data)
        if state["of"] != self._key:
            raise ValueError("it is of another training")
        return state

    def _files(self) -> list[Path]:
        """Return the snapshots, the last epoch last."""
        return sorted(self.folder.glob(f"{self._stem}-[0-9]*{_END}"))

    @property
    def _key(self) -> str:
        # Batch norm depends on the number of processes: another number cannot continue.
        return key_of({**self.cell, "processes": ranks()})

    @property
    def _stem(self) -> str:
        name = re.sub(r"[^a-z0-9.=]+", "_", self.cell["training"]).strip("_")
        return f"{name}-{self.cell['draw']}-{sha256_of(self._key.encode())[:12]}"
