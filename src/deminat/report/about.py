"""What a report can tell and a result does not know."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["About"]


@dataclass(frozen=True)
class About:
    """Where an answer comes from.

    Args:
        x: What to call x; by default its columns.
        y: What to call y.
        source: Where the data are from, such as the name of a file.
        options: How the question was asked, by name.
        command: The command that asks it again.
    """

    x: str = ""
    y: str = ""
    source: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
