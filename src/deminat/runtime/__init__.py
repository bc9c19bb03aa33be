"""Processes, progress, atomic files, stored rows and sweeps."""

__all__: list[str] = []
