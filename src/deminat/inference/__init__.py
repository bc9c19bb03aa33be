"""Interval, p-value, lower bound and warnings of an estimate."""

from .assess import Assessor
from .conditional import conditional_result, conditional_test
from .independence import independence_test

__all__ = ["Assessor", "conditional_result", "conditional_test", "independence_test"]
