"""Records of a run, which results carry: data and settings, learning curves, calibration."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, Literal

__all__ = [
    "CalibrationBin",
    "Diagnostics",
    "LearningCurve",
    "RunDescription",
    "SideDescription",
    "Stage",
    "plain",
]


@dataclass(frozen=True)
class Stage:
    """What one network of a staged training sees.

    Args:
        kind: `"norms"` of the rows, `"related"` columns, `"all"` columns, or `"pairs"`, x and y
            concatenated.
        columns: How many columns of x and of y are related, for that kind.
    """

    kind: Literal["norms", "related", "all", "pairs"]
    columns: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        x, y = self.columns
        return {"related": f"{x} + {y} columns", "all": "all columns"}.get(self.kind, self.kind)


@dataclass(frozen=True)
class LearningCurve:
    """One training, as its held-out rows saw it.

    Args:
        stage: What the network saw; `None` where there are no stages.
        kept_step: The step whose weights were kept.
        held_out: Loss of the held-out rows at each evaluation, the first before any step.
    """

    stage: Stage | None
    kept_step: int
    held_out: tuple[float, ...]


@dataclass(frozen=True)
class CalibrationBin:
    """Held-out pairs that the classifier gives similar probabilities.

    Args:
        predicted: Mean probability of being joint that the classifier gives.
        observed: Share of them that is joint.
        share: Their share of all pairs.
    """

    predicted: float
    observed: float
    share: float


@dataclass(frozen=True)
class SideDescription:
    """One side of the pairs: the shape of a row, and the first names if its columns have names."""

    shape: tuple[int, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunDescription:
    """The data and settings behind a result.

    Args:
        seed: Of all randomness.
        x: The first side.
        y: The second side.
        given: What was conditioned on; `None` if nothing was.
        dropped: Pairs dropped for missing values.
        groups: Number of groups; `None` if rows have none.
        gap: Rows left out between blocks of a time series; `None` if rows have no order.
        versions: Of deminat and what the numbers depend on.
    """

    seed: int
    x: SideDescription
    y: SideDescription
    given: SideDescription | None
    dropped: int
    groups: int | None
    gap: int | None
    versions: Mapping[str, str]


@dataclass(frozen=True)
class Diagnostics(Mapping[str, Any]):
    """Further figures of a run, in nats where they are information or losses.

    It reads like a dictionary of the fields that are known: `diagnostics["correction"]`.

    Args:
        correction: Half the gap between training and held-out scores, or what neighbours tell,
            added to the estimate.
        neighbours: What nearest neighbours tell beyond the held-out scores, of single columns.
        neighbours_error: Its standard error.
        held_out_loss: Loss of the objective on held-out scores.
        normaliser: Mean of exp f over unpaired pairs; 1 for a log ratio.
        normaliser_error: Its standard error.
        normaliser_checkable: Whether so many pairs can show that it is 1.
        log_normaliser_x: Mean over held-out x of log Z(x), the log of the mean of exp f over
            unpaired y; 0 for a log ratio.
        log_normaliser_y: The same of log Z(y).
        log_normaliser_error: Standard error of the mean of both.
        calibration: Predicted and observed shares of joint pairs.
        calibration_error: Their mean absolute difference.
        fold_means: Mean held-out score of each fold.
        training_means: The same of the rows that each critic was trained on.
        baseline_means: The same of each fold, by the baseline alone.
        steps: Training steps of each fold.
        kept_steps: The step whose weights were kept.
        training_loss: Mean loss of the last hundred steps of each fold; where all pairs of a batch
            are used, of 16 rows of each batch.
        restarts: How often a loss was not finite and training went on at a lower rate.
        recipe: What was chosen in each fold, in words.
        learning: Curves of each fold.
        scaling: How columns were scaled.
        canonical_correlations: Of the Gaussian closed form.
        of_both: The estimate of I(x; y, z), where z is given.
        of_given: The estimate of I(x; z), where z is given.
        run: The data and settings.
    """

    correction: float | None = None
    neighbours: float | None = None
    neighbours_error: float | None = None
    held_out_loss: float | None = None
    normaliser: float | None = None
    normaliser_error: float | None = None
    normaliser_checkable: bool | None = None
    log_normaliser_x: float | None = None
    log_normaliser_y: float | None = None
    log_normaliser_error: float | None = None
    calibration: tuple[CalibrationBin, ...] | None = None
    calibration_error: float | None = None
    fold_means: tuple[float, ...] | None = None
    training_means: tuple[float, ...] | None = None
    baseline_means: tuple[float, ...] | None = None
    steps: tuple[int, ...] | None = None
    kept_steps: tuple[int, ...] | None = None
    training_loss: tuple[float, ...] | None = None
    restarts: int | None = None
    recipe: tuple[str, ...] | None = None
    learning: tuple[tuple[LearningCurve, ...], ...] | None = None
    scaling: str | None = None
    canonical_correlations: tuple[float, ...] | None = None
    of_both: Mapping[str, Any] | None = None
    of_given: Mapping[str, Any] | None = None
    run: RunDescription | None = None

    def __getitem__(self, name: str) -> Any:
        value = vars(self).get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name, value in vars(self).items() if value is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def plain(value: Any) -> Any:
    """Return a nested value as dictionaries and lists, with None for floats that are not finite."""
    if isinstance(value, Stage):
        return str(value)
    if is_dataclass(value) and not isinstance(value, Mapping):
        value = vars(value)
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
