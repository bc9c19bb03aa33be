"""Tables of pairs of columns: from numbers of tiles, or from rows of single pairs.

A table has a row for each pair, with its place in the order of all. Tables of both tiers are put
together here, and their p-values adjusted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..data.column_pairs import ColumnPairs
from ..errors import printable
from ..results import Caution
from ..runtime.rowstore import Row
from .tiles import Loaded, PairColumns

__all__ = [
    "LABELS",
    "PairTable",
    "empty_row",
    "fast_table",
    "missing_warnings",
    "refused_table",
    "table_of",
]

Array = NDArray[np.float64]

MEASURES = ("mi", "standard_error", "low", "high", "p_value", "lower_bound")
_TABLE = ("x", "y", *MEASURES, "n", "method", "warnings", "error")
_SCHEMA: dict[Any, Any] = {
    **dict.fromkeys(_TABLE, pl.String),
    **dict.fromkeys(MEASURES, pl.Float64),
    "n": pl.Int64,
    "place": pl.Int64,
}
_FAST = "ranks"  # the name of the fast tier in tables
LABELS = Caution(
    "labels",
    "columns of few values are read as labels: their codes may be in any order",
    "Pass discrete=False (--discrete none) if they are measurements",
)


@dataclass(frozen=True)
class PairTable:
    """Pairs in columns, and what others have to say.

    Args:
        table: A row for each pair, with its `place` in the order of all.
        cautions: The first warning of each code.
        beyond: Other pairs, with larger p-values.
        least_beyond: The smallest adjusted p-value of those.
    """

    table: pl.DataFrame
    cautions: dict[str, Caution]
    beyond: int = 0
    least_beyond: float = 1.0

    def strongest(self, count: int) -> list[tuple[str, str]]:
        """Return the pairs with the smallest p-values; of equal ones, the largest MI."""
        known = self.table.filter(pl.col("p_value").is_not_null())
        ordered = known.sort("p_value", "mi", descending=[False, True], maintain_order=True)
        return list(ordered.head(count).select("x", "y").iter_rows())

    def replaced(self, better: "PairTable") -> "PairTable":
        """Return the rows with some replaced, unless their pair could not be estimated."""
        known = set(self.table["place"].to_list()).intersection(better.table["place"].to_list())
        failed = pl.col("place").is_in(list(known)) & (pl.col("error") != "")
        # The same test by ranks has no smallest p-value where the recipe permutes rows.
        tested = self.table.select("place", by_ranks="p_value")
        of_better = better.table.filter(~failed).join(tested, on="place", how="left")
        of_better = of_better.with_columns(p_value=pl.coalesce("by_ranks", "p_value"))
        rows = pl.concat([self.table, of_better.drop("by_ranks")])
        rows = rows.unique("place", keep="last").sort("place")
        return replace(self, table=rows, cautions={**self.cautions, **better.cautions})

    def adjusted(self) -> pl.DataFrame:
        """Return the table with adjusted p-values, the largest MI first."""
        table = self.table.drop("place")
        p_values = table["p_value"].fill_null(np.nan).to_numpy()
        q_values = _adjusted(p_values, self.beyond, self.least_beyond)
        adjusted = pl.Series("q_value", q_values).fill_nan(None)
        table = table.insert_column(table.columns.index("p_value") + 1, adjusted)
        return table.sort("mi", descending=True, nulls_last=True, maintain_order=True)

    def warnings(self) -> Iterator[Caution]:
        """Yield what to know before trusting the table."""
        yield from self.cautions.values()
        if self.beyond:
            count, limit = len(self.table), cast(float, self.table["p_value"].max())
            yield Caution(
                "strongest",
                f"the table has the {count:,} pairs with the smallest p-values, up to {limit:.2g}; "
                f"{self.beyond:,} others are not in it, and adjusted p-values count them",
                "Pass a larger most= (--most) if there is memory for more",
            )


def _adjusted(p_values: Array, beyond: int, least_beyond: float) -> Array:
    """Return adjusted p-values; NaN of an untested pair."""
    tested = np.flatnonzero(~np.isnan(p_values))
    order = tested[np.argsort(p_values[tested], kind="stable")]
    count, adjusted = len(order) + beyond, np.full(len(p_values), np.nan)
    ratios = p_values[order] / np.arange(1, len(order) + 1) * count
    least = np.minimum.accumulate(np.append(ratios, least_beyond)[::-1])[::-1]
    adjusted[order] = least[:-1]
    return adjusted


def missing_warnings(loaded: Loaded) -> Iterator[Caution]:
    """Warn of missing values, once for all pairs."""
    counts = {c.name: int(np.isnan(c.values).sum()) for c in loaded.columns.values()}
    having = {name: count for name, count in counts.items() if count}
    if having:
        name = max(having, key=lambda n: having[n])
        rows = len(loaded.columns[name].values)
        yield Caution(
            "missing",
            f"missing values in {len(having):,} columns, most of them in {printable(name)}: "
            f"{having[name]:,} of {rows:,} rows",
            "Each pair uses the rows that have both values",
        )


def fast_table(
    found: PairColumns, usable: ColumnPairs, pairs: ColumnPairs, loaded: Loaded
) -> pl.DataFrame:
    """Return the table of the fast tier."""
    numbers, measured = found.found, ~np.isnan(found.found.mi)
    low, high = numbers.interval()
    texts = {"n": pl.Series(numbers.n)}
    for side, names, places in (("x", usable.x, found.x), ("y", usable.y, found.y)):
        labels = np.array([name in loaded.read_as_labels for name in names])
        texts[side] = pl.Series(names, dtype=pl.String).gather(places)
        texts[f"{side} is label"] = pl.Series(labels[places])
    values = {
        "mi": numbers.mi,
        "standard_error": numbers.error,
        "low": low,
        "high": high,
        "p_value": numbers.p_value,
    }
    columns = {name: pl.Series(column).fill_nan(None) for name, column in values.items()}
    warned = measured & (texts["x is label"] | texts["y is label"]).to_numpy()
    at = [_positions(side, whole) for side, whole in ((usable.x, pairs.x), (usable.y, pairs.y))]
    rows = pl.DataFrame(
        {
            **{side: texts[side] for side in ("x", "y", "n")},
            **columns,
            "place": at[0][found.x] * len(pairs.y) + at[1][found.y],
            "measured": measured,
            "warned": warned,
        }
    )
    few = pl.format("{} rows have both values: too few", "n")
    rows = rows.with_columns(
        lower_bound=pl.lit(None, pl.Float64),
        method=pl.lit(_FAST),
        warnings=pl.when("warned").then(pl.lit(LABELS.code)).otherwise(pl.lit("")),
        error=pl.when("measured").then(pl.lit("")).otherwise(few),
    )
    return rows.select(*_SCHEMA).cast(_SCHEMA)


def _positions(names: Sequence[str], whole: Sequence[str]) -> NDArray[np.int64]:
    place = {name: i for i, name in enumerate(whole)}
    return np.array([place[name] for name in names], dtype=np.int64)


def refused_table(
    some: Sequence[tuple[str, str]], loaded: Loaded, pairs: ColumnPairs
) -> pl.DataFrame:
    """Return rows that say why a column cannot be used."""
    reasons = (next(loaded.refused[name] for name in p if name in loaded.refused) for p in some)
    rows = [{**empty_row(pair), "error": why} for pair, why in zip(some, reasons, strict=True)]
    return table_of(rows, pairs)


def table_of(rows: Sequence[Row], pairs: ColumnPairs) -> pl.DataFrame:
    """Return rows as a table, with their places in the order of all pairs."""
    places = pairs.places((row["x"], row["y"]) for row in rows)
    values = [
        {**{key: row.get(key) for key in _TABLE}, "place": place}
        for row, place in zip(rows, places, strict=True)
    ]
    return pl.DataFrame(values, schema=_SCHEMA)


def empty_row(pair: tuple[str, str]) -> Row:
    """Return the row of a pair about which nothing is known."""
    x, y = pair
    nothing = dict.fromkeys((*MEASURES, "n"))
    return {"x": x, "y": y, **nothing, "method": "", "warnings": "", "cautions": [], "error": ""}
