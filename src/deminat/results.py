r"""Results: a number with its unit, its error, its warnings and the diagnostics of its run.

Inside the library all information is in nats. One nat is $1 / \ln 2 \approx 1.443$ bits.
"""

import html
import math
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from .records import Diagnostics, plain

if TYPE_CHECKING:
    from .estimators.fitted import FittedModel

__all__ = [
    "ERROR_COVERS",
    "Caution",
    "IndependenceResult",
    "MIResult",
    "Unit",
    "format_p",
    "nats_to",
]

Unit = Literal["nats", "bits"]

ERROR_COVERS = "spread over pairs; bias and training error not included"


@dataclass(frozen=True)
class Caution:
    """Something to know before trusting a result.

    Args:
        code: A short stable word, such as `"duplicates"`.
        message: What was seen, in a sentence.
        advice: What to do about it.
    """

    code: str
    message: str
    advice: str

    def __str__(self) -> str:
        return f"{self.code}: {self.message}. {self.advice}."


def nats_to(unit: Unit, nats: float) -> float:
    """Return `nats` of information in `unit`."""
    if unit not in ("nats", "bits"):
        raise ValueError(f'unit must be "nats" or "bits", got {unit!r}')
    return nats / math.log(2) if unit == "bits" else nats


@dataclass(frozen=True)
class MIResult:
    """An estimate of mutual information.

    Args:
        mi: The estimate, in nats. It may be slightly negative: MI never is, its estimates are.
        standard_error: Standard error of `mi`, in nats. It covers the spread over the pairs
            that were scored. It does not see the error of training, so it is not a confidence
            interval for the true MI.
        n: Number of pairs scored.
        method: Name of the estimator.
        pointwise: Log ratio of each pair, in nats, (n,), in the order of the input. Pairs dropped
            by `nan="omit"` are left out. Its mean is `mi`.
        warnings: What to know before trusting the number.
        diagnostics: Further figures of the run.
        interval: 95% interval of the true MI, in nats. It allows for sampling noise and for
            training error. `None` if there is none.
        p_value: Of independence, by permutation, exact except for time series; `None` if not
            tested.
        lower_bound: The MI is at least this many nats, with 95% confidence, for any distribution
            of independent rows or groups; `None` if there is none.
        model: What was fitted, for `log_ratio` and `save`; `None` if it was not stored. It is
            neither shown nor compared nor pickled.
        rows: (n,) row numbers of the pairs in the input, counted from 0; `None` if all.
    """

    mi: float
    standard_error: float
    n: int
    method: str
    pointwise: NDArray[np.float64] = field(repr=False, compare=False)
    warnings: tuple[Caution, ...] = ()
    diagnostics: Diagnostics = field(default_factory=Diagnostics, repr=False, compare=False)
    interval: tuple[float, float] | None = None
    p_value: float | None = None
    lower_bound: float | None = None
    model: "FittedModel | None" = field(default=None, repr=False, compare=False)
    rows: NDArray[np.int64] | None = field(default=None, repr=False, compare=False)

    @property
    def bits(self) -> float:
        """The estimate in bits."""
        return nats_to("bits", self.mi)

    @property
    def recipe(self) -> str:
        """What was chosen for these data, in words; empty where there was nothing to choose."""
        chosen = Counter(self.diagnostics.recipe or ())
        if not chosen:
            return ""
        (words, count), folds = chosen.most_common(1)[0], chosen.total()
        return words if folds == 1 else f"{words} ({count} of {folds} folds)"

    def top(self, k: int = 10) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the k rows of the input with the highest log ratios, and these in nats."""
        most = np.argsort(-self.pointwise, kind="stable")[: max(0, k)]
        return most if self.rows is None else self.rows[most], self.pointwise[most]

    @property
    def half(self) -> float | None:
        """The smallest share of the pairs whose log ratios sum to half of the information.

        `None` where the estimate is within sampling noise of 0.
        """
        total = np.cumsum(-np.sort(-self.pointwise))
        if not (2 * self.standard_error < self.mi < math.inf and total[-1] > 0):
            return None
        return float((np.argmax(total >= total[-1] / 2) + 1) / len(total))

    def describe(self, unit: Unit = "nats") -> str:
        """Return one readable line, in `unit`."""
        mi = round(nats_to(unit, self.mi), 3) + 0.0  # no -0.000
        spread = f"s.e. {nats_to(unit, self.standard_error):.3f} ({ERROR_COVERS})"
        if self.interval is not None:
            low, high = (nats_to(unit, nats) for nats in self.interval)
            spread = f"95% interval [{low:.3f}, {high:.3f}]"
        line = f"{mi:.3f} {unit}  {spread}"
        if self.p_value is not None:
            line += f"  {format_p(self.p_value)}"
        if self.lower_bound is not None:
            line += f"  at least {nats_to(unit, self.lower_bound):.3f}"
        return f"{line}  n={self.n}  {self.method}{_codes(self.warnings)}"

    def __str__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        bound, ends = self.lower_bound, self.interval
        rows = [
            ("mutual information", f"{self.mi:.3f} nats ({self.bits:.3f} bits)"),
            ("standard error", f"{self.standard_error:.3f} nats ({ERROR_COVERS})"),
            ("95% interval", f"{ends[0]:.3f} to {ends[1]:.3f} nats" if ends else None),
            ("independence", None if self.p_value is None else format_p(self.p_value)),
            ("at least", None if bound is None else f"{bound:.3f} nats (95% confidence)"),
            ("pairs", f"{self.n}"),
            ("method", self.method),
            ("recipe", self.recipe or None),
            *((w.code, f"{w.message}. {w.advice}.") for w in self.warnings),
        ]
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in rows
            if value is not None
        )
        return f"<table>{cells}</table>"

    def log_ratio(
        self, x: Any, y: Any, given: Any = None, *, nan: Literal["raise", "omit"] = "raise"
    ) -> NDArray[np.float64]:
        """Return the log ratio (n,) of new rows, in nats: the mean over the folds' critics.

        No critic was trained on new rows, so all are averaged. For the rows of the estimate itself
        use `pointwise`, where each is scored by the one critic that was not trained on it. The
        correction of `mi` (`diagnostics["correction"]`) is not added.

        Args:
            x: New rows with the columns of x; frames are matched by name, arrays by place.
            y: The same number of rows, with the columns of y.
            given: New rows of z, if the estimate was given z: the log ratio is then given z.
            nan: `"raise"` an error on NaN and inf, or `"omit"` those rows: their score is NaN.
        """
        return np.asarray(self._fitted("log_ratio").log_ratio(x, y, given, nan))

    def save(self, folder: Path | str) -> None:
        """Write the result and what was fitted to a folder, for `deminat.load`.

        A run in that folder is replaced at once when the new one is complete.
        """
        from .persistence.saved_run import save

        self._fitted("save")
        save(self, folder)

    def _fitted(self, wanted: str) -> "FittedModel":
        if self.model is None:
            raise ValueError(
                f"{wanted} needs the fitted model, which this result does not have: "
                "deminat.estimate returns it, pickle drops it; use save and deminat.load"
            )
        return self.model

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "model": None}  # a result is small, its model is not

    def to_html(self, path: Path | str | None = None, *, unit: Unit = "nats") -> str:
        """Return a report as one HTML file that needs nothing else, and write it to `path`."""
        from .report import render, save

        text = render([self], unit=unit)
        if path is not None:
            save(path, text)
        return text

    def to_dict(self, unit: Unit = "nats") -> dict[str, Any]:
        """Return what JSON can hold, in `unit`: all but the pointwise values.

        Diagnostics stay in nats, as their own `unit` says. Numbers that are not finite become
        `None`.
        """
        return {
            "mi": nats_to(unit, self.mi),
            "standard_error": nats_to(unit, self.standard_error),
            "unit": unit,
            "standard_error_covers": ERROR_COVERS,
            "interval": self.interval and [nats_to(unit, nats) for nats in self.interval],
            "p_value": self.p_value,
            "lower_bound": None if self.lower_bound is None else nats_to(unit, self.lower_bound),
            "n": self.n,
            "method": self.method,
            "warnings": [asdict(w) for w in self.warnings],
            "diagnostics": {"unit": "nats", **plain(self.diagnostics)},
        }


@dataclass(frozen=True)
class IndependenceResult:
    """A test of independence.

    Args:
        p_value: Probability of a statistic at least as large if x and y are independent.
        statistic: What was compared: log H, which says how small the p-values of several
            statistics are together; of series the mean score of joint pairs above that of shifted
            ones.
        n: Number of pairs.
        compared: What the joint pairs were compared with, in words.
        warnings: What to know before trusting the p-value.
        unit: Of the statistic.
    """

    p_value: float
    statistic: float
    n: int
    compared: str
    warnings: tuple[Caution, ...] = ()
    unit: str = "nats"

    def __str__(self) -> str:
        return f"{format_p(self.p_value)}  n={self.n}  {self.compared}{_codes(self.warnings)}"

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {**asdict(self), "warnings": [asdict(w) for w in self.warnings]}


def _codes(warnings: tuple[Caution, ...]) -> str:
    """Return the end of a line that names warnings, each once."""
    codes = ", ".join(dict.fromkeys(w.code for w in warnings))
    return f"  warnings: {codes}" if codes else ""


def format_p(p: float) -> str:
    """Return a p-value as it is printed."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
