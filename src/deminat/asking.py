"""What is asked of which rows: one question of x and y, or two by the chain rule given z.

Constant columns are left out before anything is fitted. What was fitted goes with the answer,
together with the rows as they came, so that new rows may come in the same way.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from .errors import DataError
from .inference import Assessor, beyond, judged_given
from .inputs import Sample
from .models import Part
from .results import MIResult
from .runs import described
from .training import Progress, share_of

__all__ = ["Ask", "given_z", "plain", "told"]

Ask = Callable[..., list[MIResult]]  # from a sample and how to assess it


def plain(
    ask: Ask,
    raw: Sample,
    seed: int,
    budget: float | None,
    progress: Progress | None,
) -> list[MIResult]:
    """Return the information of x and y, with what was fitted."""
    sample = raw.without_constants()
    found = ask(sample, Assessor(sample, seed), budget=budget, progress=progress, part="whole")
    return [_with_parts(result, (raw, result)) for result in found]


def given_z(
    ask: Ask,
    raw: Sequence[Sample],
    seed: int,
    budget: float | None,
    progress: Progress | None,
) -> list[MIResult]:
    """Return the information of x and y given z, with what was fitted."""
    both, known, pair = (sample.without_constants() for sample in raw)
    half = None if budget is None else budget / 2
    of_both, of_known = (
        ask(
            sample,
            Assessor(sample, seed, test=False),
            budget=half,
            progress=share_of(progress, i, 2),
            part=part,
        )
        for i, (sample, part) in enumerate([(both, "whole"), (known, "known")])
    )
    p_value = _p_value_given(pair, known, seed)
    results = []
    for a, b in zip(of_both, of_known, strict=True):
        result = told(beyond(a, b, pair, p_value), pair, seed, known)
        results.append(_with_parts(result, (raw[0], a), (raw[1], b)))
    return results


def _with_parts(result: MIResult, *fits: tuple[Sample, MIResult]) -> MIResult:
    """Return a result with what was fitted to samples, if the method tells it."""
    if any(fit.model is None for _, fit in fits):
        return replace(result, model=None)
    return replace(result, model=tuple(Part.of(raw, fit.model) for raw, fit in fits))


def _p_value_given(pair: Sample, known: Sample, seed: int) -> float | None:
    try:
        return judged_given(pair, known.y, seed=seed).p_value
    except DataError:  # few rows, or a series, have an estimate all the same
        return None


def told(result: MIResult, sample: Sample, seed: int, known: Sample | None = None) -> MIResult:
    """Return a result that knows of what and by which seed it is."""
    run = {"run": described(sample, seed, known)}
    return replace(result, diagnostics={**result.diagnostics, **run}, rows=sample.rows)
