"""The commands and their options, from the help texts of the command line."""

from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from typer.main import get_command

from deminat.cli import app as cli
from deminat.studies.paper.tables import grid

__all__ = ["setup"]


def _commands(group: Any, words: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{words} {name}")
        else:
            yield f"{words} {name}", command


def _described(words: str, command: Any) -> str:
    """Return a command in Markdown: its purpose, examples, and a table of its parameters."""
    first, *others = (part.strip() for part in (command.help or "").strip().split("\n\n"))
    examples = [part for part in others if part.startswith(("deminat", "torchrun"))]
    prose = [" ".join(part.split()) for part in others if part not in examples]
    shown = "\n".join(["```console", *(f"$ {example}" for example in examples), "```"])
    lines = [[f"`{_named(p)}`", _cell(getattr(p, "help", None))] for p in command.params]
    parts = [" ".join(first.split()), *prose, *([shown] if examples else [])]
    return "\n\n".join([*parts, grid([words.split()[-1], ""], lines)])


def _named(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return parameter.name.upper() if parameter.required else f"[{parameter.name.upper()}]"
    return parameter.opts[0]


def _cell(text: str | None) -> str:
    return (text or "").replace("|", r"\|").replace("*", r"\*").replace("_", r"\_")


class Commands(SphinxDirective):
    """Inserts a section for each command."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        found: list[nodes.Node] = []
        for words, command in _commands(get_command(cli), "deminat"):
            section = nodes.section(ids=[nodes.make_id(words)], names=[words])
            section += nodes.title("", "", nodes.literal("", words))
            section += self.parse_text_to_nodes(_described(words, command))
            self.state.document.note_implicit_target(section)
            found.append(section)
        return found


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
