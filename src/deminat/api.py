"""The two questions most users ask: `estimate` and `compare`."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from .data.sample import LEAST_PAIRS, NanPolicy, Sample, as_sample, as_samples_given, describe_run
from .errors import DataError
from .estimators.base import MIEstimator
from .estimators.fitted import ColumnNames, FittedModel, FoldEnsemble
from .estimators.flows import GM
from .estimators.neural import Estimator
from .estimators.recipes import Preset
from .estimators.registry import Method, estimator_for
from .estimators.scores import result_from_pointwise
from .inference import Assessor, conditional_result, conditional_test
from .objectives import DEMI, JSD
from .persistence.checkpoints import Checkpoint, open_checkpoint
from .persistence.serialise import check_packable
from .results import Caution, MIResult
from .runtime.pool import worker_pool
from .runtime.progress import Progress, progress_of_part
from .training.callbacks import Callback
from .training.config import AUTO

__all__ = ["Ask", "compare", "estimate", "given_z", "plain", "told"]

# What estimators have in common whose trainings are the same, besides what they train as.
_SHARED = "critic", "scaling", "training", "start", "seed", "budget", "correct"


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
            with gaps between them. `False` if rows were sorted by something that means nothing:
            that neighbours are alike is then no matter.
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
    if not isinstance(n_jobs, int) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a number of processes, -1 for all cores; got {n_jobs!r}")
    rows = {"groups": groups, "order": order, "nan": nan, "least": LEAST_PAIRS}
    rows |= {"max_rows": max_rows, "seed": seed}
    settings: dict[str, Any] = {"methods": methods, "preset": preset, "folds": folds, "seed": seed}
    if given is None:
        samples: tuple[Sample, ...] = (as_sample(x, y, **rows),)
    else:
        samples = as_samples_given(x, y, given, **rows)
    shapes = [sample.y.shape[1:] for sample in samples]
    about = {**settings, "budget": budget, "columns": shapes}
    jobs = min(effective_n_jobs(n_jobs), folds)
    with open_checkpoint(checkpoint, samples[0], about) as keep, worker_pool(jobs):
        ask = partial(_compared, **settings, n_jobs=n_jobs, callbacks=callbacks, keep=keep)
        if given is None:
            results = plain(ask, samples[0], seed, budget, progress)
        else:
            results = given_z(ask, samples, seed, budget, progress)
    sources = tuple(ColumnNames.of(side) for side in ((x, y) if given is None else (x, y, given)))
    results = [replace(r, model=r.model and FittedModel(sources, *r.model)) for r in results]
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
        same = [result_from_pointwise(nothing, e.name, sample.warnings) for e in estimators]
        return [replace(told(result, sample, seed), model=()) for result in same]
    if keep is not None:
        for estimator in estimators:
            check_packable(estimator)
    estimators = _within(budget, estimators, folds)
    trainings = list(_by_training(estimators).values())
    if any(isinstance(e, GM | Estimator) for e in estimators):
        assess = assess.begun()
    results: dict[int, MIResult] = {}
    for i, members in enumerate(trainings):
        how = {
            "folds": folds,
            "n_jobs": n_jobs,
            "progress": progress_of_part(progress, i, len(trainings)),
        }
        heard = {"callbacks": callbacks, "keeper": keep and keep.part(f"{part}-{i}")}
        answers = _measure([estimators[j] for j in members], sample, assess, how, heard)
        results.update(zip(members, answers, strict=True))
    return [told(results[j], sample, getattr(e, "seed", seed)) for j, e in enumerate(estimators)]


def _within(budget: float | None, estimators: list[MIEstimator], folds: int) -> list[MIEstimator]:
    """Return the estimators with their share of the seconds; those without a training need none.

    Other processes may come late, so nobody counts on them.
    """
    if budget is None:
        return estimators
    if any(isinstance(e, GM) for e in estimators):
        raise ValueError("gm has no budget: its flows are trained to the end; leave budget out")
    trainings = sum(isinstance(group, tuple) for group in _by_training(estimators)) or 1
    seconds = budget / trainings / folds
    return [replace(e, budget=seconds) if isinstance(e, Estimator) else e for e in estimators]


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
        results = [assess(first.reading(fit, sample), fit, is_default=False)]
    elif isinstance(first, Estimator):
        fit = first.cross_fit(sample, **how, **heard)
        objectives = [e.objective for e in group if isinstance(e, Estimator)]
        readings = zip(first.readings(fit, objectives, sample), objectives, strict=True)
        is_validated = first.training == AUTO
        results = [
            assess(result, fit, isinstance(o, DEMI | JSD), is_validated) for result, o in readings
        ]
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


Ask = Callable[..., list[MIResult]]  # from a sample and how to assess it


def plain(
    ask: Ask,
    raw: Sample,
    seed: int,
    budget: float | None,
    progress: Progress | None,
) -> list[MIResult]:
    """Return the information of x and y, with what was fitted."""
    sample = raw.without_constants()
    found = ask(sample, Assessor(sample, seed), budget=budget, progress=progress, part="whole")
    return [_with_parts(result, (raw, result)) for result in found]


def given_z(
    ask: Ask,
    raw: Sequence[Sample],
    seed: int,
    budget: float | None,
    progress: Progress | None,
) -> list[MIResult]:
    """Return the information of x and y given z, with what was fitted."""
    both, known, pair = (sample.without_constants() for sample in raw)
    half = None if budget is None else budget / 2
    of_both, of_known = (
        ask(
            sample,
            Assessor(sample, seed, test=False),
            budget=half,
            progress=progress_of_part(progress, i, 2),
            part=part,
        )
        for i, (sample, part) in enumerate([(both, "whole"), (known, "known")])
    )
    p_value = _p_value_given(pair, known, seed)
    results = []
    for a, b in zip(of_both, of_known, strict=True):
        result = told(conditional_result(a, b, pair, p_value), pair, seed, known)
        results.append(_with_parts(result, (raw[0], a), (raw[1], b)))
    return results


def _with_parts(result: MIResult, *fits: tuple[Sample, MIResult]) -> MIResult:
    """Return a result with what was fitted to samples, if the method tells it."""
    if any(fit.model is None for _, fit in fits):
        return replace(result, model=None)
    return replace(result, model=tuple(FoldEnsemble.of(raw, fit.model) for raw, fit in fits))


def _p_value_given(pair: Sample, known: Sample, seed: int) -> float | None:
    try:
        return conditional_test(pair, known.y, seed=seed).p_value
    except DataError:  # few rows, or a series, have an estimate all the same
        return None


def told(result: MIResult, sample: Sample, seed: int, known: Sample | None = None) -> MIResult:
    """Return a result that knows of what and by which seed it is."""
    run = {"run": describe_run(sample, seed, known)}
    return replace(result, diagnostics={**result.diagnostics, **run}, rows=sample.rows)
