"""training.analytic."""

__all__: list[str] = []
