"""Saved runs: the folder of `--save`, resuming after an interruption, and the command to do so."""

import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..errors import DataError
from ..persistence import CHECKPOINT, FOLDS
from .console import format_path, interruptible, say

if TYPE_CHECKING:
    from ..results import MIResult

__all__ = ["command_line", "resumable_run", "save_finished"]


@contextmanager
def resumable_run(
    context: typer.Context, save: Path | None, resume: bool, methods: Sequence[str]
) -> Iterator[Path | None]:
    """Yield the folder for finished folds; when interrupted, print the command to resume."""
    if save is None:
        if resume:
            raise DataError("--resume needs the folder of the run: name it with --save")
        yield None
        return
    if len(methods) > 1:
        raise DataError("--save stores the result of one method: give --method once")
    folder = save / CHECKPOINT
    if folder.exists() and not resume:
        raise DataError(
            f"{format_path(save)} holds an unfinished run: add --resume to continue it, "
            f"or delete {format_path(folder)} to start over"
        )
    if not folder.exists() and (save / FOLDS).exists():
        if not resume:
            raise DataError(
                f"{format_path(save)} holds a finished run: add --resume for its result, "
                "choose another folder, or delete it"
            )
        folder = save / FOLDS  # nothing is left to train

    def report() -> None:
        say(f"to resume: {command_line(context)}{'' if resume else ' --resume'}")

    with interruptible(report):
        yield folder


def save_finished(result: "MIResult", save: Path) -> None:
    """Save a result with its folds, so that the same command with --resume trains nothing."""
    result.save(save)
    if (save / CHECKPOINT).exists():
        shutil.rmtree(save / FOLDS, ignore_errors=True)
        (save / CHECKPOINT).rename(save / FOLDS)
    say(f"saved run: {format_path(save)}")


def command_line(context: typer.Context) -> str:
    """Return the running command, quoted for a shell, with the options the user gave."""
    arguments, options = [], []
    for parameter in context.command.params:
        name, option = parameter.name or "", parameter.opts[0]
        source, value = context.get_parameter_source(name), context.params.get(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        if parameter.param_type_name == "argument":
            arguments.append(str(value))
        elif isinstance(value, bool):
            options.append(option)
        else:
            values = value if isinstance(value, list | tuple) else [value]
            options += [word for one in values for word in (option, str(one))]
    dashed = any(word.startswith("-") for word in arguments)
    words = [*options, "--", *arguments] if dashed else [*arguments, *options]
    return shlex.join(["deminat", context.info_name or "", *words])
