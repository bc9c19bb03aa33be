"""Arrays, frames and tensors -> Sample(x, y): every error of input is raised here.

Both sides become float64 arrays of n rows, never cast in place. What cannot be used as it is
(missing values, strings, unequal lengths) is an error that says what to do; what can be mended
(constant columns, declared categories) is mended and, where it matters, told in a `Caution`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .copies import label_copies
from .errors import DataError, printable
from .results import Caution
from .serial import gap_between, serial_cautions

__all__ = ["LEAST_PAIRS", "UNNAMED", "NanPolicy", "Sample", "as_sample"]

NanPolicy = Literal["raise", "omit"]

UNNAMED = "column 0"  # what messages call the first column of an array
LEAST_PAIRS = 20  # five folds of four: fewer cannot be trained on and held out


@dataclass(frozen=True)
class Sample:
    """Pairs that can be trusted to be finite, numeric and of equal length.

    Args:
        x: (n, ...), float64.
        y: (n, ...), float64.
        x_names: What messages call the columns of x.
        y_names: What messages call the columns of y.
        labels: (n,) integers, equal for rows of one group or copies of one observation; `None`
            where every row stands for itself.
        copies: (n,) the same for copies alone.
        times: (n,) the place of each row in the order of time; `None` where there is none.
        gap: Rows to leave out between blocks of rows in that order.
        warnings: What was mended on the way.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    x_names: tuple[str, ...] = ()
    y_names: tuple[str, ...] = ()
    labels: NDArray[np.int64] | None = None
    copies: NDArray[np.int64] | None = None
    times: NDArray[np.int64] | None = None
    gap: int = 0
    warnings: tuple[Caution, ...] = ()

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: NDArray[np.int64]) -> "Sample":
        """Return the pairs at `rows`."""
        return replace(
            self,
            x=self.x[rows],
            y=self.y[rows],
            labels=_taken(self.labels, rows),
            copies=_taken(self.copies, rows),
            times=_taken(self.times, rows),
        )

    def without_constants(self) -> "Sample":
        """Return the sample less its constant columns; of an all-constant side one stays."""
        x, x_names, x_told = _varying(self.x, self.x_names, "x")
        y, y_names, y_told = _varying(self.y, self.y_names, "y")
        warnings = self.warnings + x_told + y_told
        return replace(self, x=x, y=y, x_names=x_names, y_names=y_names, warnings=warnings)

    def is_constant(self) -> bool:
        """Tell whether one side never varies, so that it shares no information."""
        return any(bool((a == a[:1]).all()) for a in (self.x, self.y))


def _taken(about: NDArray[np.int64] | None, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
    return None if about is None else about[rows]


def as_sample(
    x: Any,
    y: Any,
    *,
    groups: Any = None,
    order: Any = None,
    nan: NanPolicy = "raise",
    least: int = 2,
) -> Sample:
    """Check two aligned collections of values and make them a `Sample`.

    Args:
        x: Array, tensor, frame, series or list; (n,), (n, d) or (n, c, h, w).
        y: The same number of rows.
        groups: (n,) numbers or names, equal for rows that belong together, such as a subject's.
        order: (n,) times, or `True` if rows are in the order of time.
        nan: `"raise"` an error on NaN and inf, or `"omit"` the pairs that hold one.
        least: The smallest usable number of pairs.
    """
    if nan not in ("raise", "omit"):
        raise ValueError(f'nan must be "raise" or "omit", got {nan!r}')
    (x, x_names), (y, y_names) = _side(x, "x"), _side(y, "y")
    if len(x) != len(y):
        raise DataError(
            f"x has {len(x)} rows and y has {len(y)}; row i of x must go with row i of y"
        )
    finite = _finite_rows(x) & _finite_rows(y)
    warnings: tuple[Caution, ...] = ()
    if not finite.all():
        if nan == "raise":
            raise DataError(_missing(x, x_names, "x") or _missing(y, y_names, "y"))
        warnings = (_omitted(int((~finite).sum()), len(finite)),)
    grouped, times = _group_codes(groups, finite), _places(order, finite)
    if grouped is not None and times is not None:
        raise DataError(
            "groups and order were both given: pass groups for rows that belong together, or order "
            "for one series in time"
        )
    x, y = x[finite], y[finite]
    if len(x) < least:
        raise DataError(
            f"{len(x)} pairs are too few (n_samples = {len(x)}): at least {least} are needed"
        )
    copies, told = label_copies(x, y)
    warnings += told
    if grouped is None and times is None:
        warnings += serial_cautions(*_without_copies(x, y, copies))
    return Sample(
        x,
        y,
        x_names,
        y_names,
        labels=_joined(grouped, copies),
        copies=copies,
        times=times,
        gap=0 if times is None else gap_between(x[times.argsort()], y[times.argsort()]),
        warnings=warnings,
    )


def _group_codes(groups: Any, keep: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """Return an integer for each row that is kept, equal within a group."""
    if groups is None:
        return None
    names = _column(groups, keep, "groups")
    if any(v is None or v != v for v in names):
        raise DataError("groups has missing values; give every row a group, or leave the row out")
    texts = np.array([str(v) for v in names]) if names.dtype == object else names
    codes = np.unique(texts, return_inverse=True)[1].astype(np.int64)
    if codes.max() == 0:
        raise DataError("all rows are of one group: nothing can be held out; leave groups out")
    return codes


def _places(order: Any, keep: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """Return the place in time of each row that is kept, counted from 0."""
    if order is None or order is False:
        return None
    if order is True:
        return np.arange(int(keep.sum()))
    times = _column(order, keep, "order")
    if times.dtype.kind not in "biufmM" or not (times == times).all():
        raise DataError("order must be times or numbers without gaps, or True if rows are in order")
    return np.argsort(np.argsort(times, kind="stable"), kind="stable").astype(np.int64)


def _column(value: Any, keep: NDArray[np.bool_], name: str) -> NDArray[Any]:
    """Return one value for each row that is kept."""
    frame = nw.from_native(value, pass_through=True, allow_series=True)
    column = frame.to_numpy() if isinstance(frame, nw.Series) else np.asarray(value)
    if column.shape != keep.shape:
        raise DataError(
            f"{name} has shape {column.shape}; pass one value for each of the {len(keep)} rows"
        )
    return np.asarray(column[keep])


def _joined(
    groups: NDArray[np.int64] | None, copies: NDArray[np.int64] | None
) -> NDArray[np.int64] | None:
    """Return labels that are equal for rows of one group, and for groups that share a copy."""
    if groups is None or copies is None:
        return copies if groups is None else groups
    rows, first = np.arange(len(groups)), groups.max() + 1
    size = int(first + copies.max() + 1)
    linked = coo_array((np.ones(len(rows)), (groups, first + copies)), shape=(size, size))
    return np.asarray(connected_components(linked)[1][groups], dtype=np.int64)


def _without_copies(
    x: NDArray[np.float64], y: NDArray[np.float64], copies: NDArray[np.int64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if copies is None:
        return x, y
    first = np.sort(np.unique(copies, return_index=True)[1])
    return x[first], y[first]


def _side(value: Any, side: str) -> tuple[NDArray[np.float64], tuple[str, ...]]:
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
    try:
        return np.asarray(value)
    except ValueError as error:
        raise DataError(f"{side} is not an array: its rows differ in length") from error


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


def _finite_rows(a: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray(np.isfinite(a).all(axis=tuple(range(1, a.ndim))))


def _missing(a: NDArray[np.float64], names: Sequence[str], side: str) -> str | None:
    """Say where the missing values of one side are, if it has any."""
    bad = ~np.isfinite(a)
    if not bad.any():
        return None
    per_column = bad.sum(axis=(0, *range(2, a.ndim)))
    where = ", ".join(f"{names[j]} ({per_column[j]})" for j in np.flatnonzero(per_column)[:5])
    rows = int(bad.reshape(len(a), -1).any(axis=1).sum())
    return (
        f"{side} has NaN or inf in {rows} of {len(a)} rows: {where}; "
        "omit those pairs (nan='omit', --nan omit) or fill them in"
    )


def _omitted(dropped: int, n: int) -> Caution:
    return Caution(
        "missing",
        f"{dropped} of {n} pairs held NaN or inf and were dropped",
        "The answer speaks of complete pairs only",
    )


def _varying(
    a: NDArray[np.float64], names: tuple[str, ...], side: str
) -> tuple[NDArray[np.float64], tuple[str, ...], tuple[Caution, ...]]:
    """Return the columns that vary, or the first if none does, their names, and what to tell."""
    varies = (a != a[:1]).any(axis=0)
    if a.ndim != 2 or varies.all():  # a constant pixel keeps its place in the image
        return a, names, ()
    listed = ", ".join(names[j] for j in np.flatnonzero(~varies)[:5])
    told = Caution(
        "constant",
        f"{int((~varies).sum())} constant column(s) of {side} tell nothing: {listed}",
        "They were left out" if varies.any() else "Nothing varies, so the MI is 0",
    )
    keep = varies if varies.any() else np.arange(a.shape[1]) == 0
    return a[:, keep], tuple(np.asarray(names)[keep]), (told,)
