"""Batches and a loss -> weights: settings, loop, early stopping, callbacks."""

__all__: list[str] = []
