"""Whether there is anything, how much at least, and what not to believe."""

from ..estimators.recipes import quick_estimator
from .assess import Assessor
from .conditional import conditional_result, conditional_test
from .independence import independence_test

__all__ = [
    "Assessor",
    "conditional_result",
    "conditional_test",
    "independence_test",
    "quick_estimator",
]
