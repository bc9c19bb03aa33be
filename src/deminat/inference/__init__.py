"""Whether there is anything, how much at least, and what not to believe."""

from .assessor import Assessor
from .chain import quick
from .conditional import beyond, judged_given
from .independence import independence_test

__all__ = ["Assessor", "beyond", "independence_test", "judged_given", "quick"]
