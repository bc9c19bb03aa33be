"""Whether there is anything, how much at least, and what not to believe."""

from .assessor import Assessor
from .independence import independence_test

__all__ = ["Assessor", "independence_test"]
