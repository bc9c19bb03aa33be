"""Information and independence given a third: exact values, levels, power, and the command."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import deminat
from deminat import DataError
from deminat.cli import app
from deminat.data.sample import as_samples_given
from deminat.inference.regressions import Ridge, Units
from deminat.report import render
from deminat.studies.bench.given import _METHODS, _STRENGTHS, BENCHES, FAMILIES, _Noise

N = 1_500


def triple(kind, n=N, seed=0):
    """Return x, y and z with I(x; y | z) in nats."""
    rng = np.random.default_rng(seed)
    z, e, f = rng.normal(size=(3, n))
    x = z + e
    if kind == "chain":
        return x, z + f, z, 0.0
    if kind == "common":  # y sees both
        return x, x + z + f, z, np.log(2) / 2
    if kind == "collider":  # x and y are independent until their sum is known
        return e, f, e + f + 0.5 * z, np.log((1.25**2) / (2.25 * 0.25)) / 2
    return x, np.column_stack([x + f, rng.normal(size=n)]), rng.normal(size=n), np.log(3) / 2


@pytest.mark.parametrize("kind", ["chain", "common", "collider", "apart"])
@pytest.mark.parametrize(("method", "within"), [("gaussian", 0.05), ("demi", 0.06), ("ksg", 0.15)])
def test_gaussians_have_their_exact_values(kind, method, within):
    x, y, z, truth = triple(kind)
    result = deminat.estimate(x, y, given=z, method=method, folds=2)
    assert result.mi == pytest.approx(truth, abs=within)
    assert result.pointwise.mean() == pytest.approx(result.mi)
    assert 0 < result.standard_error < 0.06
    assert (result.p_value > 0.01) == (kind == "chain")
    if method == "demi":
        low, high = result.interval
        assert low - 0.01 <= truth <= high + 0.01
    assert result.lower_bound is None


def test_the_difference_is_known_better_than_its_parts():
    x, y, z, _ = triple("common")
    result = deminat.estimate(x, y, given=z, method="gaussian")
    parts = [result.diagnostics[key] for key in ("of_both", "of_given")]
    assert result.mi == pytest.approx(parts[0]["mi"] - parts[1]["mi"])
    apart = np.hypot(*(part["standard_error"] for part in parts))
    assert result.standard_error < 0.8 * apart
    json.dumps(result.to_dict())


def test_folds_are_shared_whatever_is_known():
    x, y, z, _ = triple("chain", n=400)
    y, z = np.round(y), np.round(z)  # rows of x and z recur more often than rows of all three
    both, known, pair = as_samples_given(np.round(x), y, z)
    assert both.labels is known.labels is pair.labels
    assert (both.y.shape[1], known.y.shape[1], pair.y.shape[1]) == (2, 1, 1)


def test_missing_values_of_any_side_are_left_out_of_all():
    x, y, z, _ = triple("chain", n=100)
    z[:10] = np.nan
    with pytest.raises(DataError, match=r"NaN or inf in 10 of 100 rows"):
        deminat.estimate(x, y, given=z, method="gaussian")
    assert deminat.estimate(x, y, given=z, method="gaussian", nan="omit").n == 90
    with pytest.raises(DataError, match="x has 100 rows, y 100 and given 99"):
        deminat.estimate(x, y, given=z[1:], method="gaussian")


def test_images_may_be_given():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(60, 2, 3, 3))
    both, known, _ = as_samples_given(rng.normal(size=60), rng.normal(size=60), images)
    assert both.y.shape == (60, 19)
    assert known.y_names[:2] == ("column 0[0]", "column 0[1]")


def test_the_level_holds_where_z_explains_everything():
    found = []
    for seed in range(40):
        x, y, z, _ = triple("chain", n=200, seed=seed)
        found.append(deminat.independence_test(x, y, given=z, permutations=199).p_value)
    assert sum(p <= 0.05 for p in found) <= 6  # seven of forty: once in 300 times
    assert deminat.independence_test(x, y).p_value < 0.01  # without z


@pytest.mark.parametrize("kind", ["line", "spread", "bent"])
def test_what_goes_beyond_z_is_found(kind):
    rng = np.random.default_rng(0)
    z, e, f = rng.normal(size=(3, 600))
    y = {"line": z + 0.4 * e + f, "spread": z + e * f, "bent": np.sin(2 * z) + e**2 + f}[kind]
    assert deminat.independence_test(z + e, y, given=z).p_value < 0.01


def drawn(family, shape="none", n=500, seed=0):
    """Return x, y and z of a family of the bench."""
    rng = np.random.default_rng([seed, 77])
    return FAMILIES[family](rng, _Noise(rng, n, shape))


@pytest.mark.parametrize("family", ["tight", "heavy", "mixed", "spread"])
def test_the_level_holds_whatever_the_noise_and_the_columns_are(family):
    found = []
    for seed in range(40):
        x, y, z = drawn(family, seed=seed)
        found.append(deminat.independence_test(x, y, given=z, seed=seed).p_value)
    assert sum(p <= 0.05 for p in found) <= 7  # eight of forty: once in 1,400 times
    assert min(found) < 0.5 < max(found)


@pytest.mark.parametrize("shape", ["line", "bend", "varying"])
@pytest.mark.parametrize("family", ["tight", "mixed", "wide"])
def test_dependence_of_any_shape_is_found(family, shape, monkeypatch):
    monkeypatch.setitem(_STRENGTHS, shape, 0.6)
    x, y, z = drawn(family, shape)
    assert deminat.independence_test(x, y, given=z).p_value < 0.01


def test_nothing_depends_on_a_constant_or_on_what_z_determines():
    rng = np.random.default_rng(0)
    z, e = rng.normal(size=(2, 300))
    for x, y in ((np.ones(300), z + e), (z, 2 * z + 1), (z, e), (z > 0, e)):
        given = np.column_stack([z, z > 0])
        assert deminat.independence_test(x.astype(float), y, given=given).p_value == 1
    label = rng.integers(0, 4, 300).astype(float)
    assert deminat.independence_test(label, 3 - label, given=label).p_value == 1
    given = np.ones(300)
    assert deminat.independence_test(z, e, given=given).p_value > 0.01
    assert deminat.independence_test(z, z + e, given=given).p_value < 0.01


def test_codes_of_labels_may_be_in_any_order():
    rng = np.random.default_rng(0)
    label = rng.integers(0, 5, 800)
    effect = np.array([0.0, 2.0, -1.0, 1.0, 3.0])[label]
    x, y = effect + rng.normal(size=(2, 800))
    for codes in (np.arange(5), np.array([3, 0, 4, 1, 2])):
        given = codes[label].astype(float)
        assert deminat.independence_test(x, y, given=given).p_value > 0.01
        assert deminat.independence_test(x, given, given=y).p_value < 0.01


def test_counts_with_rare_values_keep_the_level():
    found = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        z = rng.gamma(2, size=500)
        x, y = rng.poisson(z).astype(float), rng.poisson(2 * z).astype(float)
        found.append(deminat.independence_test(x, y, given=z).p_value)
    assert sum(p <= 0.05 for p in found) <= 7  # eight of thirty at 8%: once in 300 times


def test_many_columns_a_side_are_tested():
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, 300, 40))
    z = rng.normal(size=(300, 30))
    y = noise + 0.5 * x
    assert deminat.independence_test(x, noise, given=z).p_value > 0.01
    assert deminat.independence_test(x, y, given=z).p_value < 0.01


@pytest.mark.parametrize("size", [1, 3, 20])
def test_residuals_are_those_of_fits_without_the_unit(size):
    rng = np.random.default_rng(0)
    n, penalty = 60, 0.1
    features, of = rng.normal(size=(n, 4)), rng.normal(size=(n, 2))
    features -= features.mean(axis=0)
    codes = np.arange(n) // size
    ridge = Ridge.on(features)
    found = ridge.residuals(of, ridge.coefficients(of), penalty, Units.of(codes))
    table = np.column_stack([np.ones(n), features])
    for code in (0, codes.max()):
        held = codes == code
        kept = table[~held]
        squares = kept.T @ kept + n * penalty * np.diag([0, 1, 1, 1, 1])
        fitted = np.linalg.solve(squares, kept.T @ of[~held])
        slack = 0.02 if size > 1 else 1e-9  # the block of several rows is damped by 0.001
        assert found[held] == pytest.approx(of[held] - table[held] @ fitted, abs=slack)


def test_units_are_found_by_their_size():
    units = Units.of(np.array([0, 1, 1, 2, 3, 3]))
    assert units.of_one.tolist() == [0, 3]
    assert [rows.tolist() for rows in units.of_more] == [[[1, 2], [4, 5]]]


def test_a_bench_counts_rejections(monkeypatch):
    monkeypatch.setitem(_METHODS, "deminat", replace(_METHODS["deminat"], runs=2))
    cell = {"method": "deminat", "n": 200, "family": "chain", "dependence": "none", "seed": 0}
    row = BENCHES["given"].run(cell)
    assert row["runs"] == 2
    assert 0 <= row["rejected"] <= 2
    x, y, z = drawn("chain", "line", 2_000)
    assert _METHODS["gcm"].test(x, y, z, 0) < 0.05
    monkeypatch.setattr("deminat.studies.bench.given.find_spec", {"sklearn": True}.get)
    assert {c["method"] for c in BENCHES["given"].cells([0])} == {"deminat", "gcm"}


def test_rows_of_a_group_are_one():
    rng = np.random.default_rng(0)
    of = np.repeat(np.arange(60), 10)
    x, y, z = rng.normal(size=(3, 60))[:, of] + 0.1 * rng.normal(size=(3, 600))
    assert deminat.independence_test(x, y, given=z).p_value < 0.01  # as if rows were independent
    assert deminat.independence_test(x, y, given=z, groups=of).p_value > 0.01


def test_what_cannot_be_tested_is_an_error():
    x, y, z, _ = triple("chain", n=40)
    with pytest.raises(DataError, match="40 rows or groups are too few"):
        deminat.independence_test(x, y, given=z)
    with pytest.raises(DataError, match="no test given z for rows in the order of time"):
        deminat.independence_test(*triple("chain", n=200)[:2], given=np.arange(200), order=True)
    assert deminat.estimate(x, y, given=z, method="gaussian").p_value is None


def test_nothing_is_known_from_a_constant():
    x, y, _, _ = triple("common", n=300)
    alone = deminat.estimate(x, y, method="gaussian")
    result = deminat.estimate(x, y, given=np.ones(300), method="gaussian")
    assert result.mi == pytest.approx(alone.mi)
    assert any(w.code == "constant" for w in result.warnings)


def test_the_command_takes_columns_that_are_known(tmp_path):
    x, y, z, truth = triple("common", n=800)
    path = tmp_path / "rows.csv"
    pl.DataFrame({"x": x, "y": y, "z": z}).write_csv(path)

    def run(*words):
        result = CliRunner().invoke(app, [*words, str(path), "--json"])
        return json.loads(result.stdout) if result.exit_code == 0 else str(result.exception)

    columns = "--x", "x", "--y", "y", "--given", "z"
    found = run("estimate", *columns, "--method", "gaussian")
    assert found["mi"] == pytest.approx(truth, abs=0.07)
    assert run("test", *columns)["p_value"] < 0.01
    assert "column 'z' is named twice" in run("test", "--x", "x", "--y", "y,z", "--given", "z")


def test_a_report_says_what_is_given(tmp_path):
    x, y, z, _ = triple("common", n=200)
    frame = pl.DataFrame({"dose": x, "pulse": y, "age": z})
    result = deminat.estimate(frame["dose"], frame["pulse"], given=frame["age"], method="gaussian")
    page = result.to_html()
    assert "about pulse beyond what age tells" in page


def test_the_report_of_a_difference_names_what_is_given_and_shows_learning_curves():
    x, y, z, _ = triple("common", n=600)
    frames = (pl.DataFrame({name: a}) for name, a in (("dose", x), ("pulse", y), ("age", z)))
    x, y, z = frames
    page = render([deminat.estimate(x, y, given=z, preset="quick", folds=2)])
    assert "<title>dose and pulse given age:" in page
    assert "The curves are of dose with pulse and age." in page
    assert "trains nothing" not in page
    (nothing,) = deminat.compare(x, y, given=z, methods=["gaussian"])
    assert "gaussian trains nothing" in render([nothing])
    page = render([replace(nothing, mi=-0.01, p_value=0.001)])
    assert "shown, by a test that is more sensitive than the estimate (p = 0.001)" in page
