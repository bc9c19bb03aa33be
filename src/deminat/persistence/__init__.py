"""Saved runs and checkpoints: safetensors and JSON, no pickle."""

__all__: list[str] = []
