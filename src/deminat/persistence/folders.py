"""Names of folders within a saved run."""

__all__ = ["CHECKPOINT", "FOLDS"]

CHECKPOINT = "checkpoint"  # the folder within that of a run where finished folds are
FOLDS = "folds"  # what it is called when the run is finished
