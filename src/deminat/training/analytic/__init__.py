"""Gradients written by hand, where they gain."""

__all__: list[str] = []
