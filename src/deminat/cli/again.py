"""The command that was given, to be given again."""

import shlex
from typing import Any

import typer

__all__ = ["command"]


def command(context: typer.Context) -> str:
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
