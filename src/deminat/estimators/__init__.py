"""Fit, cross-fit, scores: what turns a sample into a result."""

__all__: list[str] = []
