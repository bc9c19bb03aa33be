"""A result and its model in a folder: saved whole or not at all, and checked when read.

    manifest.json               what is here, with the sha256 of each file and of itself
    result-0123456789ab.json    the answer, for people and programs
    model-0123456789ab.safetensors    pointwise values, rows, and the models of all folds

Files are called by their contents, so those of a new run never overwrite those of an old one: the
run changes at the moment when the manifest is renamed. Nothing is unpickled.
"""

import json
import re
from contextlib import suppress
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any

from ..critics.networks import CriticFactory
from ..data.files import PICKLES
from ..errors import DataError, printable
from ..results import MIResult
from ..runtime import atomic
from ..runtime.atomic import sha256_of, show_path
from . import CHECKPOINT, FOLDS
from .serialise import pack, plan_of, unpack, value_of

__all__ = ["check_folder", "load", "save"]

_MANIFEST = "manifest.json"
_FORMAT, _VERSION = "deminat run", 1
_OWN = re.compile(r"(result-[0-9a-f]{12}\.json|model-[0-9a-f]{12}\.safetensors)")
_IN_MODEL = "pointwise", "rows", "model"


def save(result: MIResult, folder: PathLike[str] | str) -> None:
    """Write a result and what was fitted to a folder."""
    folder = check_folder(folder)
    values = {f.name: getattr(result, f.name) for f in fields(result)}
    arrays: dict[str, Any] = {}
    plan = plan_of({k: v for k, v in values.items() if k not in _IN_MODEL}, arrays)
    if arrays:
        raise DataError("diagnostics hold arrays, which result.json does not: make them lists")
    data = {
        ("result", ".json"): json.dumps(plan, indent=1).encode(),
        ("model", ".safetensors"): pack({k: values[k] for k in _IN_MODEL}),
    }
    files = {f"{kind}-{sha256_of(d)[:12]}{end}": d for (kind, end), d in data.items()}
    with atomic.exclusive(folder / _MANIFEST):
        for name, content in files.items():
            atomic.write_atomically(folder / name, content)
        digests = {name: sha256_of(content) for name, content in files.items()}
        manifest = {"format": _FORMAT, "version": _VERSION, "files": digests}
        atomic.write_atomically(folder / _MANIFEST, atomic.with_checksum(manifest))
        _tidy(folder, keep=set(files))


def load(folder: PathLike[str] | str, *, critic: CriticFactory | None = None) -> MIResult:
    """Return the result that `save` wrote to a folder, with its model.

    Args:
        folder: Where it was saved.
        critic: Constructor of your own critic, such as its class, if the estimate used one: the
            folder holds its weights, not its code.

    Examples:
        >>> import tempfile
        >>> import numpy as np
        >>> from deminat import estimate
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=500)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     estimate(x, x + rng.normal(size=500), method="gaussian").save(folder)
        ...     result = load(folder)
        >>> result.log_ratio([0.0, 2.0], [0.0, -2.0]).round(1).tolist()
        [0.4, -7.5]
    """
    folder = Path(folder)
    files = _manifest(folder)
    kinds = {name.partition("-")[0]: _content(folder / name, files[name]) for name in files}
    try:
        values = {**value_of(json.loads(kinds["result"]), {}), **unpack(kinds["model"], critic)}
        if set(values) != {f.name for f in fields(MIResult)}:
            raise ValueError("its fields are others")
        return MIResult(**values)
    except DataError as error:
        raise DataError(f"{show_path(folder)}: {error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(folder, error) from error


def check_folder(folder: PathLike[str] | str) -> Path:
    """Return the folder of a run, or refuse at once one that holds something else."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = [path.name for path in folder.iterdir()]
    except OSError as error:
        raise DataError(f"cannot write to {show_path(folder)}: {error.strerror}") from error
    strange = [name for name in there if not _is_own(name)]
    if strange and _MANIFEST not in there:
        raise DataError(
            f"{show_path(folder)} holds something else, such as {printable(strange[0])}: name an "
            "empty folder, or a new one"
        )
    return folder


def _is_own(name: str) -> bool:
    known = name in (CHECKPOINT, FOLDS) or name.startswith(_MANIFEST)
    return known or bool(_OWN.match(name))


def _tidy(folder: Path, keep: set[str]) -> None:
    """Remove files of runs before, and what a kill left of others."""
    for path in folder.iterdir():
        stale = path.name.endswith(atomic.DRAFT) and _is_own(path.name)
        if stale or (_OWN.fullmatch(path.name) and path.name not in keep):
            with suppress(OSError):  # it is in nobody's way
                path.unlink()


def _manifest(folder: Path) -> dict[str, str]:
    """Return the sha256 of each file of a run, after asking whether it is one."""
    shown = show_path(folder)
    try:
        names = {path.name for path in folder.iterdir()}
        if _MANIFEST not in names and CHECKPOINT in names:
            raise DataError(f"{shown} is unfinished: give the command again with --resume")
        if _MANIFEST not in names:
            raise DataError(f"{shown} holds no run: there is no {_MANIFEST}, which save writes")
        data = (folder / _MANIFEST).read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {shown}: {error.strerror}") from error
    for name in sorted(names):
        if Path(name).suffix.lower() in PICKLES:
            raise DataError(
                f"{shown} holds {printable(name)}, which could run code when opened and is not of "
                "deminat: the folder is not read; take it out if you know where it is from"
            )
    return _files(folder, data)


def _files(folder: Path, data: bytes) -> dict[str, str]:
    """Return what a manifest lists."""
    try:
        values = json.loads(data)
        if not isinstance(values, dict) or values.get("format") != _FORMAT:
            raise ValueError(f"{_MANIFEST} is not of deminat")
        version = values.get("version")
        if isinstance(version, int) and version > _VERSION:
            raise DataError(
                f"{show_path(folder)} is of a newer deminat (format {version}, here it is "
                f"{_VERSION}): update deminat"
            )
        files: dict[str, str] = atomic.verified(data)["files"]
        if sorted(name.partition("-")[0] for name in files) != ["model", "result"]:
            raise ValueError("it lists other files")
        if not all(_OWN.fullmatch(name) for name in files):
            raise ValueError("it lists files by other names")
        return files
    except DataError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(folder, error) from error


def _content(path: Path, digest: str) -> bytes:
    """Return the bytes of a file, if they are those that were written."""
    shown = show_path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {shown}: {error.strerror}; save the result again") from error
    if sha256_of(data) != digest:
        raise DataError(
            f"{shown} is damaged: its sha256 is not that of the manifest; save the result again"
        )
    return data


def _damaged(folder: Path, why: Any) -> DataError:
    return DataError(
        f"{show_path(folder)} is damaged, or no run of deminat ({printable(why, 120)}): save the "
        "result again"
    )
