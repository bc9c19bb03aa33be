"""critics."""

__all__: list[str] = []
