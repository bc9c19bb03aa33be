"""One result as one HTML file: no script, no network, readable on a phone, in the dark, on paper.

`words` writes the text, `figures` positions marks on axes, and the template `report.html.j2` lays
out both. The template escapes names of columns.
"""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Template

from ..results import MIResult, Unit
from ..runtime.atomic import check_writable, write_atomically
from .figures import calibration, comparison, learning, log_ratios
from .words import About, Words

__all__ = ["About", "check_path", "render", "save"]

_SUFFIXES = (".html", ".htm")


def render(results: Sequence[MIResult], *, about: About | None = None, unit: Unit = "nats") -> str:
    """Return a report as the text of an HTML file.

    Args:
        results: The answer, then results of other methods to compare it with.
        about: Where the results come from.
        unit: Of all amounts of information.
    """
    if not results:
        raise ValueError("a report needs at least one result")
    answer = results[0]
    return _template().render(
        words=Words(tuple(results), about or About(), unit),
        comparison=comparison(results, unit),
        learning=learning(answer, unit),
        calibration=calibration(answer),
        pointwise=log_ratios(answer, unit),
    )


def save(path: PathLike[str] | str, text: str) -> None:
    """Write a report; an old one at the path is replaced when the new one is complete."""
    write_atomically(Path(path), lambda draft: draft.write_text(text, encoding="utf-8"))


def check_path(path: Path) -> Path:
    """Return the path of a report, or raise an error at once if none can be written there."""
    return check_writable(path, _SUFFIXES, "a report")


@cache
def _template() -> Template:
    rules = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return rules.from_string(files(__name__).joinpath("report.html.j2").read_text("utf-8"))
