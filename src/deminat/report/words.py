"""What a report says: sentences, facts, and a unit beside every number."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import printable
from ..results import ERROR_COVERS, Caution, MIResult, Unit, format_p, nats_to

__all__ = ["About", "Words"]

Fact = tuple[str, str]
_LEVEL = 0.05
_CERTAIN = 0.9995  # a correlation that would be printed as 1
_LONGEST = 200
_NONE = "none"
_SCALES = {
    "AsIs": "none",
    "RankToNormal": "each column by its ranks to a standard normal",
    "Robust": "median 0, 68% half-width 1, then asinh",
    "Standardize": "mean 0, standard deviation 1",
    "Views": "a robust scale and the ranks of each column side by side, and three lengths of a row",
}


@dataclass(frozen=True)
class About:
    """Where an answer comes from.

    Args:
        x: What to call x; by default its columns.
        y: What to call y.
        source: Where the data are from, such as the name of a file.
        options: How the question was asked, by name.
        command: The command that asks it again.
    """

    x: str = ""
    y: str = ""
    source: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    command: str = ""


@dataclass(frozen=True)
class Words:
    """The words of a report.

    Args:
        results: The answer, then what stands beside it.
        about: What the results do not know.
        unit: Of every information.
    """

    results: tuple[MIResult, ...]
    about: About
    unit: Unit

    @property
    def answer(self) -> MIResult:
        """The result that the report is about."""
        return self.results[0]

    @property
    def x(self) -> str:
        """What x is called."""
        return printable(self.about.x, _LONGEST) or _names(self._run.get("x"), "x")

    @property
    def y(self) -> str:
        """What y is called."""
        return printable(self.about.y, _LONGEST) or _names(self._run.get("y"), "y")

    @property
    def about_y(self) -> str:
        """What x tells about: y, or y beyond what is known already."""
        known = self._run.get("given")
        return f"{self.y} beyond what {_names(known, 'z')} tells" if known else self.y

    @property
    def title(self) -> str:
        """What the report is of."""
        known = self._run.get("given")
        return f"{self.x} and {self.y}" + (f" given {_names(known, 'z')}" if known else "")

    @property
    def headline(self) -> str:
        """The answer in a sentence."""
        mi = self.answer.mi
        if not math.isfinite(mi):
            return f"What knowing {self.x} tells you about {self.about_y} has no finite estimate."
        if round(nats_to(self.unit, mi), 3) <= 0:
            found = self.amount(mi)
            return f"Knowing {self.x} was not found to tell anything about {self.about_y}: {found}."
        return f"Knowing {self.x} tells you {self.amount(mi)} about {self.about_y}."

    @property
    def sentences(self) -> list[str]:
        """What goes with the answer."""
        return list(self._sentences())

    @property
    def facts(self) -> list[Fact]:
        """The numbers of the answer."""
        r = self.answer
        other: Unit = "bits" if self.unit == "nats" else "nats"
        found = [("estimate", f"{self.amount(r.mi)} ({_amount(r.mi, other)})")]
        if r.interval is not None:
            found.append(("95% interval", self.span(r.interval)))
        if r.lower_bound is not None:
            found.append(("at least", f"{self.amount(r.lower_bound)}, 95% sure"))
        found.append(("standard error", self.amount(r.standard_error)))
        if r.p_value is not None:
            found.append(("independence", format_p(r.p_value)))
        return [*found, ("pairs", f"{r.n:,} pairs")]

    @property
    def done(self) -> list[Fact]:
        """What was done to the data."""
        return [fact for fact in self._done() if fact[1]]

    @property
    def checks(self) -> list[Fact]:
        """What the run tells of itself."""
        return list(self._checks())

    @property
    def warnings(self) -> list[tuple[Caution, str]]:
        """What to know, each once, with the methods that it is about."""
        about: dict[Caution, list[str]] = {}
        for r in self.results:
            for caution in dict.fromkeys(r.warnings):
                about.setdefault(caution, []).append(r.method)
        return [(caution, ", ".join(methods)) for caution, methods in about.items()]

    @property
    def table(self) -> list[list[Fact]]:
        """The results beside each other, a row each."""
        return [self._row(r) for r in self.results]

    @property
    def folds(self) -> list[tuple[str, str, str]]:
        """Steps of each fold, and what its critic reads in new pairs and in its own."""
        told = self.answer.diagnostics
        if "fold_means" not in told:
            return []
        columns = told.get("steps", ()), told["fold_means"], told.get("training_means", ())
        return [
            (f"{steps:,} steps", self.amount(new), self.amount(own))
            for steps, new, own in zip(*columns, strict=False)
        ]

    @property
    def untaught(self) -> str:
        """Why there are no learning curves, where there are none."""
        steps = self.answer.diagnostics.get("steps")
        if not steps:
            return f"There are none: {self.answer.method} trains nothing."
        if not any(steps):
            return "There are none: the closed form was all that was needed."
        return "There are none: training went on to its end without looks at held-out pairs."

    @property
    def taught(self) -> str:
        """What the learning curves are of, where that is not the pair itself."""
        known = self._run.get("given")
        return f"They are of {self.x} with {self.y} and {_names(known, 'z')}. " if known else ""

    @property
    def carried(self) -> str:
        """Which pairs carry the information, where there is some."""
        if self.answer.half is None:
            return ""
        rows, nats = self.answer.top(1)
        return (
            f"Half of the information is in the {self.answer.half:.0%} of pairs that tell most, "
            f"and most is in row {rows[0]:,}, counted from 0: {self.amount(float(nats[0]))}."
        )

    @property
    def share_below(self) -> str:
        """How many pairs are less likely together than apart."""
        return f"{np.mean(self.answer.pointwise < 0):.0%}"

    @property
    def seed(self) -> str:
        """The seed, if it is known."""
        return str(self._run.get("seed", ""))

    @property
    def versions(self) -> str:
        """What it was computed with."""
        told = self._run.get("versions", {})
        return ", ".join(f"{name} {version}" for name, version in told.items())

    def amount(self, nats: float) -> str:
        """Return an information in the unit of the report."""
        return _amount(nats, self.unit)

    def span(self, ends: tuple[float, float]) -> str:
        """Return an interval of nats in the unit of the report."""
        low, high = (_number(end, self.unit) for end in ends)
        return f"{low} to {high} {self.unit}"

    @property
    def _run(self) -> dict[str, Any]:
        return dict(self.answer.diagnostics.get("run", {}))

    def _sentences(self) -> Iterator[str]:
        r = self.answer
        if r.interval is not None:
            yield f"It is between {self.span(r.interval).replace(' to ', ' and ')}, 95% sure."
        if r.lower_bound is not None and r.lower_bound > 0:
            yield f"It is at least {self.amount(r.lower_bound)}, 95% sure for any distribution."
        if r.interval is None:
            yield f"The standard error is {self.amount(r.standard_error)} ({ERROR_COVERS})."
        if r.p_value is not None:
            shown = "is shown" if r.p_value < _LEVEL else "is not shown"
            beyond = ", by a test that sees what the critics do not" if r.mi <= 0 else ""
            told = beyond if r.p_value < _LEVEL else ""
            yield f"Dependence {shown}{told} ({format_p(r.p_value)})."
        correlation = math.sqrt(-math.expm1(-2 * r.mi)) if r.mi > 0 else 0.0
        if 0 < correlation < _CERTAIN:
            yield f"Normal variables of correlation {correlation:.2f} tell as much of each other."

    def _done(self) -> Iterator[Fact]:
        told, run = self.answer.diagnostics, self._run
        yield "data", printable(self.about.source, _LONGEST)
        yield "pairs", _pairs(self.answer.n, run.get("dropped"))
        yield "x", _side(run.get("x"))
        yield "y", _side(run.get("y"))
        yield "known already", _side(run.get("given"))
        yield "rows", _rows(run)
        yield "method", self.answer.method
        yield "recipe", self.answer.recipe
        yield "preprocessing", _preprocessing(told)
        yield "folds", _folds(told)
        if correction := told.get("correction"):
            yield "correction", f"{self.amount(correction)} for what chance cost the critics"
        for name, value in self.about.options.items():
            yield printable(name), printable(value, _LONGEST)

    def _checks(self) -> Iterator[Fact]:
        told = self.answer.diagnostics
        if "calibration_error" in told:
            yield "calibration", f"off by {told['calibration_error']:.1%} on average"
        if told.get("normaliser_checkable"):
            z, error = told.get("normaliser", math.nan), told.get("normaliser_error", math.nan)
            yield "normaliser", f"{z:.3f}, s.e. {error:.3f}; that of a log ratio is 1, without unit"
        elif "normaliser_checkable" in told:
            yield "normaliser", "not checkable at so much information from so few pairs"
        if "held_out_loss" in told:
            yield "held-out loss", self.amount(told["held_out_loss"])

    def _row(self, r: MIResult) -> list[Fact]:
        bound = _NONE if r.lower_bound is None else self.amount(r.lower_bound)
        return [
            ("method", r.method),
            ("estimate", self.amount(r.mi)),
            ("95% interval", _NONE if r.interval is None else self.span(r.interval)),
            ("standard error", self.amount(r.standard_error)),
            ("at least", bound),
            ("independence", _NONE if r.p_value is None else format_p(r.p_value)),
        ]


def _number(nats: float, unit: Unit) -> str:
    value = nats_to(unit, nats)
    if not math.isfinite(value):
        return "no finite number of"
    return f"{round(value, 3) + 0.0:.3f}"  # no -0.000


def _amount(nats: float, unit: Unit) -> str:
    return f"{_number(nats, unit)} {unit}"


def _names(side: dict[str, Any] | None, otherwise: str) -> str:
    """Return the names of the columns of one side, or what to call it without."""
    if not side or not side["names"]:
        return otherwise
    names = [printable(name) for name in side["names"]]
    more = side["shape"][0] - len(names)
    return _listed([*names, *([f"{more} more"] if more > 0 else [])])


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _side(side: dict[str, Any] | None) -> str:
    if not side:
        return ""
    if len(side["shape"]) > 1:
        return f"images of {' x '.join(map(str, side['shape']))} pixels"
    (count,) = side["shape"]
    columns = "1 column" if count == 1 else f"{count:,} columns"
    names = _names(side, "")
    return f"{columns}: {names}" if names else columns


def _pairs(n: int, dropped: int | None) -> str:
    if dropped is None:
        return f"{n:,} pairs"
    return f"{n:,} pairs; {dropped:,} pairs dropped for missing values"


def _rows(run: dict[str, Any]) -> str:
    if run.get("groups"):
        return f"in {run['groups']:,} groups, which are never split nor paired within"
    if run.get("gap") is not None:
        return f"in the order of time: split by blocks, with gaps of {run['gap']:,} rows"
    return "taken for independent: no groups, no order" if run else ""


def _preprocessing(told: Any) -> str:
    name = told.get("scaling", "")
    words = _SCALES.get(name, name)
    return f"{words}; fitted on training rows only" if words and "fold_means" in told else words


def _folds(told: Any) -> str:
    count = len(told.get("fold_means", ()))
    return f"{count} folds; each pair is scored by a critic that never saw it" if count else ""
