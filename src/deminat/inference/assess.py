"""What comes with an estimate: an interval, a p-value, a lower bound, warnings."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Self

from ..data.sample import Sample
from ..data.units import effective_rows
from ..errors import DataError
from ..estimators.base import TrainedEstimator
from ..estimators.crossfit import CrossFit
from ..results import MIResult
from ..runtime.pool import start_early
from .diagnostics import contradictions, diagnose, functions, limited, near_copies
from .independence import permutation_test
from .interval import interval, range_warnings
from .lower_bound import lower_bound
from .sequential import SequentialPart, sequential_parts

__all__ = ["Assessor"]


@dataclass(frozen=True)
class Assessor:
    """Assesses results of one sample; what does not depend on the method is done once.

    Args:
        sample: All pairs.
        seed: Of all randomness.
        test: Whether to compute a p-value and a lower bound.
        start: Returns the critics that both of these need, which another process may be training.
    """

    sample: Sample
    seed: int
    test: bool = True
    start: Callable[[], list[SequentialPart]] | None = None

    def started(self) -> Self:
        """Return the same, with its critics in training in another process, if there is one."""
        if not self.test:
            return self
        return replace(self, start=start_early(partial(sequential_parts, self.sample, self.seed)))

    def __call__(self, result: MIResult, fit: CrossFit, estimator: TrainedEstimator) -> MIResult:
        """Return a result with its interval, p-value, lower bound and warnings.

        Args:
            result: What was read off the scores.
            fit: The scores.
            estimator: Whose they are.
        """
        rows = effective_rows(self.sample)
        result = replace(result, lower_bound=self._bound(fit), p_value=self._p_value)
        warnings, diagnostics = diagnose(result, fit, rows)
        if estimator.is_mean_log_ratio:
            warnings += (
                *contradictions(result, self.sample),
                *near_copies(self.sample),
                *functions(replace(result, warnings=warnings), self.sample),
                *range_warnings(result, self.sample, bool(estimator.is_validated)),
            )
            result = replace(result, interval=interval(result, fit, rows))
            result = limited(result, self.sample)
        return replace(result, warnings=result.warnings + warnings, diagnostics=diagnostics)

    def _bound(self, fit: CrossFit) -> float | None:
        """Return the lower bound, which needs pairs of independent rows."""
        if self.sample.times is not None or not self.test:
            return None
        return lower_bound(fit.tables, [part.tables(self.seed) for part in self._parts])

    @cached_property
    def _parts(self) -> list[SequentialPart]:
        return sequential_parts(self.sample, self.seed) if self.start is None else self.start()

    @cached_property
    def _p_value(self) -> float | None:
        if not self.test:
            return None
        try:
            return permutation_test(self.sample, self._parts, seed=self.seed).p_value
        except DataError:  # a series too short to be shifted still has an estimate
            return None
