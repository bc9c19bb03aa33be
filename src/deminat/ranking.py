"""Which columns tell most about a target? All columns of a table, ranked by mutual information.

The fast tier of `pairwise` measures each column with the target; the best may be refined by the
default recipe. Dates are numbers of days. p-values are adjusted for the number of columns.
"""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from .data.column_pairs import usable_columns
from .data.labels import Discrete
from .data.sample import NanPolicy
from .errors import DataError
from .estimators.registry import Preset
from .matrix import Refine, pairwise
from .results import Caution
from .runtime.progress import AskedProgress

__all__ = ["Ranking", "rank"]

_COLUMNS = ("mi", "low", "high", "p_value", "q_value", "n", "method", "warnings")
_SHOWN = 20  # lines of a printed ranking
_MICROSECONDS = 86_400_000_000  # of a day


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
        width = max([6, *(len(str(row["column"])) for row in rows[:_SHOWN])])
        lines = [f"{'column':{width}}   nats  95% interval   q"]
        for row in rows[:_SHOWN]:
            ends = f"[{row['low']:.3f}, {row['high']:.3f}]"
            lines.append(f"{row['column']:{width}}  {row['mi']:.3f}  {ends}  {row['q_value']:.2g}")
        if len(rows) > _SHOWN:
            lines.append(f"... {len(rows)} columns in all")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return a table with a bar for each column, for notebooks."""
        rows = self.rows()
        most = max([1e-9, *(row["mi"] for row in rows)])
        lines = []
        for row in rows[:_SHOWN]:
            bar = f'<div style="background:#4c78a8;height:.8em;width:{8 * row["mi"] / most:.2f}em">'
            cells = (
                escape(str(row["column"])),
                f"{bar}</div>",
                f"{row['mi']:.3f}",
                f"[{row['low']:.3f}, {row['high']:.3f}]",
                f"{row['q_value']:.2g}",
            )
            lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        head = "".join(f"<th>{h}</th>" for h in ("column", "", "nats", "95% interval", "q"))
        title = f"<caption>{len(rows)} columns about {escape(self.target)}</caption>"
        return f"<table>{title}<tr>{head}</tr>{''.join(lines)}</table>"

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
    frame = nw.from_native(data, eager_only=True)
    if target not in frame.columns:
        raise DataError(f"no column {target!r}; there are {', '.join(frame.columns[:20])}")
    apart = {name for name in (groups, order) if isinstance(name, str)}
    frame = _with_days(frame, apart)
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
        store=store,
        n_jobs=n_jobs,
        cluster=cluster,
        progress=progress,
        say=say,
    )
    table = found.table.rename({"x": "column"})
    refused = table.filter(pl.col("error") != "")
    left_out = dict(refused.select("column", "error").iter_rows())
    left_out |= {
        name: "neither numbers nor labels"
        for name in frame.columns
        if name not in {*usable, *apart}
    }
    if len(refused) == len(table):
        raise DataError(f"no column can be ranked; the first: {next(iter(left_out.values()))}")
    known = table.filter(pl.col("error") == "").select("column", *_COLUMNS)
    known = known.sort("mi", "p_value", descending=[True, False])
    native = nw.from_dict(known.to_dict(as_series=False), backend=frame.implementation)
    return Ranking(target, native.to_native(), left_out, found.warnings)


def _with_days(frame: nw.DataFrame[Any], apart: set[str]) -> nw.DataFrame[Any]:
    """Return a table whose dates are numbers of days."""
    dates = [
        name
        for name, dtype in frame.schema.items()
        if name not in apart and dtype in (nw.Date, nw.Datetime)
    ]
    days = [
        (nw.col(name).cast(nw.Datetime("us")).dt.timestamp("us") / _MICROSECONDS).alias(name)
        for name in dates
    ]
    return frame.with_columns(*days) if days else frame
