"""Tables made of the rows under `results/` while the documentation is built.

    ```{rows} bmi
    ```

puts the table called `bmi` there. What is claimed of the rows is what `deminat bench` says of
them; where rows are missing the table says so, so that it can never say more than was measured.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from deminat.studies.bench import BENCHES
from deminat.studies.bench.accuracy import RELEASED
from deminat.studies.paper.claims import claims
from deminat.studies.paper.experiments import EXPERIMENTS, read_rows
from deminat.studies.paper.tables import grid, markdown

__all__ = ["TABLES", "read", "setup"]

RESULTS = Path(__file__).parents[2] / "results"

Row = dict[str, Any]

_BANDS = {(0.0, 0.5): "under half a nat", (0.5, 1.5): ".5 to 1.5 nats", (1.5, 9.0): "above"}


def read(name: str) -> list[Row]:
    """Return the committed rows of a bench."""
    return pl.read_csv(RESULTS / f"{name}.csv", infer_schema_length=None).to_dicts()


def _verdict(name: str) -> str:
    """Return what a bench says of its rows, line by line."""
    lines = BENCHES[name].verdict(read(name))
    marks = {"ok": "holds", "MISS": "missed"}
    split = [(marks.get(line[:4].strip(), ""), line[4:].strip()) for line in lines]
    return grid(["", "what the rows say"], split)


def _bmi() -> str:
    rows = read("bmi")
    lines = []
    for n in sorted({r["n"] for r in rows}):
        auto, paper = (
            [r for r in rows if (r["n"], r["preset"]) == (n, p)] for p in ("auto", "paper")
        )
        task, off, oracle = _farthest(auto)
        lines.append(
            [
                f"{n:,}",
                f"**{_mean_error(auto):.4f}**",
                f"{_mean_error(auto, 'oracle'):.4f}",
                f"{_mean_error(paper):.3f}",
                f"`{task}`, {off:+.3f} (oracle {oracle:+.3f})",
                f"{np.mean([r['seconds'] / r['jobs'] for r in auto]):.0f} s",
                f"{len(auto)} + {len(paper)}",
            ]
        )
    head = "pairs", "default", "oracle", "`paper`", "farthest off by default", "time", "rows"
    return grid(head, lines)


def _mean_error(rows: Sequence[Row], key: str = "estimate") -> float:
    return float(np.mean([abs(r[key] - r["truth"]) for r in rows]))


def _farthest(rows: Sequence[Row]) -> tuple[str, float, float]:
    """Return the task whose mean over seeds is farthest off, its error and the oracle's."""
    errors = {
        task: [
            float(np.mean([r[key] - r["truth"] for r in rows if r["task"] == task]))
            for key in ("estimate", "oracle")
        ]
        for task in {r["task"] for r in rows}
    }
    worst = max(errors, key=lambda task: abs(errors[task][0]))
    return worst, *errors[worst]


def _bmi_bands() -> str:
    """Return errors of the default recipe by how much there is to find and how many pairs."""
    rows = [r for r in read("bmi") if r["preset"] == "auto"]
    sizes = sorted({r["n"] for r in rows})
    lines = []
    for (low, high), name in _BANDS.items():
        band = [r for r in rows if low <= r["truth"] < high]
        line = [f"{name} ({len({r['task'] for r in band})} tasks)"]
        for n in sizes:
            own = [r for r in band if r["n"] == n]
            _, off, _ = _farthest(own)
            line.append(f"{_mean_error(own):.3f}, farthest {off:+.3f}")
        lines.append(line)
    return grid(["information", *(f"{n:,} pairs" for n in sizes)], lines)


def _bmi_tasks() -> str:
    """Return the mean error of each task at the largest size, the farthest first."""
    rows = [r for r in read("bmi") if r["preset"] == "auto"]
    most = max(r["n"] for r in rows)
    tasks: dict[str, list[Row]] = {}
    for row in rows:
        if row["n"] == most:
            tasks.setdefault(row["task"], []).append(row)
    means = {
        task: [float(np.mean([r[key] for r in own])) for key in ("truth", "estimate", "oracle")]
        for task, own in tasks.items()
    }
    ordered = sorted(means.items(), key=lambda item: -abs(item[1][1] - item[1][0]))
    lines = [
        [f"`{task}`", f"{truth:.3f}", f"{mi:.3f}", f"{mi - truth:+.3f}", f"{oracle - truth:+.3f}"]
        for task, (truth, mi, oracle) in ordered
    ]
    return grid(["task", "truth", "estimate", "error", "oracle's error"], lines)


def _highmi() -> str:
    lines = []
    families: dict[str, dict[tuple[str, int], list[Row]]] = {}
    for row in read("highmi"):
        cells = families.setdefault(row["family"], {})
        cells.setdefault((row["task"], row["n"]), []).append(row)
    for family, cells in families.items():
        means = {
            cell: [float(np.mean([r[key] for r in own])) for key in ("truth", "estimate", "oracle")]
            for cell, own in cells.items()
        }
        off = {cell: abs(mi - truth) / (truth or 1) for cell, (truth, mi, _) in means.items()}
        (task, n), (truth, mi, oracle) = max(means.items(), key=lambda item: off[item[0]])
        share = f"{mi / truth - 1:+.1%}" if truth else f"{mi:+.4f} nats"
        lines.append(
            [
                family,
                f"{len(cells)}",
                f"`{task}`, {n:,} pairs",
                f"{truth:.2f}",
                f"{mi:.3f}",
                f"{oracle:.3f}",
                share,
            ]
        )
    head = "family", "cells", "farthest off", "truth", "mean estimate", "oracle", "off by"
    return grid(head, lines)


def _checkpoints() -> str:
    rows = read("gaussian")
    seeds = sorted({r["seed"] for r in rows})
    lines = []
    for truth, released in RELEASED.items():
        own = {r["seed"]: r["estimate"] for r in rows if r["truth"] == truth}
        values = list(own.values())
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        first = np.mean([own[s] for s in seeds[:2]])
        mean = f"{np.mean(values):.3f} ({error:.2f})"
        each = [f"{own[s]:.3f}" for s in seeds]
        lines.append([f"{truth:g}", f"{released:.3f}", *each, f"{first:.3f}", mean])
    names = [f"seed {s}" for s in seeds]
    head = [
        "true MI (nats)",
        "released checkpoint",
        *names,
        "mean of the first two",
        "mean of all (s.e.)",
    ]
    return grid(head, lines)


def _trust() -> str:
    """Return the verdict on promises whose rows are all there, and what is still to be run."""
    rows, bench = read("trust"), BENCHES["trust"]
    done = {(r["promise"], r["case"], r["n"], r["batch"]) for r in rows if r["seed"] == 0}
    missing: dict[tuple[str, str, int], int] = {}
    for cell in bench.cells([0]):
        key = cell["promise"], cell["case"], cell["n"]
        missing[key] = missing.get(key, 0) + ((*key, cell["batch"]) not in done)
    whole = {key for key, count in missing.items() if count == 0}
    kept = [r for r in rows if (r["promise"], r["case"], r["n"]) in whole]
    lines = bench.verdict(kept)
    shown = [["holds" if line.startswith("ok") else "missed", line[4:].strip()] for line in lines]
    text = grid(["", "promise and what was counted"], shown)
    counts: dict[str, list[bool]] = {}
    for (promise, _, _), count in missing.items():
        counts.setdefault(promise, []).append(count > 0)
    left = [f"`{p}` ({sum(c)} of {len(c)} cases)" for p, c in counts.items() if any(c)]
    if left:
        text += f"\n\nStill to be run, or not whole yet: {', '.join(left)}."
    return text


def _experiment(name: str) -> str:
    """Return the tables of an experiment of the paper, or say that there are no rows of it."""
    folder = "infomax" if name == "infomax" else "paper"
    path = RESULTS / folder / f"{name}.csv"
    if not path.exists():
        return (
            f"There are no rows of `{name}` under `results/{folder}/` yet; `deminat paper {name} "
            f"--out results/{folder}` writes them, and this page shows them."
        )
    experiment = EXPERIMENTS[name]
    text = markdown(experiment.all_tables(read_rows(path)))
    return re.sub(r"^### (.*)$", r"**\1**", text, flags=re.MULTILINE)


def _claims() -> str:
    """Return what the paper says of its Gaussians beside what the rows say."""
    found = claims(read_rows(RESULTS / "paper" / "gaussian.csv"))
    lines = [[c.text, f"**{c.verdict}**", c.figures] for c in found]
    return grid(["the paper", "the rows", "figures"], lines)


TABLES: dict[str, Callable[[], str]] = {
    "bmi": _bmi,
    "bmi-bands": _bmi_bands,
    "bmi-tasks": _bmi_tasks,
    "highmi": _highmi,
    "checkpoints": _checkpoints,
    "trust": _trust,
    "paper-claims": _claims,
    **{
        f"{name}-verdict": lambda name=name: _verdict(name)
        for name in (
            *("bmi", "highmi", "gaussian", "cap", "alpha", "independent", "speed", "cells"),
            *("mixed", "conditional", "waiting", "infomax"),
        )
    },
    **{f"paper-{name}": lambda name=name: _experiment(name) for name in EXPERIMENTS},
}


class Rows(SphinxDirective):
    """Puts a table there."""

    required_arguments: ClassVar[int] = 1
    has_content: ClassVar[bool] = True

    def run(self) -> list[nodes.Node]:
        """Return the table as nodes."""
        for path in RESULTS.rglob("*.csv"):
            self.env.note_dependency(str(path))
        name = self.arguments[0]
        if name not in TABLES:
            raise self.error(f"no table {name}; there are {', '.join(TABLES)}")
        return self.parse_text_to_nodes(TABLES[name]())


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of the directive."""
    app.add_directive("rows", Rows)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
