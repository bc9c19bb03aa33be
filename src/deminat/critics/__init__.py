"""(x, y) -> score: networks, and baselines in closed form."""

__all__: list[str] = []
