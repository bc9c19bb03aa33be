"""studies."""

__all__: list[str] = []
