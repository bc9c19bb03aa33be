"""The two main calls, `estimate` and `compare`, as one pipeline.

    sample -> fits -> readings -> assessed -> result

Constant columns are left out before anything is fitted. Given z there are two such pipelines, of
I(x; y, z) and of I(x; z), whose difference is the result. A result carries its model together with
the columns as they were given, so that new rows may come in the same form.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np

from .data.labels import Discrete
from .data.sample import (
    LEAST_PAIRS,
    NanPolicy,
    RowOptions,
    Sample,
    as_sample,
    as_samples_given,
    label_warnings,
)
from .data.schema import describe_run
from .errors import DataError
from .estimators.base import Estimate, MIEstimator, TrainedEstimator, UntrainedEstimator
from .estimators.crossfit import CrossFitOptions
from .estimators.fitted import ColumnNames, FittedModel, FoldEnsemble
from .estimators.registry import Method, Preset, estimator_for
from .estimators.request import Request
from .estimators.scores import result_from_pointwise
from .inference import Assessor, conditional_result, conditional_test
from .persistence.checkpoints import Checkpoint, open_checkpoint
from .persistence.serialise import check_packable
from .results import Caution, MIResult
from .runtime.pool import worker_pool
from .runtime.progress import AskedProgress, Progress, progress_of_part, shown
from .training.callbacks import Callback

__all__ = ["compare", "estimate"]


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
    discrete: Discrete = None,
    max_rows: int | None = None,
    n_jobs: int = 1,
    budget: float | None = None,
    progress: AskedProgress = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: PathLike[str] | str | None = None,
) -> MIResult:
    """Estimate how much x tells about y: their mutual information in nats.

    Each pair is scored by a critic that never saw it: `folds` critics are trained, each on all
    folds but one. `preset="auto"` then adds half the gap between training and held-out scores
    (`diagnostics["correction"]`), which makes up for what critics lose to sampling noise.

    Args:
        x: Array, tensor, frame, series or list; (n,), (n, d) or images (n, c, h, w). Or a dataset
            of pairs, as torch has them: `dataset[i]` is (x, y).
        y: The same number of rows, in the same order; nothing with a dataset.
        method: `"demi"`, `"jsd"`, `"ccmi"`, `"smile"`, `"mine"`, `"nwj"`, `"infonce"`, `"gm"`,
            `"ksg"`, `"gaussian"` or `"copula"`; an objective such as `DEMI(alpha=0.25)`; or a
            whole estimator such as `KSG(k=5)` or `Estimator(critic=MLPCritic)`.
        preset: `"auto"`, the best recipe known; `"quick"`, a part of it in half of the time; or
            `"paper"`, the paper's own.
        folds: Number of folds.
        seed: One seed gives one answer. A whole estimator keeps its own.
        nan: `"raise"` an error on NaN and inf, or `"omit"` the pairs that hold one.
        given: z, the same number of rows: how much x tells about y beyond what z tells,
            I(x; y | z) = I(x; y, z) - I(x; z), with a test of independence given z.
        groups: (n,) rows of one group, such as a subject's, are never on both sides of a split
            nor used as unpaired samples of each other; every fold needs two groups or more.
        order: (n,) times, or `True` if rows are in the order of time: they are split by blocks,
            with gaps between them. `False` if the order of rows means nothing: similarity of
            adjacent rows is then ignored.
        discrete: Which columns of numbers are labels, whose codes may be in any order: `True` for
            all, `False` for none, or their names, such as `["zip"]`; in arrays "column 0 of x", or
            "x" for all of x. By default those that take few values, each repeated often; a warning
            names them. Text and categories are labels always.
        max_rows: Use at most this many rows, sampled at random (of a time series, one stretch);
            by default 200,000, or fewer if rows are wider than 671 values. A warning says so.
            Other rows of a memory-mapped array are not read into memory.
        n_jobs: Processes to use, as in joblib; the result does not depend on it.
        budget: Seconds to take at most, or a little more; the result then depends on the machine.
        progress: Called now and then with the share of the work that is done, 0 to 1. By default a
            bar is shown, on a terminal or in a notebook, if it takes over two seconds; `False`
            shows none.
        callbacks: Called at each step of each training, such as `TensorBoard("logs")`; see
            `Callback`. With several processes they are called when a fold is finished.
        checkpoint: A folder where each finished fold is stored at once. After an interruption the
            same call resumes there, with the same result; other data or settings are refused.

    Returns:
        An `MIResult`: `.mi` in nats, `.bits`, `.interval`, `.p_value`, `.lower_bound`,
        `.standard_error`, `.pointwise`, `.n`, `.method`, `.warnings`, `.diagnostics`; printed, it
        is one line. `.log_ratio(x_new, y_new)` scores new rows, `.save(folder)` stores it. Methods
        that train nothing have neither interval nor p-value nor lower bound: see
        `independence_test`. Methods whose estimate is not a mean log ratio have no interval.

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
        discrete=discrete,
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
    discrete: Discrete = None,
    max_rows: int | None = None,
    n_jobs: int = 1,
    budget: float | None = None,
    progress: AskedProgress = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: PathLike[str] | str | None = None,
) -> list[MIResult]:
    """Estimate the mutual information of x and y by several methods, in their order.

    Methods that share a loss (DEMI, JSD, CCMI and SMILE) share one training.
    Arguments as of `estimate`.
    """
    request = Request(methods, preset, folds, seed, budget, n_jobs, None, callbacks)
    options = RowOptions(groups, order, nan, max_rows, seed, discrete)
    sides = (x, y) if given is None else (x, y, given)
    if given is None:
        samples: tuple[Sample, ...] = (as_sample(x, y, options, least=LEAST_PAIRS),)
    else:
        samples = as_samples_given(x, y, given, options, least=LEAST_PAIRS)
    labels = label_warnings(samples) if discrete is None else ()
    with (
        open_checkpoint(checkpoint, samples, request) as store,
        worker_pool(request.processes),
        shown(progress, "estimating") as reported,
    ):
        run = _Run(replace(request, progress=reported), store, labels)
        found = run.plain(*samples) if given is None else run.given(*samples)
    names = tuple(ColumnNames.of(side) for side in sides)
    results = [
        replace(result, model=None if parts is None else FittedModel(names, *parts))
        for result, parts in found
    ]
    return results if store is None else [store.with_warnings(result) for result in results]


Found = list[tuple[MIResult, tuple[FoldEnsemble, ...] | None]]  # results, and their models


@dataclass(frozen=True)
class _Run:
    """A request at work.

    Args:
        request: What to estimate and how.
        store: Where finished folds are stored.
        labels: A warning of the numbers that trained methods read as labels.
    """

    request: Request
    store: Checkpoint | None
    labels: tuple[Caution, ...] = ()

    def plain(self, raw: Sample) -> Found:
        """Return the information of x and y by each method."""
        sample = raw.without_constants()
        estimates = self._estimates(sample, Assessor(sample, self.request.seed), "whole")
        return [(e.result, _ensembles((raw, e))) for e in estimates]

    def given(self, *raw: Sample) -> Found:
        """Return the information of x and y given z, from samples of y and z, of z, and of y."""
        both, known, pair = (sample.without_constants() for sample in raw)
        seed, progress, budget = self.request.seed, self.request.progress, self.request.budget
        parts = []
        for i, (sample, name) in enumerate([(both, "whole"), (known, "known")]):
            share = progress_of_part(progress, i, 2)
            half = replace(self.request, progress=share, budget=budget and budget / 2)
            assess = Assessor(sample, seed, test=False)
            parts.append(replace(self, request=half)._estimates(sample, assess, name))
        p_value, found = None, []
        with suppress(DataError):  # too few rows for the test, or a series, have an estimate still
            p_value = conditional_test(
                pair, known.y, z_discrete=known.y_discrete, seed=seed
            ).p_value
        for a, b in zip(*parts, strict=True):
            result = conditional_result(a.result, b.result, pair, p_value)
            result = _described(result, pair, seed, known)
            found.append((result, _ensembles((raw[0], a), (raw[1], b))))
        return found

    def _estimates(self, sample: Sample, assess: Assessor, part: str) -> list[Estimate]:
        """Return the estimates of all methods on one sample, in their order."""
        request, seed = self.request, self.request.seed
        estimators = [estimator_for(m, request.preset, sample, seed) for m in request.methods]
        if sample.is_constant():
            zeros, warnings = np.zeros(len(sample)), sample.warnings
            results = [result_from_pointwise(zeros, e.name, warnings) for e in estimators]
            return [Estimate(_described(result, sample, seed), ()) for result in results]
        if self.store is not None:
            for estimator in estimators:
                check_packable(estimator)
        estimators = _within(request.budget, estimators, request.folds)
        groups = _by_training(estimators)
        if any(isinstance(e, TrainedEstimator) for e in estimators):
            assess = assess.started()
        found: dict[int, Estimate] = {}
        for i, places in enumerate(groups):
            progress = progress_of_part(request.progress, i, len(groups))
            members = [estimators[place] for place in places]
            estimates = self._fit(members, sample, assess, progress, f"{part}-{i}")
            found.update(zip(places, estimates, strict=True))
        for i, estimator in enumerate(estimators):
            result = _described(found[i].result, sample, getattr(estimator, "seed", seed))
            found[i] = replace(found[i], result=result)
        return [found[i] for i in range(len(estimators))]

    def _fit(
        self,
        group: Sequence[MIEstimator],
        sample: Sample,
        assess: Assessor,
        progress: Progress | None,
        name: str,
    ) -> Iterator[Estimate]:
        """Yield the estimates of methods that share one training."""
        first, request = group[0], self.request
        if not isinstance(first, TrainedEstimator):
            yield _untrained(first, sample, request, progress)
            return
        critic = getattr(first, "critic", None)
        store = None if self.store is None else self.store.part(name, critic)
        options = CrossFitOptions(request.folds, request.n_jobs, progress, request.callbacks, store)
        fit = first.cross_fit(sample, options)
        for estimator in group:
            if isinstance(estimator, TrainedEstimator):
                result = assess(estimator.reading(fit, sample), fit, estimator)
                warnings = (*result.warnings, *self.labels)
                yield Estimate(replace(result, warnings=warnings), fit.models)


def _within(
    budget: float | None, estimators: Sequence[MIEstimator], folds: int
) -> list[MIEstimator]:
    """Return the estimators with their share of the seconds; those without a training need none.

    Other processes may start late, so the budget does not count on them.
    """
    if budget is None:
        return list(estimators)
    trained = [e for e in estimators if isinstance(e, TrainedEstimator)]
    seconds = budget / (len(_by_training(trained)) or 1) / folds
    return [e.within(seconds) if isinstance(e, TrainedEstimator) else e for e in estimators]


def _by_training(estimators: Sequence[MIEstimator]) -> list[list[int]]:
    """Return the positions of the estimators that one training serves, by training."""
    groups: dict[Any, list[int]] = {}
    for i, estimator in enumerate(estimators):
        key = estimator.shared_training() if isinstance(estimator, TrainedEstimator) else i
        groups.setdefault(key, []).append(i)
    return list(groups.values())


def _untrained(
    estimator: MIEstimator, sample: Sample, request: Request, progress: Progress | None
) -> Estimate:
    """Return the estimate of a method that trains nothing, or of a user's own."""
    own = type(estimator).measure is not UntrainedEstimator.measure
    if isinstance(estimator, UntrainedEstimator) and not own:
        found = estimator.estimate_sample(sample)
    else:
        folds, n_jobs = request.folds, request.n_jobs
        result = estimator.measure(sample, folds=folds, n_jobs=n_jobs, progress=progress)
        found = Estimate(result, None)
    if sample.times is None and sample.labels is sample.copies:
        return found
    ignored = Caution(
        "ungrouped",
        f"{found.result.method} assumes independent rows: it ignores groups and order",
        "Use method='demi', or deminat.independence_test",
    )
    warnings = (*found.result.warnings, ignored)
    return replace(found, result=replace(found.result, warnings=warnings))


def _ensembles(*fits: tuple[Sample, Estimate]) -> tuple[FoldEnsemble, ...] | None:
    """Return the models that were fitted to samples, if all are known."""
    ensembles = [FoldEnsemble.of(raw, e.models) for raw, e in fits if e.models is not None]
    return tuple(ensembles) if len(ensembles) == len(fits) else None


def _described(
    result: MIResult, sample: Sample, seed: int, known: Sample | None = None
) -> MIResult:
    """Return a result with the data and settings behind it."""
    run = describe_run(sample, seed, known)
    return replace(result, diagnostics=replace(result.diagnostics, run=run), rows=sample.rows)
