"""Is the default recipe right on columns like those of real data?

Real columns are made into known truths (`deminat.tasks.plasmode`): a density is fitted to them and
sampled anew. All 55 pairs of the eleven proteins, which come with the package, and groups of them.
Further sources are read from the folder `small` of the data folder (the environment variable
DEMINAT_DATA, else deminat in the user's cache); a source whose file is absent is left out, and a
message says so:

- `spikes`: `s1_data.mat`, the movements of a hand and the spike counts of 52 neurons;
- `pulsar`: `pulsar.mixed.maximum.2.txt`, eight figures of 17,898 radio signals and their class;
- `penguins`: `penguins.csv`, four measures of birds and their species.

Columns are standardised after a logarithm (proteins) or an inverse hyperbolic sine (others), since
they have long tails. Estimates are compared with the mean of the true log ratio on the same pairs.
As in `bench wild`, seeds below 100 choose a recipe and seeds from 100 on report it.
"""

import logging
import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...datasets import sachs
from ...runtime.rowstore import Cell, Row
from ...tasks import Task
from ...tasks.plasmode import fitted_classes, fitted_mixture, kernel_pair
from ...tasks.wild import WildCase
from .runner import Bench, grouped, mark
from .wild import judge_case, median_cpu, refusals, without_marks

__all__ = ["BENCHES"]

Array = NDArray[np.float64]
Columns = dict[str, Array]

_PRESETS = ("auto", "quick")
_COVERED, _WORST = 0.90, 0.10  # goals: share of intervals, nats or share of the truth
_WIDTH, _COMPONENTS, _MOST = 0.1, 12, 7_500  # of kernels, of mixtures, and rows that are fitted
_NEURONS = 10
_FILES = {
    "spikes": "s1_data.mat",
    "pulsar": "pulsar.mixed.maximum.2.txt",
    "penguins": "penguins.csv",
}
_PROTEINS = ("raf", "mek", "plc", "pip2", "pip3", "erk", "akt", "pka", "pkc", "p38", "jnk")


def _path(source: str) -> Path:
    cache_folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "deminat")
    folder = Path(os.environ.get("DEMINAT_DATA") or cache_folder).expanduser()
    return folder / "small" / _FILES[source]


def _standardised(columns: Array) -> Array:
    return np.asarray((columns - columns.mean(axis=0)) / columns.std(axis=0))


def _tamed(columns: Array) -> Array:
    """Return columns without long tails, about their medians and of unit variance."""
    low, middle, high = np.quantile(columns, [0.25, 0.5, 0.75], axis=0)
    # Half the values of a count may be zero, and then its quartiles are equal.
    size = np.where(high > low, high - low, columns.std(axis=0))
    return _standardised(np.arcsinh((columns - middle) / size))


def _thinned(rows: Array) -> Array:
    if len(rows) <= _MOST:
        return rows
    return rows[np.random.default_rng(0).choice(len(rows), _MOST, replace=False)]


@cache
def _columns(source: str) -> Columns:
    """Return the columns of a source by name, ready to be fitted."""
    return _READERS[source]()


def _read_sachs() -> Columns:
    rows = _standardised(np.log(sachs().select(_PROTEINS).to_numpy() + 1e-3))
    return dict(zip(_PROTEINS, rows.T, strict=True))


def _read_spikes() -> Columns:
    from scipy.io import loadmat

    found = loadmat(_path("spikes"))
    spikes = found["spikes"].astype(np.float64)
    spikes = spikes[:, np.argsort(-spikes.mean(axis=0))[:_NEURONS]]
    rows = _thinned(np.hstack([found["pos"], found["vel"], spikes]))
    names = ("x", "y", "speed_x", "speed_y", *(f"neuron_{i}" for i in range(_NEURONS)))
    return dict(zip(names, _tamed(rows).T, strict=True))


def _read_pulsar() -> Columns:
    import polars as pl

    frame = pl.read_csv(_path("pulsar"), separator="\t")
    rows = _thinned(frame.to_numpy().astype(np.float64))
    tamed = _tamed(rows[:, :-1])
    return {**dict(zip(frame.columns, tamed.T, strict=False)), "class": rows[:, -1]}


def _read_penguins() -> Columns:
    import polars as pl

    names = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    frame = pl.read_csv(_path("penguins"), null_values=["NA", "."])
    frame = frame.select("species", *names).drop_nulls()
    rows = _tamed(frame.select(names).to_numpy().astype(np.float64))
    kinds = np.unique(frame["species"].to_numpy(), return_inverse=True)[1]
    return {**dict(zip(names, rows.T, strict=True)), "class": kinds.astype(np.float64)}


_READERS: dict[str, Callable[[], Columns]] = {
    "sachs": _read_sachs,
    "spikes": _read_spikes,
    "pulsar": _read_pulsar,
    "penguins": _read_penguins,
}


def _pair(source: str, a: str, b: str) -> Task:
    columns = _columns(source)
    return kernel_pair(f"{source}-{a}-{b}", np.stack([columns[a], columns[b]], axis=1), _WIDTH)


def _group(source: str, x: Sequence[str], y: Sequence[str]) -> Task:
    of_x, of_y = (np.stack([_columns(source)[name] for name in side], axis=1) for side in (x, y))
    return fitted_mixture(f"{source}-{'+'.join(x)}", of_x, of_y, _COMPONENTS)


def _class(source: str, y: Sequence[str], components: int) -> Task:
    columns = _columns(source)
    rows = np.stack([columns[name] for name in y], axis=1)
    name = f"{source}-class-{'+'.join(y)}"
    return fitted_classes(name, columns["class"].astype(np.int64), rows, components)


def _proteins() -> dict[str, WildCase]:
    pairs = {
        f"sachs-{a}-{b}": WildCase("pairs", 7_466, partial(_pair, "sachs", a, b))
        for a, b in combinations(_PROTEINS, 2)
    }
    groups = {
        "1+10": (("raf",), _PROTEINS[1:]),
        "3+3": (("raf", "plc", "pka"), ("mek", "pip2", "akt")),
        "5+5": (("raf", "plc", "erk", "pka", "p38"), ("mek", "pip2", "akt", "pkc", "jnk")),
    }
    for shape, sides in groups.items():
        pairs[f"sachs-{shape}"] = WildCase("groups", 7_466, partial(_group, "sachs", *sides))
    return pairs


def _spikes() -> dict[str, WildCase]:
    moves = ("x", "y", "speed_x", "speed_y")
    neurons = tuple(f"neuron_{i}" for i in range(_NEURONS))
    pairs = [("x", "y"), ("x", "speed_x"), ("speed_x", "speed_y"), ("speed_y", "neuron_0")]
    return {
        **{f"spikes-{a}-{b}": _of_pair("spikes", 10_000, a, b) for a, b in pairs},
        "spikes-4+10": WildCase("groups", 10_000, partial(_group, "spikes", moves, neurons)),
        "spikes-5+5": WildCase(
            "groups", 10_000, partial(_group, "spikes", neurons[:5], neurons[5:])
        ),
    }


def _pulsar() -> dict[str, WildCase]:
    profile = ("ip_mean", "ip_sd", "ip_kurt", "ip_skew")
    signal = ("snr_mean", "snr_sd", "snr_kurt", "snr_skew")
    pairs = [("ip_mean", "ip_kurt"), ("snr_sd", "snr_kurt"), ("ip_sd", "snr_mean")]
    by_class = partial(_class, "pulsar", (*profile, *signal), 4)
    return {
        **{f"pulsar-{a}-{b}": _of_pair("pulsar", 7_500, a, b) for a, b in pairs},
        "pulsar-4+4": WildCase("groups", 7_500, partial(_group, "pulsar", profile, signal)),
        "pulsar-class": WildCase("classes", 7_500, by_class, "ordered"),
    }


def _penguins() -> dict[str, WildCase]:
    names = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
    by_class = partial(_class, "penguins", names, 1)
    return {
        **{f"penguins-{a}-{b}": _of_pair("penguins", 342, a, b) for a, b in (names[:2], names[2:])},
        "penguins-class": WildCase("classes", 342, by_class, "category"),
    }


def _of_pair(source: str, n: int, a: str, b: str) -> WildCase:
    return WildCase("pairs", n, partial(_pair, source, a, b))


_SOURCES: dict[str, Callable[[], dict[str, WildCase]]] = {
    "sachs": _proteins,
    "spikes": _spikes,
    "pulsar": _pulsar,
    "penguins": _penguins,
}


@cache
def _cases(source: str) -> dict[str, WildCase]:
    return _SOURCES[source]()


def _present() -> list[str]:
    """Return the sources whose files are there."""
    return [source for source in _SOURCES if source not in _FILES or _is_file(_path(source))]


@cache
def _is_file(path: Path) -> bool:
    # Stored, so that the message comes once although cells are asked for several times.
    if path.is_file():
        return True
    logging.getLogger(__name__).warning("left out: there is no %s; set DEMINAT_DATA", path)
    return False


def _cells(seeds: Sequence[int]) -> list[Cell]:
    return [
        {
            "source": source,
            "family": case.family,
            "task": name,
            "n": case.n,
            "seed": seed,
            "preset": preset,
        }
        for preset in _PRESETS
        for seed in seeds
        for source in _present()
        for name, case in _cases(source).items()
    ]


def _run(cell: Cell) -> Row:
    return judge_case(_cases(cell["source"])[cell["task"]], cell)


def _verdict(rows: Sequence[Row]) -> list[str]:
    lines = []
    for (preset,), own in grouped(rows, "preset").items():
        found = _judge(own)
        lines += found if preset == _PRESETS[0] else without_marks(found, preset)
    return lines


def _judge(rows: Sequence[Row]) -> list[str]:
    estimated = [row for row in rows if row.get("estimate") is not None]
    lines = [refusals(rows)]
    if not estimated:
        return lines
    for (source, family), own in grouped(estimated, "source", "family").items():
        lines.append(_beside_ksg(f"{source}, {family}", own))
    covered = [_coverage(estimated, key) for key in ("truth", "oracle")]
    return [*lines, *covered, _worst(estimated), median_cpu(estimated)]


def _mean_absolute(rows: Sequence[Row], key: str = "estimate") -> float:
    return float(np.mean([abs(row[key] - row["oracle"]) for row in rows]))


def _beside_ksg(name: str, rows: Sequence[Row]) -> str:
    """Return a line on errors; on rows that have one of KSG, they must not be larger."""
    mean, both = _mean_absolute(rows), [row for row in rows if row.get("ksg") is not None]
    line = f"{name}: mean of |estimate - oracle| {mean:.4f} nats, {len(rows)} rows"
    if not both:
        return f"{mark(mean <= _WORST)} {line} (at most {_WORST})"
    own, other = _mean_absolute(both), _mean_absolute(both, "ksg")
    return f"{mark(own <= other)} {line}; {own:.4f} where KSG has {other:.4f} (at most as much)"


def _coverage(rows: Sequence[Row], key: str) -> str:
    having = [row for row in rows if row.get("low") is not None]
    missed = [row["task"] for row in having if not row["low"] <= row[key] <= row["high"]]
    share = 1 - len(missed) / max(1, len(having))
    return (
        f"{mark(share >= _COVERED)} interval: holds the {key} in {share:.0%} (at least "
        f"{_COVERED:.0%}), {len(having)} rows"
    )


def _worst(rows: Sequence[Row]) -> str:
    def error(row: Row) -> float:
        return float((row["estimate"] - row["oracle"]) / max(1.0, row["oracle"]))

    worst = max(rows, key=lambda row: abs(error(row)))
    return (
        f"{mark(abs(error(worst)) <= _WORST)} worst: {worst['task']}, seed {worst['seed']}, "
        f"{worst['estimate']:.3f} where the oracle has {worst['oracle']:.3f} nats, "
        f"{error(worst):+.3f} of max(1, oracle) (at most {_WORST})"
    )


BENCHES = {
    "plasmode": Bench(
        "the default recipe is as accurate as KSG on pairs like real ones, and on groups",
        _cells,
        _run,
        _verdict,
        runs=1,
    )
}
