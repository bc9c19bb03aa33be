"""Tables of the paper's experiments, from rows of one setting; and that setting in words."""

from collections.abc import Sequence

from ...runtime.rowstore import Cell, Row
from .consistency import TESTS
from .tables import Table, entry, spread

__all__ = [
    "consistency_setting",
    "consistency_tables",
    "gaussian_tables",
    "infomax_setting",
    "infomax_tables",
    "longrun_setting",
    "longrun_tables",
]

_PAPER = {  # top-1 accuracy of conv and fc after long training, Liao et al. (2020), table 1
    ("cifar10", "supervised"): ("75.39", ""),
    ("cifar10", "mine"): ("71.36", "66.30"),
    ("cifar10", "smile(tau=5)"): ("71.88", "66.92"),
    ("cifar10", "smile(tau=1)"): ("71.12", "66.22"),
    ("cifar10", "jsd"): ("72.79", "67.94"),
    ("cifar10", "infonce"): ("73.73", "69.77"),
    ("cifar10", "demi"): ("74.09", "70.16"),
    ("cifar100", "supervised"): ("42.27", ""),
    ("cifar100", "mine"): ("42.52", "37.23"),
    ("cifar100", "smile(tau=5)"): ("42.74", "37.48"),
    ("cifar100", "smile(tau=1)"): ("42.13", "37.10"),
    ("cifar100", "jsd"): ("42.78", "37.76"),
    ("cifar100", "infonce"): ("44.91", "39.95"),
    ("cifar100", "demi"): ("45.59", "42.02"),
}


def gaussian_tables(rows: Sequence[Row]) -> list[Table]:
    """Return the errors for each kind, number of columns and number of pairs."""
    rows = [{**r, "method": _precisely(r)} for r in rows]
    tables = []
    for kind, d, n in dict.fromkeys((r["kind"], r["d"], r["n"]) for r in rows):
        own = [r for r in rows if (r["kind"], r["d"], r["n"]) == (kind, d, n)]
        title = f"truth - estimate in nats: {kind}, {d} + {d} columns, {n:,} training pairs"
        tables.append(spread(own, title, "truth", lambda r: f"{r['truth']:g}", "error"))
    return tables


def _precisely(row: Row) -> str:
    """Return a method with the precision that it was trained in, if that is not the usual one."""
    precision = row.get("precision")
    return f"{row['method']}({precision})" if precision else row["method"]


def longrun_tables(rows: Sequence[Row]) -> list[Table]:
    """Return the mean of the last tenth of each curve."""
    ends = [{**r, "end": _mean(r["estimate"][-max(1, len(r["estimate"]) // 10) :])} for r in rows]
    title = "estimate in nats, mean of the last tenth of the steps, by true nats"
    return [spread(ends, title, "truth", lambda r: f"{r['truth']:g}", "end")]


def consistency_tables(rows: Sequence[Row]) -> list[Table]:
    """Return the ratios of each test."""
    rows = [{**r, "method": _precisely(r)} for r in rows if r["ratio"] is not None]
    return [
        spread(
            [r for r in rows if r["test"] == test],
            f"{test}: ratio by rows kept",
            "t",
            lambda r: str(r["t"]),
            "ratio",
        )
        for test in TESTS
        if any(r["test"] == test for r in rows)
    ]


def infomax_tables(rows: Sequence[Row]) -> list[Table]:
    """Return the accuracy of probes after the last epoch, beside the paper's."""
    ends = [r for r in rows if r["epoch"] == r["epochs"]]
    random = {
        r["draw"]: {**r, "method": "random encoder"} for r in rows if r["epoch"] == 0 and r["fc"]
    }
    ends += random.values()  # one for each seed, whatever was trained from it
    lines = []
    for method in dict.fromkeys(r["method"] for r in ends):
        own = [r for r in ends if r["method"] == method]
        found = [entry([100 * v for v in _values(own, key)]) for key in ("conv", "fc", "output")]
        paper = _PAPER.get((rows[0]["dataset"], method), ("", ""))
        nats = "" if method == "random encoder" else entry(_values(own, "estimate"))
        lines.append((method, (*found, *paper, nats, str(len({r["draw"] for r in own})))))
    heads = "conv", "fc", "output", "paper's conv", "paper's fc", "nats, test images", "seeds"
    return [Table("top-1 accuracy in %", "method", heads, tuple(lines))]


def _values(rows: Sequence[Row], key: str) -> list[float]:
    return [row[key] for row in rows if row[key] is not None]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def longrun_setting(row: Cell) -> str:
    """Return what must agree for curves to stand side by side."""
    points = f"{row['steps']:,} steps, read every {row['every']}"
    return f"{row['d']} + {row['d']} columns, {row['batch']} pairs a step, {points}"


def consistency_setting(row: Cell) -> str:
    """Return what must agree for ratios to stand side by side."""
    return f"{row['epochs']} epochs, {row['images']:,} images" + _unchecked(row)


def infomax_setting(row: Cell) -> str:
    """Return what must agree for encoders to be compared."""
    others = f"{row['negatives']} of the" if row["negatives"] else "all"
    kind = "scaled" if row["critic"] == "normalised" else row["critic"]  # names tell which
    critic = f"{kind} critic of {row['units']} units"
    return (
        f"{row['dataset']}, {row['epochs']} epochs, {critic}, "
        f"{row['batch']} images a step with {others} others as strangers, "
        f"probes of {row['probe_epochs']} epochs"
        + (f", {row['precision']}" if row["precision"] != "float32" else "")
        + (f", {row['scale']:.2g} of the images" if row["scale"] != 1 else "")
        + _unchecked(row)
    )


def _unchecked(row: Cell) -> str:
    return "" if row["check"] else ", which need not be the published ones"
