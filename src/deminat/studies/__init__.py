"""Measurements of this library: the paper's experiments, benches, and a self-test."""

__all__: list[str] = []
