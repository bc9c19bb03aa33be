"""A result is one readable line, a dictionary for JSON, and HTML that is safe to show."""

import dataclasses
import json
import math

import numpy as np
import pytest

from deminat import DEMI, KSG, MINE, Caution, Gaussian, MIResult
from deminat.data.sample import as_sample
from deminat.errors import printable
from deminat.estimators.scores import Scores, result_from_pointwise, result_from_scores
from deminat.records import Diagnostics
from deminat.results import nats_to
from deminat.tasks import gaussian

CAUTION = Caution("duplicates", "3 of 9 rows repeat another", "Find out why")
RESULT = MIResult(1.0, 0.1, 9, "demi", np.arange(9.0), (CAUTION,), Diagnostics(steps=(3, 4)))


def test_it_prints_as_one_line_with_its_unit_and_error():
    line = str(RESULT)
    assert line.startswith("1.000 nats  s.e. 0.100")
    assert "\n" not in line
    assert "n=9  demi" in line
    assert line.endswith("warnings: duplicates")


def test_the_line_says_what_the_error_does_not_cover():
    assert "training error not included" in str(RESULT)
    assert "training error not included" in RESULT._repr_html_()
    assert "training error not included" in RESULT.to_dict()["standard_error_covers"]


def test_without_warnings_the_line_does_not_speak_of_them():
    assert "warning" not in str(dataclasses.replace(RESULT, warnings=()))


def test_a_nat_is_1_443_bits():
    assert RESULT.bits == pytest.approx(1.442695)
    assert RESULT.describe("bits").startswith("1.443 bits  s.e. 0.144")
    assert RESULT.to_dict("bits")["mi"] == RESULT.bits
    assert RESULT.to_dict("bits")["standard_error"] == pytest.approx(0.1 / math.log(2))
    assert RESULT.to_dict("bits")["unit"] == "bits"
    assert nats_to("nats", 0.3) == 0.3


@pytest.mark.parametrize("unit", ["hartley", "Bits", "", None])
def test_an_unknown_unit_is_an_error_that_names_the_known_ones(unit):
    for call in (RESULT.describe, RESULT.to_dict, lambda u: nats_to(u, 1.0)):
        with pytest.raises(ValueError, match='"nats" or "bits"'):
            call(unit)


def test_the_dictionary_goes_through_json_unchanged():
    written = RESULT.to_dict()
    assert json.loads(json.dumps(written, allow_nan=False)) == written
    assert written["warnings"] == [dataclasses.asdict(CAUTION)]
    assert "pointwise" not in written


@pytest.mark.parametrize(
    "estimator", [KSG(), Gaussian(), Gaussian(ranks=True)], ids=lambda e: e.name
)
def test_what_estimators_answer_goes_through_json(estimator):
    written = estimator.measure(as_sample(*gaussian(2, 0.5).sample(50, seed=0))).to_dict()
    assert json.loads(json.dumps(written, allow_nan=False)) == written


def test_what_is_read_off_scores_goes_through_json():
    written = result_from_scores(DEMI(), Scores(np.ones(30), np.zeros((30, 2)))).to_dict()
    assert json.loads(json.dumps(written, allow_nan=False)) == written


def test_scores_beyond_any_number_raise_no_warning():
    scores = Scores(np.arange(200.0), np.full((200, 1), 800.0))  # warnings are errors here
    assert result_from_scores(MINE(), scores).mi == pytest.approx(99.5 - 800)


def test_html_is_escaped():
    bad = "<script>alert('1')</script>"
    page = MIResult(1, 0.1, 9, bad, np.zeros(9), (Caution(bad, bad, bad),))._repr_html_()
    assert "<script>" not in page
    assert page.count("&lt;script&gt;") == 4
    assert page.count("<tr>") == page.count("</tr>") == 5


def test_html_shows_both_units():
    assert "1.000 nats (1.443 bits)" in RESULT._repr_html_()


def test_it_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        RESULT.mi = 2.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        CAUTION.code = "other"


def test_repr_hides_the_arrays():
    shown = repr(dataclasses.replace(RESULT, pointwise=np.arange(9e5)))
    assert "array" not in shown
    assert "steps" not in shown
    assert "mi=1.0" in shown


def test_results_compare_and_hash_by_their_figures():
    same = dataclasses.replace(RESULT, pointwise=np.zeros(9), diagnostics=Diagnostics())
    assert same == RESULT
    assert len({same, RESULT}) == 1
    assert dataclasses.replace(RESULT, mi=1.1) != RESULT


def test_a_caution_reads_as_two_sentences():
    assert str(CAUTION) == "duplicates: 3 of 9 rows repeat another. Find out why."


def test_a_negative_estimate_is_reported_and_explained():
    result = result_from_pointwise(np.full(600, -0.01), "ksg")
    assert result.mi == pytest.approx(-0.01)
    assert [w.code for w in result.warnings] == ["negative"]


def test_few_pairs_have_a_warning():
    assert [w.code for w in result_from_pointwise(np.ones(499), "ksg").warnings] == ["underpowered"]
    assert not result_from_pointwise(np.ones(500), "ksg").warnings


def test_names_fit_on_one_line_of_a_terminal():
    assert printable("a\x1b[2J\n\r\x07b") == r"a\x1b[2J\n\r\x07b"
    assert printable("\u202edesrever") == r"\u202edesrever"
    assert printable("größe µ") == "größe µ"
    assert printable(3) == "3"
    assert len(printable("x" * 1000)) == 60


@pytest.mark.parametrize("estimator", [KSG(), Gaussian()], ids=lambda e: e.name)
def test_one_pair_is_too_few_for_an_estimate(estimator):
    x, y = gaussian(1, 0.5).sample(50, seed=0)
    with pytest.raises(ValueError, match="at least 2"):
        estimator.fit(x, y).estimate(x[:1], y[:1])


def test_a_figure_that_is_not_finite_is_none_in_json():
    diagnostics = Diagnostics(fold_means=(np.inf, 1.0), correction=np.nan)
    written = MIResult(1.0, 0.1, 2, "demi", np.zeros(2), diagnostics=diagnostics).to_dict()
    expected = {"unit": "nats", "fold_means": [None, 1.0], "correction": None}
    assert written["diagnostics"] == expected
    json.dumps(written, allow_nan=False)


def test_nothing_is_printed_as_minus_zero():
    assert str(MIResult(-1e-6, 0.1, 2, "demi", np.zeros(2))).startswith("0.000 nats")
