"""The two questions most users ask: `estimate` and `compare`.

Strings become objects here, once: the name of a method and the name of a preset choose an
estimator, and every estimator answers by the same protocol, `MIEstimator`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, Literal, Protocol, Self, get_args

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from .asking import given_z, plain, told
from .checkpoints import Checkpoint, kept_in
from .classical import KSG, Gaussian
from .critics import ConvCritic, MLPCritic
from .estimators import AUTO, PAPER, Estimator
from .flows import FLOW_PAPER, GM
from .history import Callback
from .inference import Assessor, quick
from .inputs import LEAST_PAIRS, NanPolicy, Sample, as_sample, as_samples_given
from .models import Fitted, Source
from .objectives import CCMI, DEMI, JSD, MINE, NWJ, SMILE, InfoNCE, Objective
from .packing import check_packable
from .results import Caution, MIResult
from .scores import from_pointwise
from .training import Progress, share_of
from .transforms import Standardize

__all__ = ["METHODS", "MIEstimator", "Method", "Preset", "compare", "estimate", "estimator_for"]

Preset = Literal["auto", "quick", "paper"]

# What estimators have in common whose trainings are the same, besides what they train as.
_SHARED = "critic", "scaling", "training", "start", "seed", "budget", "correct"


class MIEstimator(Protocol):
    """What every estimator of this library does."""

    @property
    def name(self) -> str:
        """What results call it."""
        ...

    def fit(self, x: Any, y: Any) -> Self:
        """Learn from pairs."""
        ...

    def log_ratio(self, x: Any, y: Any) -> NDArray[np.float64]:
        """Return the log ratio (n,) of pairs, in nats."""
        ...

    def estimate(self, x: Any, y: Any) -> MIResult:
        """Return the mutual information of pairs, new ones if it is to be believed."""
        ...

    def score(self, x: Any, y: Any) -> float:
        """Return minus the held-out loss, for model selection."""
        ...

    def measure(
        self, sample: Sample, *, folds: int, n_jobs: int, progress: Progress | None
    ) -> MIResult:
        """Return the mutual information of all pairs of a sample."""
        ...


Method = str | Objective | MIEstimator

METHODS: dict[str, Callable[[], Objective | MIEstimator]] = {
    "demi": DEMI,
    "jsd": JSD,
    "ccmi": CCMI,
    "smile": SMILE,
    "mine": MINE,
    "nwj": NWJ,
    "infonce": InfoNCE,
    "gm": GM,
    "ksg": KSG,
    "gaussian": Gaussian,
    "copula": lambda: Gaussian(ranks=True),
}


def estimate(
    x: Any,
    y: Any = None,
    *,
    method: Method = "demi",
    preset: Preset = "auto",
    folds: int = 5,
    seed: int = 0,
    nan: NanPolicy = "raise",
    given: Any = None,
    groups: Any = None,
    order: Any = None,
    max_rows: int | None = None,
    n_jobs: int = 1,
    budget: float | None = None,
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: PathLike[str] | str | None = None,
) -> MIResult:
    """Estimate how much x tells about y: their mutual information in nats.

    Each pair is scored by a critic that never saw it: `folds` critics are trained, each on all
    folds but one. `preset="auto"` then adds half of what the critics read more in their own
    training pairs (`diagnostics["correction"]`), which makes up for what chance cost them.

    Args:
        x: Array, tensor, frame, series or list; (n,), (n, d) or images (n, c, h, w). Or a dataset
            of pairs, as torch has them: `dataset[i]` is (x, y).
        y: The same number of rows, in the same order; nothing with a dataset.
        method: `"demi"`, `"jsd"`, `"ccmi"`, `"smile"`, `"mine"`, `"nwj"`, `"infonce"`, `"gm"`,
            `"ksg"`, `"gaussian"` or `"copula"`; an objective such as `DEMI(alpha=0.25)`; or a
            whole estimator such as `KSG(k=5)` or `Estimator(critic=MLPCritic)`.
        preset: `"auto"`, the best recipe known; `"quick"`, a part of it in a tenth of the time; or
            `"paper"`, the paper's own.
        folds: Number of folds.
        seed: One seed gives one answer. A whole estimator keeps its own.
        nan: `"raise"` an error on NaN and inf, or `"omit"` the pairs that hold one.
        given: z, the same number of rows: how much x tells about y beyond what z tells,
            I(x; y | z) = I(x; y, z) - I(x; z), with a test of independence given z.
        groups: (n,) rows of one group, such as a subject's, are never on both sides of a split
            nor taken for unpaired; every fold needs two groups or more.
        order: (n,) times, or `True` if rows are in the order of time: they are split by blocks,
            with gaps between them.
        max_rows: Of more rows, so many are drawn at random by the seed (of a series, one stretch),
            which `.warnings` tells; by default 200,000, or fewer if they are wider than 671 values.
            Rows of a memory-mapped array that are not drawn are not read into memory.
        n_jobs: Processes to use, as in joblib; the answer does not depend on it.
        budget: Seconds to take at most, or a little more; what is found by then depends on the
            machine.
        progress: Called now and then with the share of the work that is done, 0 to 1.
        callbacks: Told of each step of each training, such as `TensorBoard("logs")`; see
            `Callback`. With several processes they are told when a fold is finished.
        checkpoint: A folder where each finished fold is kept at once. The same call goes on from
            there after a kill, and gives the same answer; other data or settings are refused.

    Returns:
        An `MIResult`: `.mi` in nats, `.bits`, `.interval`, `.p_value`, `.lower_bound`,
        `.standard_error`, `.pointwise`, `.n`, `.method`, `.warnings`, `.diagnostics`; printed, it
        is one line. `.log_ratio(x_new, y_new)` scores new rows, `.save(folder)` keeps it. Methods
        that train nothing have neither interval nor p-value nor lower bound,
        and those whose estimate is no mean log ratio no interval: see `independence_test`.

    Examples:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=1000)
        >>> result = estimate(x, x + rng.normal(size=1000), method="gaussian")
        >>> print(f"{result.mi:.2f} nats, the truth is {np.log(2) / 2:.2f}")
        0.34 nats, the truth is 0.35
    """
    (result,) = compare(
        x,
        y,
        methods=[method],
        preset=preset,
        folds=folds,
        seed=seed,
        nan=nan,
        given=given,
        groups=groups,
        order=order,
        max_rows=max_rows,
        n_jobs=n_jobs,
        budget=budget,
        progress=progress,
        callbacks=callbacks,
        checkpoint=checkpoint,
    )
    return result


def compare(
    x: Any,
    y: Any = None,
    *,
    methods: Sequence[Method] = ("demi", "ksg", "gaussian"),
    preset: Preset = "auto",
    folds: int = 5,
    seed: int = 0,
    nan: NanPolicy = "raise",
    given: Any = None,
    groups: Any = None,
    order: Any = None,
    max_rows: int | None = None,
    n_jobs: int = 1,
    budget: float | None = None,
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: PathLike[str] | str | None = None,
) -> list[MIResult]:
    """Estimate the mutual information of x and y by several methods, in their order.

    Methods that share a loss (DEMI, JSD, CCMI and SMILE) are read off the same training.
    Arguments as of `estimate`.
    """
    if folds < 2:
        raise ValueError(f"folds must be at least 2, got {folds!r}")
    if budget is not None and not budget > 0:
        raise ValueError(f"budget must be seconds, above 0; got {budget!r}")
    rows = {"groups": groups, "order": order, "nan": nan, "least": LEAST_PAIRS}
    rows |= {"max_rows": max_rows, "seed": seed}
    settings: dict[str, Any] = {"methods": methods, "preset": preset, "folds": folds, "seed": seed}
    if given is None:
        samples: tuple[Sample, ...] = (as_sample(x, y, **rows),)
    else:
        samples = as_samples_given(x, y, given, **rows)
    shapes = [sample.y.shape[1:] for sample in samples]
    about = {**settings, "budget": budget, "columns": shapes}
    with kept_in(checkpoint, samples[0], about) as keep:
        ask = partial(_compared, **settings, n_jobs=n_jobs, callbacks=callbacks, keep=keep)
        if given is None:
            results = plain(ask, samples[0], seed, budget, progress)
        else:
            results = given_z(ask, samples, seed, budget, progress)
    sources = tuple(Source.of(side) for side in ((x, y) if given is None else (x, y, given)))
    results = [replace(r, model=r.model and Fitted(sources, *r.model)) for r in results]
    return results if keep is None else [keep.told(result) for result in results]


def _compared(
    sample: Sample,
    assess: Assessor,
    *,
    methods: Sequence[Method],
    preset: Preset,
    folds: int,
    seed: int,
    n_jobs: int,
    budget: float | None,
    progress: Progress | None,
    callbacks: Sequence[Callback],
    keep: Checkpoint | None,
    part: str,
) -> list[MIResult]:
    """Return the answers of several methods on a checked sample, with the members of each."""
    estimators = [estimator_for(method, preset, sample, seed) for method in methods]
    if sample.is_constant():
        nothing = np.zeros(len(sample))
        same = [from_pointwise(nothing, e.name, sample.warnings) for e in estimators]
        return [replace(told(result, sample, seed), model=()) for result in same]
    if keep is not None:
        for estimator in estimators:
            check_packable(estimator)
    estimators = _within(budget, estimators, folds, n_jobs)
    trainings = list(_by_training(estimators).values())
    results: dict[int, MIResult] = {}
    for i, members in enumerate(trainings):
        how = {"folds": folds, "n_jobs": n_jobs, "progress": share_of(progress, i, len(trainings))}
        heard = {"callbacks": callbacks, "keeper": keep and keep.part(f"{part}-{i}")}
        answers = _measure([estimators[j] for j in members], sample, assess, how, heard)
        results.update(zip(members, answers, strict=True))
    return [told(results[j], sample, getattr(e, "seed", seed)) for j, e in enumerate(estimators)]


def estimator_for(
    method: Method, preset: Preset = "auto", sample: Sample | None = None, seed: int = 0
) -> MIEstimator:
    """Return the estimator that a method and a preset stand for.

    Args:
        method: A name, an objective, or an estimator, which is returned as it is.
        preset: `"auto"`, `"quick"` or `"paper"`.
        sample: What it is to be used on, since images want another critic.
        seed: Of all randomness.
    """
    if preset not in get_args(Preset):
        raise ValueError(f'preset must be "auto", "quick" or "paper", got {preset!r}')
    if isinstance(method, str):
        if method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
        method = METHODS[method]()
        if isinstance(method, GM):
            return _flows(preset, seed)
    if isinstance(method, Objective):
        return _neural(method, preset, sample, seed)
    return method


def _flows(preset: Preset, seed: int) -> GM:
    if preset == "paper":
        return GM(scaling=Standardize, training=FLOW_PAPER, seed=seed)
    return GM(seed=seed)


def _neural(objective: Objective, preset: Preset, sample: Sample | None, seed: int) -> Estimator:
    image = sample is not None and _is_image_pair(sample)
    if preset == "auto" and not image:
        return Estimator(objective, seed=seed)
    if preset == "quick" and not image:
        return replace(quick(seed, sample), objective=objective)
    training = PAPER if preset == "paper" else replace(PAPER, halve_at=(), stopping=AUTO.stopping)
    if objective.trains_as is objective and not isinstance(objective, DEMI):
        training = replace(training, batch=64, epochs=20)  # no label z: 64 pairs a batch
    if isinstance(objective, InfoNCE):  # of a batch, all others: its ceiling is log(batch)
        training = replace(training, negatives=training.batch - 1)
    critic = ConvCritic if image else MLPCritic
    return Estimator(objective, critic, Standardize, training, None, seed, correct=False)


def _within(
    budget: float | None, estimators: list[MIEstimator], folds: int, n_jobs: int
) -> list[MIEstimator]:
    """Return the estimators with their share of the seconds; those without a training need none."""
    if budget is None:
        return estimators
    if any(isinstance(e, GM) for e in estimators):
        raise ValueError("gm has no budget: its flows are trained to the end; leave budget out")
    trainings = sum(isinstance(group, tuple) for group in _by_training(estimators)) or 1
    seconds = budget / trainings / math.ceil(folds / effective_n_jobs(n_jobs))
    return [replace(e, budget=seconds) if isinstance(e, Estimator) else e for e in estimators]


def _is_image_pair(sample: Sample) -> bool:
    """Tell whether both sides are (channels, height, width) of one size."""
    return sample.x.ndim == sample.y.ndim == 4 and sample.x.shape[2:] == sample.y.shape[2:]


def _by_training(estimators: Sequence[MIEstimator]) -> dict[Any, list[int]]:
    """Return the positions of the estimators that one training serves, by training."""
    groups: dict[Any, list[int]] = {}
    for i, e in enumerate(estimators):
        key: Any = i
        if isinstance(e, Estimator):
            key = e.objective.trains_as, *(getattr(e, name) for name in _SHARED)
        groups.setdefault(key, []).append(i)
    return groups


def _measure(
    group: Sequence[MIEstimator],
    sample: Sample,
    assess: Assessor,
    how: dict[str, Any],
    heard: dict[str, Any],
) -> list[MIResult]:
    """Return the answers of estimators that share one training, with its members."""
    first = group[0]
    if isinstance(first, GM):
        fit = first.cross_fit(sample, **how, **heard)
        results = [assess(first.reading(fit, sample), fit)]
    elif isinstance(first, Estimator):
        fit = first.cross_fit(sample, **how, **heard)
        objectives = [e.objective for e in group if isinstance(e, Estimator)]
        readings = zip(first.readings(fit, objectives, sample), objectives, strict=True)
        results = [assess(result, fit, isinstance(o, DEMI | JSD)) for result, o in readings]
    else:
        return [_ungrouped(first.measure(sample, **how), sample)]
    return [replace(result, model=fit.models) for result in results]


def _ungrouped(result: MIResult, sample: Sample) -> MIResult:
    """Say so where a method takes rows for independent that are not."""
    if sample.times is None and sample.labels is sample.copies:
        return result
    told = Caution(
        "ungrouped",
        f"{result.method} takes all rows for independent: groups and order do nothing here",
        "Use method='demi', or deminat.independence_test",
    )
    return replace(result, warnings=(*result.warnings, told))
