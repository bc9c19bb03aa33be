"""The pool of experts: tables, classes, judgements and weights."""

from types import SimpleNamespace

import numpy as np
import pytest

import deminat
from common import QUICK
from deminat import Estimator
from deminat.critics.baselines.base import Frames, log_ratio
from deminat.critics.baselines.classes import ClassNormals
from deminat.critics.baselines.columns import ColumnPairs
from deminat.critics.baselines.curve import NoiseAround
from deminat.critics.baselines.elliptical import Elliptical, StudentRanks
from deminat.critics.baselines.experts import EXPERTS, closed_form_experts
from deminat.critics.baselines.hidden import HiddenClasses
from deminat.critics.baselines.table import Cells, Table
from deminat.data.sample import as_sample
from deminat.data.splits import hold_out
from deminat.data.transforms import Views
from deminat.estimators.contrastive import (
    Networks,
    canonical_scales,
    related_columns,
    used_columns,
)
from deminat.estimators.fitted import PooledScorer
from deminat.estimators.judging import Judgement, JudgingRows, admitted, pool_weights
from deminat.estimators.normaliser import LogNormalisers, log_normalisers
from deminat.estimators.pooled import Pool, _may_need_network, _Refits, _scorer
from deminat.estimators.scaling import Scales, remembered_features
from deminat.persistence.serialise import pack, unpack
from deminat.tasks import additive_uniform, correlated_student, gaussian, spiral
from deminat.tasks.composed import embedding, spot_images, t_copula
from deminat.tasks.latent import answers, profiles

RNG = np.random.default_rng


def labels(n, k=6, seed=0, codes=None):
    """Two labels of k values that agree in 60% of the rows, and their exact information."""
    rng = RNG(seed)
    x = rng.integers(k, size=n)
    y = np.where(rng.random(n) < 0.6, x, rng.integers(k, size=n))
    same, other = 0.6 / k + 0.4 / k**2, 0.4 / k**2
    exact = k * same * np.log(same * k**2) + k * (k - 1) * other * np.log(other * k**2)
    codes = np.arange(k) if codes is None else codes
    return codes[x][:, None].astype(float), codes[y][:, None].astype(float), exact


def split(x, y):
    half = len(x) // 2
    return x[:half], y[:half], x[half:], y[half:]


# Tables


def test_a_table_of_labels_is_the_exact_one():
    x, y, exact = labels(40_000)
    table = next(Table.candidates(*split(x, y)))
    assert table.x_cells.exact
    assert table.x_cells.count == table.y_cells.count == 6
    assert table.score(x, y).mean() == pytest.approx(exact, abs=0.01)
    assert np.allclose(log_ratio(table.left(x), table.right(y)), table.score(x, y))


@pytest.mark.parametrize("width", [0.0, 1.5])
def test_tables_are_normalised_in_rows_and_columns(width):
    x, y = gaussian(1, 1.0).sample(4_000, seed=0)
    found = [t for t in Table.candidates(*split(x, y)) if t.width == width]
    for table in found:
        scores = table.left(x[:2000]) @ table.right(y[:2000]).T  # the rows that it was fitted to
        assert np.exp(scores).mean(axis=1) == pytest.approx(1, abs=0.02)
        assert np.exp(scores).mean(axis=0) == pytest.approx(1, abs=0.02)
    assert found


def test_a_frequent_value_has_a_cell_of_its_own():
    column = np.concatenate([np.zeros(500), RNG(0).random(500)])[:, None]
    cells = Cells.of_ranks(column, 16)
    assert (cells(column)[:500] == cells(np.zeros((1, 1)))[0]).all()
    assert (cells(column)[500:] != cells(np.zeros((1, 1)))[0]).mean() > 0.9


def test_a_value_that_was_never_seen_tells_nothing():
    x, y, _ = labels(2_000)
    table = next(Table.candidates(*split(x, y)))
    assert (table.score(np.full((3, 1), 17.0), y[:3]) == 0).all()
    rows = np.hstack([x, x])
    cells = Cells.of_values(rows)
    assert (cells(np.array([[0.0, 1.0], [2.0, 2.0]])) == [cells.count, 2]).all()


# Classes


@pytest.mark.parametrize("turned", [False, True])
def test_normals_of_classes_find_what_means_and_widths_tell(turned):
    rng = RNG(0)
    label = rng.integers(3, size=8_000)
    mean, width = np.array([-2.0, 0.0, 2.0])[label], np.array([0.5, 1.0, 0.3])[label]
    number = (mean + width * rng.normal(size=8_000))[:, None]
    sides = (number, label[:, None].astype(float)) if turned else (label[:, None] * 1.0, number)
    grid = np.linspace(-8, 8, 20_001)
    densities = [
        np.exp(-0.5 * ((grid - m) / s) ** 2) / (s * np.sqrt(2 * np.pi))
        for m, s in ((-2, 0.5), (0, 1.0), (2, 0.3))
    ]
    total = np.mean(densities, axis=0)
    exact = np.mean([np.sum(d * np.log((d + 1e-300) / total)) for d in densities]) * 16 / 20_000
    best = max(
        log_ratio(c.left(sides[0]), c.right(sides[1])).mean()
        for c in ClassNormals.candidates(*sides)
    )
    assert best == pytest.approx(exact, abs=0.03)


# Curves and pairs of columns


@pytest.mark.parametrize("turned", [False, True])
def test_noise_around_a_curve_has_edges_and_is_normalised(turned):
    task = additive_uniform(0.1)
    x, y = task.sample(4_000, seed=0)
    (x, y) = (y, x) if turned else (x, y)
    means = []
    for found in NoiseAround.candidates(*split(x, y)):
        left, right = found.left(x[2000:]), found.right(y[2000:])
        means.append(log_ratio(left, right, found.components).mean())
        some = left[:300].reshape(300, found.components, -1)
        others = right[300:].reshape(1700, found.components, -1)
        table = np.exp(np.einsum("mcr,kcr->mkc", some, others)).sum(axis=2)
        assert np.log(table.mean(axis=1)).mean() == pytest.approx(0, abs=0.02)
    assert max(means) == pytest.approx(task.mi, abs=0.08)


def test_noise_whose_size_depends_on_x_is_found():
    x = RNG(0).normal(size=(6_000, 1))
    y = np.exp(x) * RNG(1).normal(size=(6_000, 1))
    found, _ = NoiseAround.candidates(*split(x, y))
    each = log_ratio(found.left(x[3000:]), found.right(y[3000:]), found.components)
    assert each.mean() > 0.38  # of .43 nats


def test_independent_pairs_of_columns_are_added_up_whatever_their_order():
    rng = RNG(0)
    x = rng.normal(size=(4_000, 6))
    noise = rng.normal(size=(4_000, 6))
    y = (0.6 * x + 0.8 * noise)[:, ::-1].copy()
    y[:, 0] = np.exp(x[:, 5]) * noise[:, 0]
    copulas, tables = ColumnPairs.candidates(*split(x, y))
    assert copulas.x_columns == (0, 1, 2, 3, 4, 5)
    assert copulas.y_columns == (5, 4, 3, 2, 1, 0)
    assert tables.name == "sum over 6 pairs of columns, 1 by tables"  # of the last, only the size
    mean = log_ratio(copulas.left(x[2000:]), copulas.right(y[2000:])).mean()
    assert mean == pytest.approx(-5 / 2 * np.log(1 - 0.36), abs=0.1)


# Hidden classes

NUMBERS = (False,) * 12, (False,) * 12


def groups(n, seed):
    """Rows of five groups whose centres are apart in twelve columns a side."""
    rng = RNG(seed)
    centres = 1.5 * RNG(7).normal(size=(2, 5, 12))
    group = rng.integers(5, size=n)
    noise = rng.normal(size=(2, n, 12))
    return tuple(centres[side][group] + noise[side] for side in range(2))


def test_hidden_classes_are_found_in_many_columns():
    (x, y), (x_held, y_held) = groups(1_500, 0), groups(1_500, 1)
    *_, best = HiddenClasses.candidates(x, y, NUMBERS, x_held, y_held)
    left, right = best.left(x_held), best.right(y_held)
    assert 5 <= best.components <= 8
    assert log_ratio(left, right, best.components).mean() == pytest.approx(np.log(5), abs=0.1)
    scores = [
        log_ratio(left, np.roll(right, shift, axis=0), best.components) for shift in range(1, 400)
    ]
    assert np.log(np.exp(scores).mean(axis=0)).mean() == pytest.approx(0, abs=0.05)


def test_a_few_classes_that_know_far_less_than_a_copula_are_given_up():
    x, y, x_held, y_held = split(*gaussian(6, 2.0).sample(3_000, seed=0))
    labels = (False,) * 6, (False,) * 6
    all_of_them = [*HiddenClasses.candidates(x, y, labels, x_held, y_held)]
    few = [*HiddenClasses.candidates(x, y, labels, x_held, y_held, known=1.9)]
    assert len(few) < len(all_of_them)


def test_hidden_classes_of_numbers_and_labels_are_found():
    task = profiles(4, 3, 4, 1.5)
    labels = (False,) * 3 + (True,) * 4
    x, y, x_held, y_held = split(*task.sample(6_000, seed=0))
    *_, best = HiddenClasses.candidates(x, y, (labels, labels), x_held, y_held)
    oracle = task.log_ratio(x_held, y_held).mean()
    left, right = best.left(x_held), best.right(y_held)
    assert log_ratio(left, right, best.components).mean() == pytest.approx(oracle, abs=0.03)
    assert (unpack(pack(best)).left(x_held) == left).all()


# Elliptical columns


@pytest.mark.parametrize("margins", ["normal", "uniform"])
def test_a_student_copula_is_found_whatever_its_margins(margins):
    task = t_copula(4, 1.0, 3, margins)
    x, y, x_held, y_held = split(*task.sample(8_000, seed=0))
    *_, best = Elliptical.candidates(x, y, x_held, y_held)
    assert best.score(x_held, y_held) == pytest.approx(
        task.log_ratio(x_held, y_held).mean(), abs=0.03
    )
    assert "ranks" in best.name
    assert (unpack(pack(best)).right(y_held) == best.right(y_held)).all()
    assert best.refit(x, y).name == best.name


def test_columns_without_heavy_tails_need_no_sizes():
    assert not [*Elliptical.candidates(*split(*gaussian(5, 1.0).sample(4_000, seed=0)))]
    heavy = correlated_student(3, 1.0, 2)
    assert [*Elliptical.candidates(*split(*heavy.sample(4_000, seed=0)))]


def test_columns_that_determine_each_other_are_not_elliptical():
    x, y = correlated_student(2, 1.0, 2).sample(2_000, seed=0)
    twice = np.hstack([x, x @ [[1.0, 2.0], [3.0, 1.0]]])
    assert all("ranks" in e.name for e in Elliptical.candidates(*split(twice, y)))
    copies = np.hstack([x, x])
    assert not [*Elliptical.candidates(*split(copies, y))]
    (found, *_) = Elliptical.candidates(*split(x, y))
    assert found.refit(np.zeros((50, 2)), np.zeros((50, 2))) is found


def test_an_expert_of_singular_columns_leaves_the_others(monkeypatch):
    copulas = EXPERTS["copula"]

    def singular(fitted, held):
        yield next(copulas(fitted, held))
        raise np.linalg.LinAlgError("singular")

    sample = as_sample(*gaussian(2, 1.0).sample(400, seed=0))
    fitted, held = hold_out(sample, 1 / 6, 0)
    monkeypatch.setitem(EXPERTS, "copula", singular)
    names = [expert.name for expert in closed_form_experts(fitted, held)]
    assert names[0].startswith("Gaussian copula")
    assert not names[1].startswith("Gaussian copula")
    assert any(name.startswith("mixture") for name in names)


def test_the_slope_of_student_ranks():
    a = RNG(0).normal(size=(500, 2))
    scale, step = StudentRanks.fit(a, 3.0), 1e-5
    some = np.linspace(-1.5, 1.5, 7)[:, None] * [1.0, 0.7]
    slopes = (scale(some + step) - scale(some - step)) / (2 * step)
    np.testing.assert_allclose(scale.log_slope(some), np.log(slopes).sum(axis=1), atol=0.02)


def test_networks_see_several_columns_of_labels():
    assert _may_need_network(as_sample(*answers(2, 3, 3, 1.0).sample(200, seed=0)))
    x, y, _ = labels(200)
    assert not _may_need_network(as_sample(x, y))
    words = np.array(["a", "b", "c", "d", "e", "f"])[x[:, 0].astype(int)]
    assert not _may_need_network(as_sample(words, y))


# Networks


def test_a_network_is_normalised_in_both_directions():
    task = spiral(3, 1.0)
    sample = as_sample(*task.sample(2_000, seed=0))
    fitted, held = hold_out(sample, 1 / 6, 0)
    rows = JudgingRows.of(fitted, held)
    networks = Networks()
    one = networks.first(Scales.fit(Views, fitted), None, fitted, held, seed=0)
    judged = rows.judge(one.scorer(fitted))
    assert judged.is_normalised
    assert max(abs(judged.log_z.of_x), abs(judged.log_z.of_y)) < 0.03
    assert judged.score > 0.6
    more = networks.more(one, sample, seed=0)
    assert len(more.critics) == 3
    scorer = more.scorer(sample)
    assert (unpack(pack(scorer)).joint(held) == scorer.joint(held)).all()


def test_a_network_that_sees_related_columns_only():
    rng = RNG(0)
    x, y = rng.normal(size=(2, 1_500, 12))
    y[:, 3] = x[:, 7] ** 2 + 0.3 * y[:, 3]
    fitted, held = hold_out(as_sample(x, y), 1 / 6, 0)
    scales = Scales.fit(Views, fitted)
    columns = related_columns(scales, fitted)
    found = Networks().first(scales, columns, fitted, held, seed=0)
    assert found.history.stage.columns == (1, 1)
    assert found.scorer(fitted).joint(held).mean() > 0.7
    narrow = as_sample(fitted.x[:500, [7]], fitted.y[:500, 2:4])
    assert related_columns(Scales.fit(Views, narrow), narrow) is None


def test_a_network_that_is_far_behind_is_given_up():
    fitted, held = hold_out(as_sample(*gaussian(3, 1.0).sample(4_000, seed=0)), 1 / 6, 0)
    scales = Scales.fit(Views, fitted)
    free, beaten = (
        Networks().first(scales, None, fitted, held, seed=0, to_beat=nats) for nats in (0.5, 1.5)
    )
    assert beaten.history.steps == 300 < free.history.steps


# Judging and weighing


def test_the_truth_is_normalised_and_a_wrong_copula_of_heavy_tails_is_not():
    sample = as_sample(*correlated_student(8, 3.0, 5).sample(6_000, seed=0))
    fitted, held = hold_out(sample, 1 / 6, 0)
    rows = JudgingRows.of(fitted, held)
    (mixture, *_) = EXPERTS["mixture"](fitted, held)
    good = rows.judge(_scorer(mixture, fitted))
    assert good.is_normalised
    assert good.score == pytest.approx(3.0, abs=0.25)
    network = Estimator(seed=0).fit_sample(sample)
    bad = rows.judge(network.fitted_)
    assert max(bad.log_z.of_x, bad.log_z.of_y) > 0.2
    assert bad.score < good.score


def test_weights_go_to_the_expert_that_held_out_pairs_like():
    rng = RNG(0)
    good, bad = rng.normal(1.0, 0.5, 500), rng.normal(-1.0, 0.5, 500)
    weights = pool_weights([good, bad], 500)
    assert weights.sum() == pytest.approx(1)
    assert weights[0] > 0.9
    assert pool_weights([bad], 500).tolist() == [0.0, 1.0]  # nothing is better
    weak = rng.normal(0.05, 0.5, 100)
    assert pool_weights([weak], 100)[1] > 0.2
    assert pool_weights([weak], 100, is_something=True).tolist() == [1.0, 0.0]


def test_the_answer_does_not_depend_on_the_codes_of_a_label():
    exact = labels(3_000)[2]
    found = [
        deminat.estimate(*labels(3_000, codes=codes)[:2], folds=2).mi
        for codes in (np.arange(6), np.array([4, 1, 5, 0, 3, 2]), np.array([0.1, 7, -3, 2, 9, 4.5]))
    ]
    assert max(found) - min(found) < 0.005
    assert found[0] == pytest.approx(exact, abs=0.05)


def test_codes_of_a_label_beside_a_number_do_not_matter():
    rng = RNG(2)
    label, number = rng.integers(9, size=3_000), rng.normal(size=3_000)
    height = np.array([2, -1, 0, 3, -3, 1, -2, 4, 0.5])
    y = height[label] + number + 0.7 * rng.normal(size=3_000)
    found = [
        deminat.estimate(np.column_stack([codes[label], number]), y, folds=2)
        for codes in (np.argsort(np.argsort(height)), rng.permutation(9))
    ]
    assert abs(found[0].mi - found[1].mi) < 0.06  # their interval is .1 wide
    assert [c.code for c in found[0].warnings].count("labels") == 1


def test_numbers_that_are_declared_to_be_no_labels_have_no_cells_of_their_own():
    x, y, _ = labels(2_000, k=40, codes=RNG(0).permutation(40))
    as_numbers, as_labels = (
        deminat.estimate(x, y, folds=2, discrete=discrete) for discrete in (False, True)
    )
    assert "40 x 40" in as_labels.recipe
    assert as_labels.mi > as_numbers.mi - 0.02


def test_cells_are_merged_unless_their_rows_differ():
    rng = RNG(0)
    x, y = rng.random((2, 3_000))
    board = (np.floor(3 * x) + np.floor(3 * y)) % 2 == 0
    x, y = x[board], y[board]
    cells = Cells.of_ranks(x[:, None], 64)
    counts = np.zeros((64, 3))
    np.add.at(counts, (cells(x[:, None]), np.floor(3 * y).astype(int)), 1)
    joined = cells.joined(counts)
    assert 3 <= joined.count <= 5
    assert joined.most == 64
    alike = np.outer(np.full(64, 50.0), [0.2, 0.5, 0.3])
    assert cells.joined(alike).count == 1


def test_borders_of_merged_cells_lie_where_the_density_jumps():
    rng = RNG(0)
    x = rng.random((4_000, 1))
    y = np.where(x < 0.3717, 0, 1)[:, 0]
    cells = Cells.of_ranks(x, 16)
    counts = np.zeros((16, 2))
    np.add.at(counts, (cells(x), y), 1)
    coarse = cells.joined(counts)
    exact = coarse.refined(x, y)
    assert (exact(x) == y).mean() >= (coarse(x).clip(max=1) == y).mean()
    assert (exact(x).clip(max=1) == y).mean() > 0.999


NOBODY = SimpleNamespace(scales=SimpleNamespace(baseline=None), critic=None)


def judged(score, log_z, error, n=200):
    """A judgement of no expert in particular."""
    joint = np.full(n, score + log_z) + np.linspace(-0.1, 0.1, n)
    return Judgement(NOBODY, joint, LogNormalisers(log_z, log_z, error), 0.0, 9.0)


def test_an_expert_far_from_a_log_ratio_is_not_admitted_however_far_ahead():
    good = judged(0.5, 0.0, 0.01)
    mendable, wild, unknown = (
        judged(0.9, 0.15, 0.01),
        judged(0.9, 5.0, 0.01),
        judged(0.9, 0.4, 2.5),
    )
    assert len(admitted([good, mendable])) == 1  # good is far behind
    assert admitted([good, wild]) == [good]
    assert admitted([good, unknown]) == [good]


class RanAway:
    """A closed form whose fit to all rows gives other scores."""

    def __init__(self, nats):
        self.nats = nats
        self.components, self.frames, self.informative, self.name = 1, Frames(), True, "some"

    def refit(self, x, y):
        return RanAway(self.nats + 2.0)

    def left(self, x):
        return np.full((len(x), 1), self.nats)

    def right(self, y):
        return np.ones((len(y), 1))


def test_a_closed_form_that_runs_away_when_fitted_to_all_rows_stays_as_it_was():
    sample = as_sample(*gaussian(1, 0.5).sample(900, seed=0))
    fitted, held = hold_out(sample, 1 / 3, 0)
    first = JudgingRows.of(fitted, held).judge(_scorer(RanAway(0.4), fitted))
    assert _Refits(sample)(first) is first.expert


class Far:
    """Something fitted that gives one row odds of a thousand nats, and all others -0.5."""

    def joint(self, sample):
        return np.where(np.arange(len(sample)) == 7, 1_000.0, -0.5)


def test_one_far_row_does_not_choose_the_expert():
    sample = as_sample(*gaussian(1, 0.5).sample(900, seed=0))
    rows = JudgingRows.of(*hold_out(sample, 1 / 3, 0))
    assert Far().joint(rows.held).mean() > 2
    assert rows.joint(Far()).mean() < 0


def test_no_pair_has_more_than_rows_can_show():
    sample = as_sample(*gaussian(1, 0.5).sample(900, seed=0))
    pool = PooledScorer((), np.empty(0), log_nothing=30.0, highest=5.0)
    assert pool.joint(sample).max() == 5.0
    assert Pool().fit_sample(sample).scorer_.highest == pytest.approx(2 * np.log(900))


class Shifted:
    """The log ratio of Gaussians, a number of nats too high where x is above 0."""

    def __init__(self, task, nats):
        self.task, self.nats = task, nats

    def table(self, x, y):
        rows = [np.repeat(x.x, len(y), axis=0), np.tile(y.y, (len(x), 1))]
        found = self.task.log_ratio(*rows) + self.nats * (rows[0][:, 0] > 0)
        return found.reshape(len(x), len(y))


@pytest.mark.parametrize("nats", [0.0, 0.4])
def test_the_mean_log_normaliser_is_how_much_is_read_too_high(nats):
    task = gaussian(2, 1.0)
    found = log_normalisers(Shifted(task, nats), as_sample(*task.sample(1_000, seed=0)))
    assert found.of_x == pytest.approx(nats / 2, abs=0.08)
    assert found.mean == pytest.approx(nats / 2, abs=0.08)
    assert 0 < found.error < 0.05


def test_heavy_tails_are_not_read_too_high():
    task = correlated_student(5, 1.5, 4)
    x, y = task.sample(3_000, seed=1)
    pool = Pool(network=Estimator(training=QUICK)).measure(as_sample(x, y), folds=3)
    assert pool.mi == pytest.approx(task.log_ratio(x, y).mean(), abs=0.12)
    assert "mixture" in pool.diagnostics.recipe[0]


def test_a_pool_is_packed_and_unpacked():
    sample = as_sample(*gaussian(1, 0.5).sample(600, seed=0))
    scorer = Pool().fit_sample(sample).scorer_
    again = unpack(pack(scorer))
    assert (again.joint(sample) == scorer.joint(sample)).all()


def test_independent_columns_are_told_nothing():
    x, y = RNG(3).normal(size=(2, 2_000, 1))
    result = deminat.estimate(x, y, folds=3)
    assert abs(result.mi) < 0.01
    assert "nothing" in result.diagnostics.recipe[0]


def test_two_rows_do_not_outweigh_all_others():
    x = RNG(0).normal(size=1_500)
    y = x.copy()
    y[[5, 77]] = 3.0, -2.0
    result = deminat.estimate(x, y, folds=2)
    assert 5 < result.mi < 20
    assert result.interval[1] < 30
    found = {caution.code: str(caution) for caution in result.warnings}
    assert "infinite" in found
    assert "x and y are equal in 100% of the rows" in found["near_copies"]


@pytest.mark.parametrize("preset", ["auto", "quick"])
def test_neither_estimate_nor_interval_exceeds_the_entropy_of_a_label(preset):
    rng = RNG(1)
    label = rng.integers(3, size=400)
    number = label + 0.01 * rng.normal(size=400)
    result = deminat.estimate(label, number, folds=2, preset=preset)
    shares = np.bincount(label) / 400
    most = -(shares * np.log(shares)).sum() + 2 / 800
    assert 1.0 < result.mi <= most + 1e-12
    assert result.interval[1] <= most + 1e-12
    assert result.pointwise.mean() == pytest.approx(result.mi)


# Images, and canonical variables of many columns


def test_images_are_seen_through_convolutions():
    x, y = (rows.reshape(-1, 1, 16, 16) for rows in spot_images(1.0).sample(1_200, seed=0))
    result = deminat.estimate(x, y, folds=2)
    assert result.mi > 0.6
    assert "network" in result.recipe
    again = result.log_ratio(x[:50], y[:50])
    assert again.shape == (50,)


def test_canonical_variables_of_many_columns_show_what_few_hidden_ones_say():
    task = embedding(2, 1.5, 60, "wave")
    fitted, held = hold_out(as_sample(*task.sample(3_000, seed=0)), 1 / 6, 0)
    scales = canonical_scales(fitted)
    x, _ = scales(held)
    assert x.seen.shape[1] == 2 * scales.x_map.directions.shape[1] + 3 <= 51
    found = Networks().first(scales, None, fitted, held, seed=0)
    judged = JudgingRows.of(fitted, held).judge(found.scorer(fitted))
    assert judged.is_normalised
    assert judged.score > 1.1
    narrow = as_sample(fitted.x[:, :5], fitted.y[:, :5])
    assert canonical_scales(narrow) is None


def test_a_network_sees_the_columns_that_another_one_uses():
    rng = RNG(0)
    x, y = rng.normal(size=(4_000, 8)), np.abs(rng.normal(size=(4_000, 1)))
    y *= np.sign(x[:, [2]] * x[:, [5]])  # neither column alone says anything
    fitted, held = hold_out(as_sample(x, y), 1 / 6, 0)
    first = Networks().first(Scales.fit(Views, fitted), None, fitted, held, seed=0)
    used = used_columns(first, fitted, held)
    assert used.stage.columns == (2, 1)
    (seen,) = np.nonzero(np.isin(np.arange(8), used.x[used.x < 8]))
    assert seen.tolist() == [2, 5]


def test_features_are_found_once_while_they_are_remembered():
    sample = as_sample(*gaussian(2, 1.0).sample(100, seed=0))
    scales = Scales.fit(Views, sample)
    with remembered_features():
        first = scales(sample)
        assert scales(sample)[0] is first[0]
        assert scales(sample.take(np.arange(50)))[0] is not first[0]
    assert scales(sample)[0] is not first[0]
    assert (scales(sample)[0].seen == first[0].seen).all()
