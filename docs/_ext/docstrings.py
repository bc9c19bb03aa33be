"""Turns `$...$` in docstrings, which are written to be read in `help()`, into mathematics."""

import re
from typing import Any

from sphinx.application import Sphinx

__all__ = ["setup"]

_MATH = re.compile(r"\$([^$]+)\$")


def _mathematics(
    _app: Sphinx, _what: str, _name: str, _of: Any, _how: Any, lines: list[str]
) -> None:
    text = _MATH.sub(lambda found: f":math:`{' '.join(found[1].split())}`", "\n".join(lines))
    lines[:] = text.split("\n")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the conversion."""
    app.connect("autodoc-process-docstring", _mathematics, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
