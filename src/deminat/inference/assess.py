"""What comes with an estimate: an interval, a p-value, a lower bound, warnings where due."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Self

from ..data.sample import Sample
from ..data.units import effective_rows
from ..errors import DataError
from ..estimators.crossfit import CrossFit
from ..results import MIResult
from ..runtime.pool import start_early
from .diagnostics import contradictions, diagnose
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
        test: Whether to look for a p-value and a lower bound.
        links: Gives the critics that both of these need; trained when asked for, by default.
    """

    sample: Sample
    seed: int
    test: bool = True
    links: Callable[[], list[SequentialPart]] | None = None

    def begun(self) -> Self:
        """Return the same, whose critics another process begins to train now, if there is one."""
        if not self.test:
            return self
        return replace(self, links=start_early(partial(sequential_parts, self.sample, self.seed)))

    def __call__(
        self, result: MIResult, fit: CrossFit, is_mean: bool = True, is_default: bool = True
    ) -> MIResult:
        """Return a result that was read off cross-fitted critics, with what to make of it.

        Args:
            result: What an objective made of the scores.
            fit: The scores.
            is_mean: Whether the estimate is the mean log ratio; otherwise it has no interval.
            is_default: Whether the critics are those that the interval was tried with.
        """
        result = replace(result, lower_bound=self._bound(fit), p_value=self._p_value)
        cautions, figures = diagnose(result, fit, effective_rows(self.sample))
        if is_mean:
            cautions += (
                *contradictions(result, self.sample),
                *range_warnings(result, self.sample, is_default),
            )
            result = replace(result, interval=interval(result, fit, effective_rows(self.sample)))
        return replace(
            result,
            warnings=result.warnings + cautions,
            diagnostics={**result.diagnostics, **figures},
        )

    def _bound(self, fit: CrossFit) -> float | None:
        """Return the lower bound, which wants couples of rows that are independent."""
        if self.sample.times is not None or not self.test:
            return None
        return lower_bound(fit.tables, [link.tables(self.seed) for link in self._links])

    @cached_property
    def _links(self) -> list[SequentialPart]:
        return sequential_parts(self.sample, self.seed) if self.links is None else self.links()

    @cached_property
    def _p_value(self) -> float | None:
        if not self.test:
            return None
        try:
            return permutation_test(self.sample, self._links, seed=self.seed).p_value
        except DataError:  # a series too short to be shifted has an estimate all the same
            return None
