"""Finished folds on disk, so that an interrupted estimate can be resumed.

    checkpoint.json                       data, settings and versions that the folds belong to
    whole-0-fold-3-<sha256>.safetensors   a fold: its scores, what was fitted, its history

A fold is written to disk by the process that trained it, at once. Its name holds its sha256, so a
name and the whole file come into being together, and a file that changed is known by its name: it
is deleted, and the fold trained anew. One seed gives one answer, so a resumed estimate is bit for
bit the one that was never interrupted.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from ..critics.networks import CriticFactory
from ..data.sample import Sample
from ..errors import DataError, printable
from ..estimators.crossfit import Fold
from ..estimators.request import Request
from ..results import Caution, MIResult
from ..runtime import atomic
from ..runtime.atomic import sha256_of
from ..runtime.environment import versions
from .serialise import pack, unpack

__all__ = ["Checkpoint", "FoldFiles", "fingerprint", "open_checkpoint"]

_HEAD = "checkpoint.json"
_FORMAT, _VERSION = "deminat checkpoint", 1
_END = ".safetensors"
_SETTINGS = "methods", "preset", "folds", "seed", "budget"  # that a fold depends on


@dataclass(frozen=True)
class Checkpoint:
    """The folds of an estimate that are finished.

    Args:
        folder: Where.
        of: The sha256 of their fingerprint.
        damaged: Files that had changed.
    """

    folder: Path
    of: str
    damaged: list[str] = field(default_factory=list)

    def part(self, name: str, critic: CriticFactory | None = None) -> "FoldFiles":
        """Return the folds of one of the trainings, whose critic may be a user's own."""
        return FoldFiles(self, name, critic)

    def with_warnings(self, result: MIResult) -> MIResult:
        """Return a result with a warning if files had changed."""
        if not self.damaged:
            return result
        caution = Caution(
            "checkpoint",
            f"{len(self.damaged)} file(s) of the checkpoint were damaged, such as "
            f"{printable(self.damaged[0])}",
            "These folds were trained anew; check the disk",
        )
        return replace(result, warnings=(*result.warnings, caution))


@dataclass(frozen=True)
class FoldFiles:
    """The folds of one training; other processes may have copies.

    Args:
        checkpoint: That of the whole estimate.
        name: What files begin with.
        critic: Constructor of the critic, by which a user's own is read.
    """

    checkpoint: Checkpoint
    name: str
    critic: CriticFactory | None = None

    def get(self, i: int) -> Fold | None:
        """Return the i-th fold, if it is there and whole."""
        for path in sorted(self.checkpoint.folder.glob(f"{self._stem(i)}-*{_END}")):
            try:
                return self._read(path, i)
            except (OSError, ValueError):
                self.checkpoint.damaged.append(path.name)
                with suppress(OSError):
                    path.unlink()
        return None

    def put(self, i: int, fold: Fold) -> None:
        """Store the i-th fold."""
        data = pack({"of": self._of(), "i": i, "fold": fold})
        path = self.checkpoint.folder / f"{self._stem(i)}-{sha256_of(data)}{_END}"
        atomic.write_atomically(path, data)

    def _read(self, path: Path, i: int) -> Fold:
        data = path.read_bytes()
        if path.name != f"{self._stem(i)}-{sha256_of(data)}{_END}":
            raise ValueError("its sha256 is not that of its name")
        values = unpack(data, self.critic)
        if (values["of"], values["i"]) != (self._of(), i) or not isinstance(values["fold"], Fold):
            raise ValueError("it is of another training")
        return values["fold"]

    def _stem(self, i: int) -> str:
        return f"{self.name}-fold-{i}"

    def _of(self) -> str:
        return f"{self.checkpoint.of} {self.name}"


@contextmanager
def open_checkpoint(
    folder: PathLike[str] | str | None, samples: Sequence[Sample], request: Request
) -> Iterator[Checkpoint | None]:
    """Open the checkpoint of an estimate, or begin one; `None` for no folder.

    Args:
        folder: Where; other data or settings than those of its folds are refused.
        samples: The pairs, the whole ones first.
        request: The settings.
    """
    if folder is None:
        yield None
        return
    folder = Path(folder)
    with atomic.exclusive(folder / _HEAD):
        wanted = {"format": _FORMAT, "version": _VERSION, **fingerprint(samples, request)}
        head = atomic.with_checksum(wanted)
        checkpoint = Checkpoint(folder, sha256_of(head))
        _check_place(folder)
        if (folder / _HEAD).exists():
            _check_same(checkpoint, wanted)
        atomic.write_atomically(folder / _HEAD, head)
        yield checkpoint


def fingerprint(samples: Sequence[Sample], request: Request) -> dict[str, Any]:
    """Return what an estimate depends on: data by their sha256, settings and versions in words."""
    sample = samples[0]
    digest = hashlib.sha256(repr((sample.x_names, sample.y_names, sample.gap)).encode())
    for array in (sample.x, sample.y, sample.labels, sample.copies, sample.times):
        if array is None:
            digest.update(b"none")
        else:
            digest.update(f"{array.dtype.str} {array.shape} ".encode())
            digest.update(array.tobytes())
    settings = {name: _in_words(getattr(request, name)) for name in _SETTINGS}
    settings["discrete"] = _in_words([sample.x_discrete, sample.y_discrete])
    settings["columns"] = _in_words([s.y.shape[1:] for s in samples])
    return {"data": digest.hexdigest(), "settings": settings, "versions": versions()}


def _in_words(value: Any) -> str:
    """Return a setting in words that are the same in every process."""
    if isinstance(value, partial):
        parts = value.func, value.args, value.keywords
        return f"partial({', '.join(map(_in_words, parts))})"
    if isinstance(value, type) or hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k}: {_in_words(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(_in_words, value)) + "]"
    if is_dataclass(value):
        inner = {f.name: getattr(value, f.name) for f in fields(value)}
        return f"{type(value).__name__}{_in_words(inner)}"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    return f"{type(value).__qualname__}{_in_words(vars(value))}"


def _check_place(folder: Path) -> None:
    """Refuse a folder that holds something else; remove incomplete files."""
    for path in folder.iterdir():
        if path.name.endswith(atomic.DRAFT):
            with suppress(OSError):
                path.unlink()
        elif not path.name.startswith(_HEAD) and not (folder / _HEAD).exists():
            raise DataError(
                f"{atomic.show_path(folder)} holds something else, such as "
                f"{printable(path.name)}: name an empty folder for checkpoints, or a new one"
            )


def _check_same(checkpoint: Checkpoint, wanted: Mapping[str, Any]) -> None:
    """Refuse folds of something else; delete them if it is unknown what they belong to."""
    try:
        found = atomic.verified((checkpoint.folder / _HEAD).read_bytes())
    except (OSError, ValueError):
        checkpoint.damaged.append(_HEAD)
        for path in checkpoint.folder.glob(f"*{_END}"):
            path.unlink()
        return
    if found == wanted:
        return
    raise DataError(
        f"the checkpoint in {atomic.show_path(checkpoint.folder)} is of "
        f"{_difference(found, wanted)}: choose another folder, or delete it to begin anew"
    )


def _difference(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """Return in words what another checkpoint is of."""
    if any(found.get(key) != wanted[key] for key in ("format", "version")):
        return "another version of deminat"
    if found.get("data") != wanted["data"]:
        return "other data"
    for kind in ("settings", "versions"):
        old, new = found.get(kind, {}), wanted[kind]
        for name in new:
            if old.get(name) != new[name]:
                values = f"{name} {printable(old.get(name))}, not {printable(new[name])}"
                return f"other {kind} ({values})"
    return "something else"
