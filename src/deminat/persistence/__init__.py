"""Saved runs and checkpoints: safetensors and JSON, no pickle."""

__all__ = ["CHECKPOINT", "FOLDS"]

CHECKPOINT = "checkpoint"  # the folder within that of a run where finished folds are
FOLDS = "folds"  # what it is called when the run is finished
