"""The paper's experiments: a config, its cells, their rows, and tables and figures of them."""

__all__: list[str] = []  # light on purpose: `sweep` is also used where torch is not needed
