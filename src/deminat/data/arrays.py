"""Convert arrays, tensors, frames, series and lists to float64 arrays with names of columns.

Nothing is cast in place, and only numbers become numbers: sparse matrices, complex numbers and
integers beyond 2**53 are errors that say what to do. Categories, and text that is repeated, become
a column of zeros and ones for each level. Arrays that are mapped from a file are copied block by
block, and the pages of each block are released: otherwise the whole file would count as memory in
use.
"""

import mmap
from collections.abc import Iterable
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, printable

__all__ = [
    "BLOCK",
    "FREE_TEXT",
    "UNNAMED",
    "SideRows",
    "as_column",
    "as_rows",
    "as_times",
    "columns_of",
    "gather",
]

UNNAMED = "column 0"  # what messages call the first column of an array
BLOCK = 1 << 24  # bytes of a mapped file that are in memory together
_LARGEST_INTEGER = 2**53  # that float64 holds exactly
_LABELS = nw.Categorical, nw.Enum, nw.String
FREE_TEXT = 20  # levels; if there are more, each must be repeated, or they are no labels


class SideRows(NamedTuple):
    """The rows of one side.

    Args:
        rows: (n, ...), float64.
        names: What messages call its columns.
        categories: For each column, the text or category of which it indicates a level; `None` for
            numbers.
    """

    rows: NDArray[np.float64]
    names: tuple[str, ...]
    categories: tuple[str | None, ...]


def as_rows(value: Any, side: str) -> SideRows:
    """Return a float64 array (n, ...), the names of its columns, and which are categories."""
    try:
        frame = _as_frame(value)
    except nw.exceptions.NarwhalsError as error:
        raise DataError(f"{side} cannot be read: {printable(error, 200)}") from error
    if frame is not None:
        return _from_frame(frame, side)
    array = _as_array(value, side)
    if array.ndim in (1, 2) and _text_columns(array):
        return _from_text(array, side)
    array = _numeric(array, side)
    if array.ndim == 0:
        raise DataError(f"{side} is a single value; pass one value per observation")
    if array.ndim == 1:
        array = array[:, None]
    if 0 in array.shape[1:]:
        raise DataError(
            f"{side} has no columns: 0 feature(s) (shape={array.shape}) "
            "while a minimum of 1 is required."
        )
    count = array.shape[1]
    return SideRows(array, tuple(f"column {j}" for j in range(count)), (None,) * count)


def columns_of(value: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the columns of a frame or series, and of the categorical ones.

    An array has names only if it holds text.
    """
    frame = _as_frame(value)
    if frame is None:
        array = value if isinstance(value, np.ndarray | list | tuple) else ()
        return _names_of_text(np.asarray(array) if _may_hold_text(array) else np.empty(0))
    names = tuple(map(str, frame.columns))
    return names, tuple(str(n) for n, dtype in frame.schema.items() if isinstance(dtype, _LABELS))


def _may_hold_text(value: Any) -> bool:
    """Tell whether an array, or a list by its first value, may hold text."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "OSU"
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, str)


def _names_of_text(array: NDArray[Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the columns of an array, and of those that hold text, if any does."""
    text = _text_columns(array) if array.ndim in (1, 2) else []
    if not text:
        return (), ()
    count = 1 if array.ndim == 1 else array.shape[1]
    return tuple(f"column {j}" for j in range(count)), tuple(f"column {j}" for j in text)


def _text_columns(array: NDArray[Any]) -> list[int]:
    """Return the columns of an array (n,) or (n, d) in which any value is a string."""
    columns = array.T if array.ndim == 2 else array[None]
    if array.dtype.kind in "SU":
        return list(range(len(columns)))
    if array.dtype.kind != "O":
        return []
    return [j for j, column in enumerate(columns) if any(isinstance(v, str) for v in column)]


def _from_text(array: NDArray[Any], side: str) -> SideRows:
    """Return the columns of an array, text as indicators."""
    text = _text_columns(array)
    blocks, names, categories = [], [], []
    for j, column in enumerate(array.T if array.ndim == 2 else array[None]):
        name = f"column {j}"
        if j in text:
            block, levels = _indicators(column, f"{name} of {side}")
        else:
            block, levels = _numeric(column, side)[:, None], ("",)
        blocks.append(block)
        names += [printable(f"{name}{level}") for level in levels]
        categories += [name if level else None for level in levels]
    return SideRows(np.concatenate(blocks, axis=1), tuple(names), tuple(categories))


def as_column(value: Any, keep: NDArray[np.bool_], name: str) -> NDArray[Any]:
    """Return one value for each row in `keep`."""
    column = _as_values(value)
    if column.shape != keep.shape:
        raise DataError(
            f"{name} has shape {column.shape}; pass one value for each of the {len(keep)} rows"
        )
    return np.asarray(column[keep])


def as_times(value: Any) -> NDArray[Any]:
    """Return times (n,), numbers or dates; refuse missing times and other values."""
    times = _as_values(value)
    if times.dtype.kind in "OSU":
        try:
            times = np.asarray(times, dtype="datetime64[us]")
        except (ValueError, TypeError):
            raise DataError(
                "order must be numbers, or times such as 2024-05-31T12:30:00, or True if rows are "
                f"in order; got {printable(repr(times[0]))}"
            ) from None
    missing = int((times != times).sum())
    if missing:
        raise DataError(f"order is missing in {missing} of {len(times)} rows: fill it in")
    return times


def gather(
    array: NDArray[Any], rows: NDArray[np.int64] | None = None, columns: list[int] | None = None
) -> NDArray[Any]:
    """Return some rows, in rising order, and some columns of an array, in memory; None for all."""
    mapped = _mapped(array)
    numbers = np.arange(len(array)) if rows is None else rows
    shape = array.shape[1:] if columns is None else (len(columns),)
    found = np.empty((len(numbers), *shape), array.dtype)
    step = max(1, BLOCK // max(1, array.nbytes // max(1, len(array))))
    ends = np.searchsorted(numbers, np.arange(step, len(array) + step, step))
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        if end > start:
            part = array[numbers[start:end]]
            found[start:end] = part if columns is None else part[:, columns]
            if mapped is not None:
                mapped.madvise(mmap.MADV_DONTNEED)
    return found


def _as_frame(value: Any) -> nw.DataFrame[Any] | None:
    """Return a frame or series as a frame, anything else as None."""
    frame = nw.from_native(value, pass_through=True, eager_only=True, allow_series=True)
    if isinstance(frame, nw.Series):
        frame = frame.to_frame()
    return frame if isinstance(frame, nw.DataFrame) else None


def _as_values(value: Any) -> NDArray[Any]:
    """Return a series, list or array as an array."""
    series = nw.from_native(value, pass_through=True, allow_series=True)
    return series.to_numpy() if isinstance(series, nw.Series) else np.asarray(value)


def _as_array(value: Any, side: str) -> NDArray[Any]:
    """Return tensors, masked arrays, lists and arrays as an array of any type."""
    if hasattr(value, "collect") and hasattr(value, "lazy"):
        raise DataError(f"{side} is a lazy frame, which has no values yet; pass {side}.collect()")
    if value is None:
        raise DataError(f"requires y to be passed, but the target {side} is None")
    if isinstance(value, list | tuple) and value and hasattr(value[0], "detach"):
        value = [v.detach() for v in value]
    if hasattr(value, "detach"):
        value = _from_tensor(value, side)
    if isinstance(value, np.ma.MaskedArray):
        value = np.ma.filled(value.astype(object), np.nan)
    if hasattr(value, "toarray"):
        raise DataError(f"{side} is a sparse matrix; pass {side}.toarray()")
    if isinstance(value, np.ndarray) and value.ndim and _mapped(value) is not None:
        value = gather(value)
    try:
        return np.asarray(value)
    except ValueError as error:
        raise DataError(f"{side} is not an array: its rows differ in length") from error


def _mapped(array: Any) -> mmap.mmap | None:
    """Return the memory map behind an array, if its pages may be released."""
    while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    # A private copy ("c") would lose its changes.
    if not isinstance(array, np.memmap) or array.mode == "c" or not hasattr(mmap, "MADV_DONTNEED"):
        return None
    mapped = array._mmap  # type: ignore[attr-defined]
    return mapped if isinstance(mapped, mmap.mmap) else None


def _from_tensor(tensor: Any, side: str) -> NDArray[Any]:
    """Return a torch tensor, on any device and with lazy conjugation resolved, as an array."""
    try:
        tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
        return np.asarray(tensor.double() if tensor.is_floating_point() else tensor)
    except (RuntimeError, TypeError) as error:
        raise DataError(f"{side} is not a plain tensor: {printable(error, 120)}") from error


def _numeric(array: NDArray[Any], side: str) -> NDArray[np.float64]:
    """Return an array of numbers as float64."""
    integers = array.dtype.kind in "iu" and array.size > 0
    if integers and max(-int(array.min()), int(array.max())) > _LARGEST_INTEGER:
        raise DataError(
            f"{side} holds integers beyond 2**53, whose last digits float64 loses; "
            "subtract an offset, or declare them as categories"
        )
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    if array.dtype.kind == "c":
        raise DataError(f"Complex data not supported: pass the parts of {side} as columns")
    if array.dtype.kind == "O":
        numbers = [np.nan if type(v).__name__ == "NAType" else v for v in array.flat]
        try:
            if not any(isinstance(v, str | bytes) for v in numbers):
                return np.array(numbers, dtype=np.float64).reshape(array.shape)
        except (TypeError, ValueError, OverflowError):
            pass  # refused below, as strings are
    raise DataError(
        f"{side} holds {_kind(array)}: turn them into numbers, or into text if they are categories"
    )


def _kind(array: NDArray[Any]) -> str:
    """Return what an array that is not numeric holds."""
    if array.dtype.kind in "US":
        return "strings"
    if array.dtype.kind == "O":
        return "objects that are not numbers"
    return f"values of type {array.dtype}"


def _from_frame(frame: nw.DataFrame[Any], side: str) -> SideRows:
    """Return the columns of a frame, categories as indicators."""
    if not frame.columns:
        raise DataError(f"{side} has no columns; choose at least one")
    blocks = [_from_column(frame.get_column(name), side) for name in frame.columns]
    names = [
        printable(f"{name}{level}") or f"column {j}"
        for j, (name, (_, levels)) in enumerate(zip(frame.columns, blocks, strict=True))
        for level in levels
    ]
    categories = [
        (printable(name) or f"column {j}") if level else None
        for j, (name, (_, levels)) in enumerate(zip(frame.columns, blocks, strict=True))
        for level in levels
    ]
    rows = np.concatenate([block for block, _ in blocks], axis=1)
    return SideRows(rows, tuple(names), tuple(categories))


def _from_column(column: nw.Series[Any], side: str) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return a column as floats (n, 1), or a category as indicators (n, levels)."""
    name = printable(column.name)
    if isinstance(column.dtype, _LABELS):
        return _one_hot(column, side)
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        floats = column.cast(nw.Float64).to_numpy().astype(np.float64)
        return floats[:, None], ("",)
    if column.dtype == nw.Object:
        values = column.to_numpy()
        if _text_columns(values):
            return _indicators(values, f"column {name} of {side}")
        return _numeric(values, f"{side} column {name}")[:, None], ("",)
    if column.dtype.is_temporal():
        raise DataError(
            f"column {name} of {side} holds times ({column.dtype}): turn them "
            "into numbers first, such as days since the first"
        )
    raise DataError(
        f"column {name} of {side} has type {column.dtype}: turn it into numbers, or into text if "
        "it is a category"
    )


def _one_hot(column: nw.Series[Any], side: str) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return indicators of all levels, in sorted order, also of levels that do not occur."""
    values = np.asarray(column.cast(nw.String).to_list(), dtype=object)
    if column.dtype == nw.String:
        return _indicators(values, f"column {printable(column.name)} of {side}")
    return _indicated(values, map(str, column.cat.get_categories().to_list()))


def _indicators(values: NDArray[Any], column: str) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return indicators of text, unless hardly any is repeated, or it is numbers."""
    texts = np.array([_as_text(v, column) for v in values], dtype=object)
    levels = {v for v in texts if v is not None}
    if all(map(_is_number, levels)):
        raise DataError(f"{column} holds numbers as text: turn them into numbers, as by float()")
    if len(levels) > max(FREE_TEXT, len(values) // 2):
        raise DataError(
            f"{column} holds text of which hardly any is repeated ({len(levels):,} kinds in "
            f"{len(values):,} rows), such as {printable(repr(str(min(levels))))}: leave it out, or "
            "turn it into numbers or into fewer kinds"
        )
    return _indicated(texts, levels)


def _as_text(value: Any, column: str) -> str | None:
    """Return a string as it is, and None where it is missing."""
    if value is None or value != value:
        return None
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if not isinstance(value, str):
        raise DataError(
            f"{column} holds text, and also {printable(repr(value))}, which is none: make all of "
            "it text, or numbers"
        )
    return value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _indicated(
    values: NDArray[Any], levels: Iterable[str]
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return (n, levels) zeros and ones of values (n,), of which None is missing."""
    ordered = sorted(levels) or [""]
    block = np.stack([values == level for level in ordered], axis=1).astype(np.float64)
    block[[v is None or v != v for v in values]] = np.nan
    return block, tuple(f"={level}" for level in ordered)
