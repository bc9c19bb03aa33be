"""One answer as one HTML file: no script, no network, readable on a phone, in the dark, on paper.

`words` says it, `figures` places marks on axes, and the template `report.html.j2` draws both.
Names of columns are escaped by the template, whatever they hold.
"""

import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Template

from ..errors import DataError, printable
from ..results import MIResult, Unit
from ..store import replaced
from .about import About
from .figures import calibration, comparison, learning, pointwise
from .words import Words

__all__ = ["About", "place", "render", "save"]

_LONGEST = 300  # characters of a path in a message
_SUFFIXES = ".html", ".htm"


def render(results: Sequence[MIResult], *, about: About | None = None, unit: Unit = "nats") -> str:
    """Return a report as the text of an HTML file.

    Args:
        results: The answer, then those of other methods to be shown beside it.
        about: What the results do not know.
        unit: Of every information in it.
    """
    if not results:
        raise ValueError("a report needs at least one result")
    answer = results[0]
    return _template().render(
        words=Words(tuple(results), about or About(), unit),
        comparison=comparison(results, unit),
        learning=learning(answer, unit),
        calibration=calibration(answer),
        pointwise=pointwise(answer, unit),
    )


def save(path: PathLike[str] | str, text: str) -> None:
    """Write a report; one that is there already stays until the new one is whole."""
    replaced(Path(path), lambda draft: draft.write_text(text, encoding="utf-8"))


def place(path: Path) -> Path:
    """Return where a report goes, or refuse at once a place where none can be written."""
    if path.suffix.lower() not in _SUFFIXES:
        raise DataError(f"a report ends in .html; {printable(path, _LONGEST)} does not")
    if path.is_dir():
        raise DataError(f"{printable(path, _LONGEST)} is a folder; name a file in it")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            return path
    except OSError as error:
        shown = printable(path, _LONGEST)
        raise DataError(f"cannot write {shown}: {error.strerror}; choose another place") from error


@cache
def _template() -> Template:
    rules = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return rules.from_string(files(__name__).joinpath("report.html.j2").read_text("utf-8"))
