"""The text of a report: sentences and facts, with a unit beside every number."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..errors import printable
from ..records import RunDescription, SideDescription
from ..results import ERROR_COVERS, Caution, MIResult, Unit, format_p, nats_to

__all__ = ["About", "Words"]

Fact = tuple[str, str]
_OTHER: dict[Unit, Unit] = {"nats": "bits", "bits": "nats"}
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
    def run(self) -> RunDescription | None:
        """The data and settings behind the answer."""
        return self.answer.diagnostics.run

    def title(self) -> str:
        """Return what the report is about."""
        x, y, z = self._names
        return f"{x} and {y}" + (f" given {z}" if z else "")

    def headline(self) -> str:
        """Return the answer in a sentence."""
        x, y, z = self._names
        about, mi = f"{y} beyond what {z} tells" if z else y, self.answer.mi
        if not math.isfinite(mi):
            return f"There is no finite estimate of what {x} tells you about {about}."
        if round(nats_to(self.unit, mi), 3) <= 0:
            return f"No information about {about} was found in {x}: {self.amount(mi)}."
        return f"Knowing {x} tells you {self.amount(mi)} about {about}."

    def sentences(self) -> Iterator[str]:
        """Yield what follows the headline: interval, lower bound, test, an example."""
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

    def facts(self) -> list[Fact]:
        """Return the numbers of the answer."""
        r, bound = self.answer, self.amount(self.answer.lower_bound)
        return _known(
            ("estimate", f"{self.amount(r.mi)} ({self.amount(r.mi, _OTHER[self.unit])})"),
            ("95% interval", self.span(r.interval)),
            ("at least", bound and f"{bound}, with 95% confidence"),
            ("standard error", self.amount(r.standard_error)),
            ("independence", _p_value(r)),
            ("pairs", f"{r.n:,} pairs"),
        )

    def table(self) -> list[list[Fact]]:
        """Return the results beside each other, a row each."""
        return [
            [
                ("method", r.method),
                ("estimate", self.amount(r.mi)),
                ("95% interval", self.span(r.interval) or _NONE),
                ("standard error", self.amount(r.standard_error)),
                ("at least", self.amount(r.lower_bound) or _NONE),
                ("independence", _p_value(r) or _NONE),
            ]
            for r in self.results
        ]

    def done(self) -> list[Fact]:
        """Return what was done to the data."""
        d, run = self.answer.diagnostics, self.run
        dropped = f"; {run.dropped:,} pairs dropped for missing values" if run else ""
        half = "added: half the gap between training and held-out scores"
        if d.neighbours is not None:
            half += ", or what nearest neighbours tell beyond the scores"
        scale, folds = _SCALES.get(d.scaling or "", d.scaling or ""), len(d.fold_means or ())
        fitted = "; fitted to training rows only" if scale and folds else ""
        apart = "critics score only pairs they were not trained on"
        return _known(
            ("data", printable(self.about.source, _LONGEST)),
            ("pairs", f"{self.answer.n:,} pairs{dropped}"),
            *zip(("x", "y", "given"), map(_side, self._sides), strict=True),
            ("rows", _rows(run)),
            ("method", self.answer.method),
            ("recipe", self.answer.recipe),
            ("preprocessing", scale + fitted),
            ("folds", f"{folds} folds; {apart}" if folds else ""),
            ("correction", f"{self.amount(d.correction)} {half}" if d.correction else ""),
            *((printable(k), printable(v, _LONGEST)) for k, v in self.about.options.items()),
        )

    def checks(self) -> list[Fact]:
        """Return diagnostics of the classifier."""
        d, off, normaliser = self.answer.diagnostics, "", ""
        if d.calibration_error is not None:
            off = f"probabilities are off by {d.calibration_error:.1%} on average"
        if d.normaliser_checkable and d.normaliser is not None:
            error = math.nan if d.normaliser_error is None else d.normaliser_error
            number = f"{d.normaliser:.3f}, s.e. {error:.3f} (no unit)"
            normaliser = f"{number}; it is 1 for a true log ratio"
        elif d.normaliser_checkable is not None:
            normaliser = "cannot be checked: too few pairs for so much information"
        loss = self.amount(d.held_out_loss)
        return _known(("calibration", off), ("normaliser", normaliser), ("held-out loss", loss))

    def warnings(self) -> list[tuple[Caution, str]]:
        """Return all warnings, each once, with the methods that it is about."""
        about: dict[Caution, list[str]] = {}
        for r in self.results:
            for caution in dict.fromkeys(r.warnings):
                about.setdefault(caution, []).append(r.method)
        return [(caution, ", ".join(methods)) for caution, methods in about.items()]

    def folds(self) -> list[tuple[str, str, str]]:
        """Return the steps of each fold, and its mean scores of held-out and of training pairs."""
        d = self.answer.diagnostics
        columns = d.steps or (), d.fold_means or (), d.training_means or ()
        return [
            (f"{steps:,} steps", self.amount(new), self.amount(own))
            for steps, new, own in zip(*columns, strict=False)
        ]

    def no_curves(self) -> str:
        """Say why there are no learning curves, where there are none."""
        steps = self.answer.diagnostics.steps
        if not steps:
            return f"There are none: {self.answer.method} trains nothing."
        if not any(steps):
            return "There are none: the baseline in closed form was used without a network."
        return "There are none: training ran without evaluations on held-out pairs."

    def curves(self) -> str:
        """Say what the learning curves are of, where that is not the pair itself."""
        x, y, z = self._names
        return f"The curves are of {x} with {y} and {z}. " if z else ""

    def concentration(self) -> str:
        """Say which pairs hold the information; empty where there is none."""
        if self.answer.half is None:
            return ""
        (row,), (nats,) = self.answer.top(1)
        return (
            f"Half of the information is in the {self.answer.half:.0%} of pairs with the highest "
            f"log ratios. Row {row:,}, counted from 0, has the highest: {self.amount(float(nats))}."
        )

    def amount(self, nats: float | None, unit: Unit | None = None) -> str:
        """Return an amount of information, by default in the unit of the report; "" of `None`."""
        unit = unit or self.unit
        return "" if nats is None else f"{_number(nats, unit)} {unit}"

    def span(self, ends: tuple[float, float] | None) -> str:
        """Return an interval of nats in the unit of the report; "" of `None`."""
        if ends is None:
            return ""
        if not all(map(math.isfinite, ends)):
            return "not finite"
        low, high = (_number(end, self.unit) for end in ends)
        return f"{low} to {high} {self.unit}"

    @property
    def _sides(self) -> tuple[SideDescription | None, ...]:
        return (self.run.x, self.run.y, self.run.given) if self.run else (None, None, None)

    @property
    def _names(self) -> tuple[str, str, str]:
        """What x, y and z are called; z is empty if nothing is given."""
        x, y, z = self._sides
        return (
            printable(self.about.x, _LONGEST) or _names(x, "x"),
            printable(self.about.y, _LONGEST) or _names(y, "y"),
            _names(z, "z") if z else "",
        )


def _known(*facts: Fact) -> list[Fact]:
    return [fact for fact in facts if fact[1]]


def _p_value(result: MIResult) -> str:
    return "" if result.p_value is None else format_p(result.p_value)


def _number(nats: float, unit: Unit) -> str:
    value = nats_to(unit, nats)
    if not math.isfinite(value):
        return "no finite number of"
    return f"{round(value, 3) + 0.0:.3f}"  # no -0.000


def _names(side: SideDescription | None, otherwise: str) -> str:
    """Return the names of the columns of one side, or `otherwise` if they have none."""
    if side is None or not side.names:
        return otherwise
    more = side.shape[0] - len(side.names)
    *most, last = *map(printable, side.names), *([f"{more} more"] if more > 0 else [])
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


def _rows(run: RunDescription | None) -> str:
    if run is None:
        return ""
    if run.groups:
        return f"in {run.groups:,} groups; rows of one group are neither split nor unpaired samples"
    if run.gap is not None:
        return f"in the order of time: split into blocks, with gaps of {run.gap:,} rows"
    return "assumed independent: no groups, no order"
