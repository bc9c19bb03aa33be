"""Names of columns, as far as a figure has room for them."""

__all__ = ["shorten"]


def shorten(name: str) -> str:
    """Return a name that fits beside a figure, and is no formula of matplotlib's."""
    text = name if len(name) <= 24 else f"{name[:23]}…"
    return text.replace("$", r"\$")
