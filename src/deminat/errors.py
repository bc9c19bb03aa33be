"""What can go wrong, said in one line: what, where, and what to do."""

__all__ = ["DataError", "TrainingError", "printable"]


class DataError(ValueError):
    """The data or the file cannot be used as they are; the message says what to do."""


class TrainingError(RuntimeError):
    """Training did not succeed; the message says what to do."""


def printable(text: object, longest: int = 60) -> str:
    """Return `text` fit for one line of a terminal: no control characters, not too long."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"
