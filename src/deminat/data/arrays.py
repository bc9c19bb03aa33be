"""Arrays, tensors, frames, series and lists -> float64 arrays of n rows, with names of columns.

Nothing is cast in place, and nothing that is no number becomes one by accident: strings, sparse
matrices, complex numbers and integers beyond 2**53 are errors that say what to do. Declared
categories become a column of zeros and ones for each level. Arrays that are mapped from a file are
copied block by block, and what was looked at is given back: a map that is read from end to end
would otherwise count as memory from end to end.
"""

import mmap
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, printable

__all__ = ["BLOCK", "as_column", "as_rows", "as_times", "columns_of", "gather"]

BLOCK = 1 << 24  # bytes of a file that are looked at together


def as_rows(value: Any, side: str) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return a float64 array (n, ...) and the names of its columns."""
    try:
        frame = nw.from_native(value, pass_through=True, eager_only=True, allow_series=True)
    except nw.exceptions.NarwhalsError as error:
        raise DataError(f"{side} cannot be read: {printable(error, 200)}") from error
    if isinstance(frame, nw.Series):
        frame = frame.to_frame()
    if isinstance(frame, nw.DataFrame):
        return _from_frame(frame, side)
    array = _numeric(_plain(value, side), side)
    if array.ndim == 0:
        raise DataError(f"{side} is a single value; pass one value per observation")
    if array.ndim == 1:
        array = array[:, None]
    if 0 in array.shape[1:]:
        raise DataError(
            f"{side} has no columns: 0 feature(s) (shape={array.shape}) "
            "while a minimum of 1 is required."
        )
    return array, tuple(f"column {j}" for j in range(array.shape[1]))


def _plain(value: Any, side: str) -> NDArray[Any]:
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


def gather(
    array: NDArray[Any], rows: NDArray[np.int64] | None = None, columns: list[int] | None = None
) -> NDArray[Any]:
    """Return some rows, in rising order, or all, and some columns of an array, in memory."""
    memory = _mapped(array)
    numbers = np.arange(len(array)) if rows is None else rows
    shape = array.shape[1:] if columns is None else (len(columns),)
    found = np.empty((len(numbers), *shape), array.dtype)
    step = max(1, BLOCK // max(1, array.nbytes // max(1, len(array))))
    ends = np.searchsorted(numbers, np.arange(step, len(array) + step, step))
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        if end > start:
            part = array[numbers[start:end]]
            found[start:end] = part if columns is None else part[:, columns]
            if memory is not None:
                memory.madvise(mmap.MADV_DONTNEED)
    return found


def _mapped(array: Any) -> mmap.mmap | None:
    """Return the map of a file that an array looks into, if its pages may be given back."""
    while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    # Of a private copy ("c"), changes would be lost.
    if not isinstance(array, np.memmap) or array.mode == "c" or not hasattr(mmap, "MADV_DONTNEED"):
        return None
    found = array._mmap  # type: ignore[attr-defined]
    return found if isinstance(found, mmap.mmap) else None


def _from_tensor(tensor: Any, side: str) -> NDArray[Any]:
    """Return a torch tensor, wherever it lives and whatever view it is, as an array."""
    try:
        tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
        return np.asarray(tensor.double() if tensor.is_floating_point() else tensor)
    except (RuntimeError, TypeError) as error:
        raise DataError(f"{side} is no plain tensor: {printable(error, 120)}") from error


def _numeric(array: NDArray[Any], side: str) -> NDArray[np.float64]:
    if array.dtype.kind in "iu" and array.size and _largest(array) > 2**53:
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
            pass  # told below, as for strings
    raise DataError(
        f"{side} holds {_kind(array)}; for categories pass a frame whose column has a categorical "
        "type, or encode them as numbers"
    )


def _largest(array: NDArray[Any]) -> int:
    return max(abs(int(array.min())), abs(int(array.max())))


def _kind(array: NDArray[Any]) -> str:
    if array.dtype.kind in "US":
        return f"strings such as {printable(repr(str(array.flat[0])))}" if array.size else "strings"
    if array.dtype.kind == "O":
        strings = all(isinstance(v, str) for v in array.flat)
        return "strings that are not numbers" if strings else "objects that are not numbers"
    return f"values of type {array.dtype}"


def _from_frame(frame: nw.DataFrame[Any], side: str) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    if not frame.columns:
        raise DataError(f"{side} has no columns; choose at least one")
    blocks = [_from_column(frame.get_column(name), side) for name in frame.columns]
    names = [
        printable(f"{name}{level}") or f"column {j}"
        for j, (name, (_, levels)) in enumerate(zip(frame.columns, blocks, strict=True))
        for level in levels
    ]
    return np.concatenate([block for block, _ in blocks], axis=1), tuple(names)


def _from_column(column: nw.Series[Any], side: str) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return a column as floats (n, 1), or a declared category as indicators (n, levels)."""
    if isinstance(column.dtype, nw.Categorical | nw.Enum):
        return _one_hot(column)
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        floats = column.cast(nw.Float64).to_numpy().astype(np.float64)
        return floats[:, None], ("",)
    if column.dtype == nw.Object:
        return _numeric(column.to_numpy(), f"{side} column {printable(column.name)}")[:, None], (
            "",
        )
    if column.dtype.is_temporal():
        raise DataError(
            f"column {printable(column.name)} of {side} holds times ({column.dtype}): turn them "
            "into numbers first, such as days since the first"
        )
    raise DataError(
        f"column {printable(column.name)} of {side} has type {column.dtype}; if it is a category, "
        "give it a categorical type (pandas: .astype('category'); polars: .cast(pl.Categorical))"
    )


def _one_hot(column: nw.Series[Any]) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return a column for each declared level, in sorted order, whether it occurs or not."""
    values = np.asarray(column.cast(nw.String).to_list(), dtype=object)
    missing = np.array([v is None or v != v for v in values], dtype=bool)
    levels = sorted(map(str, column.cat.get_categories().to_list())) or [""]
    block = np.stack([values == level for level in levels], axis=1).astype(np.float64)
    block[missing] = np.nan
    return block, tuple(f"={level}" for level in levels)


def as_column(value: Any, keep: NDArray[np.bool_], name: str) -> NDArray[Any]:
    """Return one value for each row that is kept."""
    frame = nw.from_native(value, pass_through=True, allow_series=True)
    column = frame.to_numpy() if isinstance(frame, nw.Series) else np.asarray(value)
    if column.shape != keep.shape:
        raise DataError(
            f"{name} has shape {column.shape}; pass one value for each of the {len(keep)} rows"
        )
    return np.asarray(column[keep])


def columns_of(value: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the columns of a frame or series, and of those that are categories."""
    frame = nw.from_native(value, pass_through=True, eager_only=True, allow_series=True)
    if isinstance(frame, nw.Series):
        frame = frame.to_frame()
    if not isinstance(frame, nw.DataFrame):
        return (), ()
    kinds = frame.schema.items()
    labels = tuple(str(n) for n, kind in kinds if isinstance(kind, nw.Categorical | nw.Enum))
    return tuple(map(str, frame.columns)), labels


def as_times(value: Any) -> NDArray[Any]:
    """Return times (n,), numbers or dates; refuse what is missing or no time."""
    frame = nw.from_native(value, pass_through=True, allow_series=True)
    times = frame.to_numpy() if isinstance(frame, nw.Series) else np.asarray(value)
    if times.dtype.kind in "OSU":
        times = _dates(times)
    missing = int((times != times).sum())
    if missing:
        raise DataError(f"order is missing in {missing} of {len(times)} rows: fill it in")
    return times


def _dates(texts: NDArray[Any]) -> NDArray[Any]:
    """Return times from text or objects."""
    try:
        return np.asarray(texts, dtype="datetime64[us]")
    except (ValueError, TypeError):
        raise DataError(
            f"order must be numbers, or times such as 2024-05-31T12:30:00, or True if rows are in "
            f"order; got {printable(repr(texts[0]))}"
        ) from None
