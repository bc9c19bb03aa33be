"""Whether there is anything, how much at least, and what not to believe."""

from ..estimators.recipes import quick
from .assess import Assessor
from .conditional import beyond, judged_given
from .independence import independence_test

__all__ = ["Assessor", "beyond", "independence_test", "judged_given", "quick"]
