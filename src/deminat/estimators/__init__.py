"""estimators."""

__all__: list[str] = []
