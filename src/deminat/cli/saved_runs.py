"""Runs that are kept: where, how they go on after an interruption, and what is left in the end."""

import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import DataError, printable
from ..persistence.folders import CHECKPOINT, FOLDS
from .console import interruptible, say

if TYPE_CHECKING:
    from ..results import MIResult

__all__ = ["check_save_folder", "command_line", "resumable_run", "save_finished"]

_LONGEST = 300  # characters of a path on the screen


@contextmanager
def resumable_run(
    context: typer.Context, save: Path | None, resume: bool, methods: Sequence[str]
) -> Iterator[Path | None]:
    """Give the folder for finished folds of a run; when interrupted, tell how it goes on."""
    if save is None:
        if resume:
            raise DataError("--resume goes on with a run that --save keeps: name its folder")
        yield None
        return
    if len(methods) > 1:
        raise DataError("--save keeps the answer of one method: give --method once")
    folder = save / CHECKPOINT
    if folder.exists() and not resume:
        raise DataError(
            f"{printable(save, _LONGEST)} holds an unfinished run: add --resume to go on with it, "
            f"or delete {printable(folder, _LONGEST)} to begin anew"
        )
    if not folder.exists() and (save / FOLDS).exists():
        if not resume:
            raise DataError(
                f"{printable(save, _LONGEST)} holds a finished run: add --resume for its answer, "
                "choose another folder, or delete it"
            )
        folder = save / FOLDS  # which then takes no training

    def tell() -> None:
        again = command_line(context)
        say(f"to go on: {again if resume else f'{again} --resume'}")

    with interruptible(tell):
        yield folder


def check_save_folder(save: Path | None) -> None:
    """Refuse a folder that holds something else before any work is done."""
    if save is not None:
        check_save_folder(save)


def save_finished(result: "MIResult", save: Path) -> None:
    """Save a result; its folds are kept, so that the same question is answered at once."""
    result.save(save)
    if (save / CHECKPOINT).exists():
        shutil.rmtree(save / FOLDS, ignore_errors=True)
        (save / CHECKPOINT).rename(save / FOLDS)
    say(f"saved: {printable(save, _LONGEST)}")


def command_line(context: typer.Context) -> str:
    """Return the command that is running, quoted for a shell; what was left out stays out."""
    arguments, options = [], []
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        if parameter.param_type_name == "argument":
            arguments.append(str(context.params[name]))
        else:
            options += _words(parameter.opts[0], context.params[name])
    if any(word.startswith("-") for word in arguments):
        words = [*options, "--", *arguments]
    else:
        words = [*arguments, *options]
    return shlex.join(["deminat", context.info_name or "", *words])


def _words(option: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [option]
    values = value if isinstance(value, list | tuple) else [value]
    return [word for one in values for word in (option, str(one))]
