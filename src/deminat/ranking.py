"""Which columns tell most about a target? All columns of a table, ranked by mutual information.

The fast tier of `pairwise` measures each column with the target; the best may be refined by the
default recipe. Dates are numbers of days. p-values are adjusted for the number of columns.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw

from .data.column_pairs import as_table, usable_columns, with_days
from .data.labels import Discrete
from .data.sample import NanPolicy
from .errors import DataError
from .estimators.registry import Preset
from .matrix import Refine, pairwise
from .report.tables import html_table, text_table
from .results import Caution
from .runtime.progress import AskedProgress

__all__ = ["Ranking", "rank"]

_COLUMNS = ("mi", "low", "high", "p_value", "q_value", "n", "method", "warnings")


@dataclass(frozen=True)
class Ranking:
    """Columns in the order of what they tell about a target.

    Args:
        target: Its name.
        table: A row for each column, the most informative first, in a frame of the caller's kind:
            `column`, `mi` in nats with `low` and `high` of its interval, `p_value`, `q_value`, `n`,
            `method`, `warnings`.
        left_out: Why columns could not be used, by name.
        warnings: What the codes in the table mean.
    """

    target: str
    table: Any
    left_out: dict[str, str]
    warnings: tuple[Caution, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the table as dictionaries."""
        return list(nw.from_native(self.table, eager_only=True).iter_rows(named=True))

    def __str__(self) -> str:
        rows = self.rows()
        return text_table(rows, ("column",), len(rows), "columns")

    def _repr_html_(self) -> str:
        """Return a table with a bar for each column, for notebooks."""
        rows = self.rows()
        return html_table(rows, ("column",), f"{len(rows)} columns about {self.target}")

    def save_chart(self, path: Path) -> None:
        """Save a bar chart with intervals; it needs matplotlib."""
        from .report.bars import save_bars

        save_bars(path, self.target, self.rows())


def rank(
    data: Any,
    target: str,
    *,
    refine: Refine = 0,
    preset: Preset = "auto",
    seed: int = 0,
    nan: NanPolicy = "omit",
    groups: Any = None,
    order: Any = None,
    discrete: Discrete = None,
    max_rows: int | None = None,
    store: Path | None = None,
    n_jobs: int = 1,
    cluster: str | None = None,
    progress: AskedProgress = None,
    say: Callable[[str], None] | None = None,
) -> Ranking:
    """Rank the columns of a table by what they tell about one of them.

    Args:
        data: A frame of pandas or polars, with numbers, dates, text and missing values.
        target: The column to be told about.
        refine: As of `pairwise`: how many of the best are estimated by the recipe, too.
        preset: As of `estimate`.
        seed: One seed gives one answer.
        nan: `"omit"` rows where the column or the target is missing, or `"raise"` an error.
        groups: As of `pairwise`.
        order: As of `pairwise`.
        discrete: As of `pairwise`.
        max_rows: As of `pairwise`.
        store: As of `pairwise`.
        n_jobs: Processes to use.
        cluster: Address of a Dask scheduler to use instead.
        progress: As of `estimate`.
        say: Called with a line on the number of columns and the time they will take.

    Examples:
        >>> import numpy as np, polars as pl
        >>> x, e = np.random.default_rng(0).normal(size=(2, 500))
        >>> found = rank(pl.DataFrame({"x": x, "e": e, "y": x**2 + 0.1 * e}), "y")
        >>> found.table["column"][0]
        'x'
    """
    frame = as_table(data)
    if target not in frame.columns:
        raise DataError(f"no column {target!r}; there are {', '.join(frame.columns[:20])}")
    apart = {name for name in (groups, order) if isinstance(name, str)}
    frame = with_days(frame, apart)
    usable = usable_columns(frame)
    if target not in usable:
        raise DataError(f"the target {target!r} holds neither numbers nor labels")
    names = [name for name in usable if name != target and name not in apart]
    found = pairwise(
        frame.to_native(),
        names,
        [target],
        refine=refine,
        preset=preset,
        seed=seed,
        nan=nan,
        groups=groups,
        order=order,
        discrete=discrete,
        max_rows=max_rows,
        store=store,
        n_jobs=n_jobs,
        cluster=cluster,
        progress=progress,
        say=say,
    )
    table = nw.from_native(found.table, eager_only=True).rename({"x": "column"})
    refused = table.filter(nw.col("error") != "")
    left_out = dict(refused.select("column", "error").iter_rows())
    left_out |= {
        name: "neither numbers nor labels"
        for name in frame.columns
        if name not in {*usable, *apart}
    }
    if len(refused) == len(table):
        raise DataError(f"no column can be ranked; the first: {next(iter(left_out.values()))}")
    known = table.filter(nw.col("error") == "").select("column", *_COLUMNS)
    return Ranking(target, known.to_native(), left_out, found.warnings)
