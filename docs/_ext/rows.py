"""Tables made of the rows under `results/` while the documentation is built.

    ```{rows} bmi
    ```

inserts the table called `bmi`. Verdicts are those of `deminat bench`; where rows are missing, the
table says so.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from deminat.runtime.rowstore import Row, read_csv
from deminat.studies.bench import BENCHES
from deminat.studies.bench.given import SHAPES, measurements
from deminat.studies.bench.runner import grouped
from deminat.studies.paper.claims import claims
from deminat.studies.paper.experiments import EXPERIMENTS, read_rows
from deminat.studies.paper.tables import grid, markdown

__all__ = ["TABLES", "read", "setup"]

RESULTS = Path(__file__).parents[2] / "results"

# Of experts, by a word of their names; a network on a baseline is a network.
_KINDS = (
    *("network", "curve", "mixture", "elliptical", "table", "pairs of columns", "classes"),
    *("copula", "nothing"),
)
_BANDS = {(0.0, 0.5): "under half a nat", (0.5, 1.5): ".5 to 1.5 nats", (1.5, 9.0): "above"}


def read(name: str) -> list[Row]:
    """Return the committed rows of a bench."""
    return read_csv(RESULTS / f"{name}.csv")


def _verdict(name: str) -> str:
    """Return the verdict of a bench on its rows, line by line."""
    return _verdict_grid(BENCHES[name].verdict(read(name)), "what the rows say")


def _verdict_grid(lines: Sequence[str], head: str) -> str:
    marks = {"ok": "holds", "MISS": "missed"}
    split = [(marks.get(line[:4].strip(), ""), line[4:].strip()) for line in lines]
    return grid(["", head], split)


def _bmi() -> str:
    rows = read("bmi")
    lines = []
    for (n,), own in sorted(grouped(rows, "n").items()):
        auto, paper = ([r for r in own if r["preset"] == p] for p in ("auto", "paper"))
        task, error, oracle = _worst(auto)
        lines.append(
            [
                f"{n:,}",
                f"**{_mean_error(auto):.4f}**",
                f"{_mean_error(auto, 'oracle'):.4f}",
                f"{_mean_error(paper):.3f}" if paper else "not run",
                f"`{task}`, {error:+.3f} (oracle {oracle:+.3f})",
                f"{np.mean([r['seconds'] / r['jobs'] for r in auto]):.0f} s",
                f"{len(auto)} + {len(paper)}",
            ]
        )
    head = "pairs", "default", "oracle", "`paper`", "farthest off by default", "time", "rows"
    return grid(head, lines)


def _mean_error(rows: Sequence[Row], key: str = "estimate") -> float:
    return float(np.mean([abs(r[key] - r["truth"]) for r in rows]))


def _worst(rows: Sequence[Row]) -> tuple[str, float, float]:
    """Return the task whose mean over seeds has the largest error, that error and the oracle's."""
    means = {task: _means(own) for (task,), own in grouped(rows, "task").items()}
    errors = {task: (mi - truth, oracle - truth) for task, (truth, mi, oracle) in means.items()}
    worst = max(errors, key=lambda task: abs(errors[task][0]))
    return worst, *errors[worst]


def _means(rows: Sequence[Row]) -> tuple[float, ...]:
    """Return the means of the truth, the estimates and the oracle."""
    keys = "truth", "estimate", "oracle"
    return tuple(float(np.mean([row[key] for row in rows])) for key in keys)


def _bmi_bands() -> str:
    """Return errors of the default recipe by true information and number of pairs."""
    rows = [r for r in read("bmi") if r["preset"] == "auto"]
    sizes = sorted({r["n"] for r in rows})
    lines = []
    for (low, high), name in _BANDS.items():
        band = [r for r in rows if low <= r["truth"] < high]
        line = [f"{name} ({len({r['task'] for r in band})} tasks)"]
        for n in sizes:
            own = [r for r in band if r["n"] == n]
            _, error, _ = _worst(own)
            line.append(f"{_mean_error(own):.3f}, farthest {error:+.3f}")
        lines.append(line)
    return grid(["information", *(f"{n:,} pairs" for n in sizes)], lines)


def _bmi_tasks() -> str:
    """Return the mean error of each task at the largest size, the largest first."""
    rows = [r for r in read("bmi") if r["preset"] == "auto"]
    most = max(r["n"] for r in rows)
    tasks = grouped([row for row in rows if row["n"] == most], "task")
    means = {task: _means(own) for (task,), own in tasks.items()}
    ordered = sorted(means.items(), key=lambda item: -abs(item[1][1] - item[1][0]))
    lines = [
        [f"`{task}`", f"{truth:.3f}", f"{mi:.3f}", f"{mi - truth:+.3f}", f"{oracle - truth:+.3f}"]
        for task, (truth, mi, oracle) in ordered
    ]
    return grid(["task", "truth", "estimate", "error", "oracle's error"], lines)


def _highmi() -> str:
    lines = []
    for (family,), rows in grouped(read("highmi"), "family").items():
        means = {cell: _means(own) for cell, own in grouped(rows, "task", "n").items()}
        errors = {cell: abs(mi - truth) / (truth or 1) for cell, (truth, mi, _) in means.items()}
        (task, n), (truth, mi, oracle) = max(means.items(), key=lambda item: errors[item[0]])
        share = f"{mi / truth - 1:+.1%}" if truth else f"{mi:+.4f} nats"
        lines.append(
            [
                family,
                f"{len(means)}",
                f"`{task}`, {n:,} pairs",
                f"{truth:.2f}",
                f"{mi:.3f}",
                f"{oracle:.3f}",
                share,
            ]
        )
    head = "family", "cells", "farthest off", "truth", "mean estimate", "oracle", "off by"
    return grid(head, lines)


def _wild() -> str:
    """Return errors, intervals and the heaviest experts of each family, both halves apart."""
    rows = [r for r in read("wild") if r["preset"] == "auto" and r["estimate"] is not None]
    lines = []
    for (half, family), own in sorted(grouped(rows, "half", "family").items()):
        errors = [(r["estimate"] - r["truth"]) / max(1, r["truth"]) for r in own]
        perfect = [(r["oracle"] - r["truth"]) / max(1, r["truth"]) for r in own]
        far = int(np.argmax(np.abs(errors)))
        judged = [r for r in own if r["n"] >= 1_000]
        held = sum(r["low"] <= r["truth"] <= r["high"] for r in judged)
        lines.append(
            [
                half,
                family,
                f"{len(own)}",
                f"{np.mean(np.abs(errors)):.3f}",
                f"{np.mean(np.abs(perfect)):.3f}",
                f"`{own[far]['task']}` {errors[far]:+.3f}",
                f"{held} of {len(judged)}",
                _heaviest([r["recipe"] for r in own]),
            ]
        )
    head = "half", "family", "rows", "error", "oracle", "farthest", "intervals hold", "who weighs"
    return grid(head, lines)


def _heaviest(recipes: Sequence[str]) -> str:
    """Return the kinds of experts with the largest weights, as means over recipes."""
    weights: dict[str, float] = {}
    for recipe in recipes:
        for weight, words in re.findall(r"(\d+)% ([^%]+?)(?:, (?=\d+%)|$)", recipe):
            kind = next((kind for kind in _KINDS if kind in words), words)
            weights[kind] = weights.get(kind, 0.0) + float(weight) / len(recipes)
    largest = sorted(weights, key=lambda kind: -weights[kind])[:2]
    return ", ".join(f"{kind} {weights[kind]:.0f}%" for kind in largest) or "by likelihood"


def _trust() -> str:
    """Return the verdict on promises whose rows are complete, and which are not."""
    rows, bench = read("trust"), BENCHES["trust"]
    done = {(r["promise"], r["case"], r["n"], r["batch"]) for r in rows if r["seed"] == 0}
    missing: dict[tuple[str, str, int], int] = {}
    for cell in bench.cells([0]):
        key = cell["promise"], cell["case"], cell["n"]
        missing[key] = missing.get(key, 0) + ((*key, cell["batch"]) not in done)
    complete = [r for r in rows if missing.get((r["promise"], r["case"], r["n"])) == 0]
    text = _verdict_grid(bench.verdict(complete), "promise and what was counted")
    counts: dict[str, list[bool]] = {}
    for (promise, _, _), count in missing.items():
        counts.setdefault(promise, []).append(count > 0)
    left = [f"`{p}` ({sum(c)} of {len(c)} cases)" for p, c in counts.items() if any(c)]
    if left:
        text += f"\n\nNot run yet, or not completely: {', '.join(left)}."
    return text


def _given() -> str:
    """Return false alarms and power of each test given z, and its CPU-seconds."""
    lines = []
    for (n, family), by_method in measurements(read("given")).items():
        for method, found in by_method.items():
            powers = [f"{found.powers[shape]:.2f}" for shape in SHAPES if shape in found.powers]
            level = f"{found.level:.1%} of {found.runs}"
            lines.append([family, f"{n:,}", method, level, *powers, f"{found.cpu:.3f} s"])
    head = "family", "rows", "test", "false alarms", *SHAPES[1:], "CPU"
    return grid(head, lines)


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
    """Return the paper's claims about its Gaussians, and whether the rows agree."""
    found = claims(read_rows(RESULTS / "paper" / "gaussian.csv"))
    lines = [[c.text, f"**{c.verdict}**", c.figures] for c in found]
    return grid(["the paper", "the rows", "figures"], lines)


TABLES: dict[str, Callable[[], str]] = {
    "bmi": _bmi,
    "bmi-bands": _bmi_bands,
    "bmi-tasks": _bmi_tasks,
    "highmi": _highmi,
    "wild": _wild,
    "trust": _trust,
    "given": _given,
    "paper-claims": _claims,
    **{
        f"{name}-verdict": lambda name=name: _verdict(name)
        for name in (
            *("bmi", "highmi", "cap", "alpha", "independent", "speed", "cells"),
            *(
                "mixed",
                "conditional",
                "waiting",
                "infomax",
                "wild",
                "plasmode",
                "power",
                "pairs",
                "selection",
                "given",
            ),
        )
    },
    **{f"paper-{name}": lambda name=name: _experiment(name) for name in EXPERIMENTS},
}


class Rows(SphinxDirective):
    """Inserts a table."""

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
    """Register the directive."""
    app.add_directive("rows", Rows)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
