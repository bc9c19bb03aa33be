"""persistence."""

__all__: list[str] = []
