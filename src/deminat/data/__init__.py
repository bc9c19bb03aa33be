"""Anything -> `Sample` -> splits, pairs and batches; `data.files` reads files."""

__all__: list[str] = []
