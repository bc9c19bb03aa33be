"""Lines of text to fields: each must have as many as the first."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

import numpy as np

from deminat.errors import DataError

__all__ = ["check_regular", "records"]


def records(
    lines: Iterable[str], label: str, separator: str, width: int, header: int
) -> Iterator[list[str]]:
    """Yield the fields of each record below the header; there must be `width` in all."""
    spaces = separator == " "
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=spaces, strict=True)
    try:
        for row in reader:
            fields = row or [""]
            if len(fields) != width:
                raise _ragged(label, reader.line_num, len(fields), width)
            if reader.line_num > header:
                yield fields
    except csv.Error as fault:
        raise DataError(
            f"{label}: line {reader.line_num} cannot be divided into fields ({fault}): "
            "check that all quotes are closed"
        ) from fault


def check_regular(label: str, data: bytes, separator: str, width: int, above: int = 0) -> None:
    """Refuse lines that do not have `width` fields, by the order of separators and line ends."""
    mark = separator.encode()
    others = bytes(set(range(256)) - {10, *mark})
    found = data.translate(None, others) + b"\n"
    expected = (mark * (width - 1) + b"\n") * found.count(b"\n")
    if found == expected:
        return
    common = min(len(found), len(expected))
    differ = np.frombuffer(found, "u1", common) != np.frombuffer(expected, "u1", common)
    line = int(differ.argmax()) // width
    fields = data.split(b"\n", line + 1)[line].count(mark) + 1
    raise _ragged(label, above + line + 1, fields, width)


def _ragged(label: str, line: int, fields: int, width: int) -> DataError:
    """Return the error for a line that is too long or too short."""
    has = "is blank or has 1 field" if fields == 1 else f"has {fields} fields"
    return DataError(
        f"{label}: line {line} {has} where the first line has {width}: correct it "
        "(a field that holds the separator needs double quotes)"
    )
