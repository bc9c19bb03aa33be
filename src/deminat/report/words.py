"""The text of a report: sentences and facts, with a unit beside every number."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import printable
from ..records import Diagnostics, RunDescription, SideDescription
from ..results import ERROR_COVERS, Caution, MIResult, Unit, format_p, nats_to

__all__ = ["About", "Words"]

Fact = tuple[str, str]
_LEVEL = 0.05  # of the test of independence
_CERTAIN = 0.9995  # a correlation that would be printed as 1
_LONGEST = 200  # characters of a name
_NONE = "none"
_SCALES = {
    "Identity": "none",
    "RankToNormal": "each column by its ranks to a standard normal",
    "Robust": "median 0, 68% half-width 1, then asinh",
    "Standardize": "mean 0, standard deviation 1",
    "Views": "a robust scale and the ranks of each column, and three norms of each row",
}


@dataclass(frozen=True)
class About:
    """Where a result comes from.

    Args:
        x: What to call x; by default the names of its columns.
        y: What to call y.
        source: Where the data are from, such as the name of a file.
        options: Settings of the run, by name.
        command: The command that repeats the run.
    """

    x: str = ""
    y: str = ""
    source: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    command: str = ""


@dataclass(frozen=True)
class Words:
    """The text of a report.

    Args:
        results: The answer, then results to compare it with.
        about: Where the results come from.
        unit: Of all amounts of information.
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
        return printable(self.about.x, _LONGEST) or _names(self._sides[0], "x")

    @property
    def y(self) -> str:
        """What y is called."""
        return printable(self.about.y, _LONGEST) or _names(self._sides[1], "y")

    @property
    def about_y(self) -> str:
        """What x is informative about: y, or y beyond what is given."""
        known = self._given
        return f"{self.y} beyond what {_names(known, 'z')} tells" if known else self.y

    @property
    def title(self) -> str:
        """What the report is about."""
        known = self._given
        return f"{self.x} and {self.y}" + (f" given {_names(known, 'z')}" if known else "")

    @property
    def headline(self) -> str:
        """The answer in a sentence."""
        mi = self.answer.mi
        if not math.isfinite(mi):
            return f"There is no finite estimate of what {self.x} tells you about {self.about_y}."
        if round(nats_to(self.unit, mi), 3) <= 0:
            return f"No information about {self.about_y} was found in {self.x}: {self.amount(mi)}."
        return f"Knowing {self.x} tells you {self.amount(mi)} about {self.about_y}."

    @property
    def sentences(self) -> list[str]:
        """What follows the headline: interval, lower bound, test, an example."""
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
            found.append(("at least", f"{self.amount(r.lower_bound)}, with 95% confidence"))
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
        """Diagnostics of the classifier."""
        return list(self._checks())

    @property
    def warnings(self) -> list[tuple[Caution, str]]:
        """All warnings, each once, with the methods that it is about."""
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
        """Steps of each fold, and its mean scores of held-out and of training pairs."""
        d = self.answer.diagnostics
        columns = d.steps or (), d.fold_means or (), d.training_means or ()
        return [
            (f"{steps:,} steps", self.amount(new), self.amount(own))
            for steps, new, own in zip(*columns, strict=False)
        ]

    @property
    def no_curves(self) -> str:
        """Why there are no learning curves, where there are none."""
        steps = self.answer.diagnostics.steps
        if not steps:
            return f"There are none: {self.answer.method} trains nothing."
        if not any(steps):
            return "There are none: the baseline in closed form was used without a network."
        return "There are none: training ran without evaluations on held-out pairs."

    @property
    def curves(self) -> str:
        """What the learning curves are of, where that is not the pair itself."""
        known = self._given
        if known is None:
            return ""
        return f"The curves are of {self.x} with {self.y} and {_names(known, 'z')}. "

    @property
    def concentration(self) -> str:
        """Which pairs hold the information; empty where there is none."""
        if self.answer.half is None:
            return ""
        (row,), (nats,) = self.answer.top(1)
        return (
            f"Half of the information is in the {self.answer.half:.0%} of pairs with the highest "
            f"log ratios. Row {row:,}, counted from 0, has the highest: {self.amount(float(nats))}."
        )

    @property
    def share_below(self) -> str:
        """The share of pairs that are less likely than under independence."""
        return f"{np.mean(self.answer.pointwise < 0):.0%}"

    @property
    def seed(self) -> str:
        """The seed; empty if it is not known."""
        return "" if self._run is None else str(self._run.seed)

    @property
    def versions(self) -> str:
        """Versions of the software."""
        versions = self._run.versions if self._run else {}
        return ", ".join(f"{name} {version}" for name, version in versions.items())

    def amount(self, nats: float) -> str:
        """Return an amount of information in the unit of the report."""
        return _amount(nats, self.unit)

    def span(self, ends: tuple[float, float]) -> str:
        """Return an interval of nats in the unit of the report."""
        if not all(map(math.isfinite, ends)):
            return "not finite"
        low, high = (_number(end, self.unit) for end in ends)
        return f"{low} to {high} {self.unit}"

    @property
    def _run(self) -> RunDescription | None:
        return self.answer.diagnostics.run

    @property
    def _sides(self) -> tuple[SideDescription | None, ...]:
        run = self._run
        return (None, None, None) if run is None else (run.x, run.y, run.given)

    @property
    def _given(self) -> SideDescription | None:
        return self._sides[2]

    def _sentences(self) -> Iterator[str]:
        r = self.answer
        if r.interval is not None:
            yield f"The 95% interval is {self.span(r.interval)}."
        if r.lower_bound is not None and r.lower_bound > 0:
            amount = self.amount(r.lower_bound)
            yield f"It is at least {amount}, with 95% confidence for any distribution."
        if r.interval is None:
            yield f"The standard error is {self.amount(r.standard_error)} ({ERROR_COVERS})."
        if r.p_value is not None:
            is_shown = r.p_value < _LEVEL
            test = ", by a test that is more sensitive than the estimate"
            how = test if is_shown and r.mi <= 0 else ""
            yield f"Dependence is {'' if is_shown else 'not '}shown{how} ({format_p(r.p_value)})."
        correlation = math.sqrt(-math.expm1(-2 * r.mi)) if r.mi > 0 else 0.0
        if 0 < correlation < _CERTAIN:
            yield f"Two normal variables of correlation {correlation:.2f} share as much."

    def _done(self) -> Iterator[Fact]:
        d, run = self.answer.diagnostics, self._run
        yield "data", printable(self.about.source, _LONGEST)
        yield "pairs", _pairs(self.answer.n, None if run is None else run.dropped)
        for name, side in zip(("x", "y", "given"), self._sides, strict=True):
            yield name, _side(side)
        yield "rows", _rows(run)
        yield "method", self.answer.method
        yield "recipe", self.answer.recipe
        yield "preprocessing", _preprocessing(d)
        yield "folds", _folds(d)
        if d.correction:
            half = "added: half the gap between training and held-out scores"
            yield "correction", f"{self.amount(d.correction)} {half}"
        for name, value in self.about.options.items():
            yield printable(name), printable(value, _LONGEST)

    def _checks(self) -> Iterator[Fact]:
        d = self.answer.diagnostics
        if d.calibration_error is not None:
            yield (
                "calibration",
                f"probabilities are off by {d.calibration_error:.1%} on average",
            )
        if d.normaliser_checkable and d.normaliser is not None:
            error = math.nan if d.normaliser_error is None else d.normaliser_error
            yield (
                "normaliser",
                f"{d.normaliser:.3f}, s.e. {error:.3f} (no unit); it is 1 for a true log ratio",
            )
        elif d.normaliser_checkable is not None:
            yield "normaliser", "cannot be checked: too few pairs for so much information"
        if d.held_out_loss is not None:
            yield "held-out loss", self.amount(d.held_out_loss)

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


def _names(side: SideDescription | None, otherwise: str) -> str:
    """Return the names of the columns of one side, or `otherwise` if they have none."""
    if side is None or not side.names:
        return otherwise
    names = [printable(name) for name in side.names]
    more = side.shape[0] - len(names)
    return _listed([*names, *([f"{more} more"] if more > 0 else [])])


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _side(side: SideDescription | None) -> str:
    if side is None:
        return ""
    if len(side.shape) > 1:
        return f"images of {' x '.join(map(str, side.shape))} pixels"
    (count,) = side.shape
    columns = "1 column" if count == 1 else f"{count:,} columns"
    names = _names(side, "")
    return f"{columns}: {names}" if names else columns


def _pairs(n: int, dropped: int | None) -> str:
    if dropped is None:
        return f"{n:,} pairs"
    return f"{n:,} pairs; {dropped:,} pairs dropped for missing values"


def _rows(run: RunDescription | None) -> str:
    if run is None:
        return ""
    if run.groups:
        return f"in {run.groups:,} groups; rows of one group are neither split nor unpaired samples"
    if run.gap is not None:
        return f"in the order of time: split into blocks, with gaps of {run.gap:,} rows"
    return "assumed independent: no groups, no order"


def _preprocessing(d: Diagnostics) -> str:
    words = _SCALES.get(d.scaling or "", d.scaling or "")
    return f"{words}; fitted to training rows only" if words and d.fold_means else words


def _folds(d: Diagnostics) -> str:
    count = len(d.fold_means or ())
    return f"{count} folds; critics score only pairs they were not trained on" if count else ""
