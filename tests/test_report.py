"""A report says it all on one page, escapes every name, and is readable on any screen."""

import html
import json
import math
import re
import shlex
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO

import numpy as np
import polars as pl
import pytest
from PIL import Image
from typer.testing import CliRunner

from deminat import Caution, DataError, MIResult, compare, estimate
from deminat.cli import app
from deminat.records import (
    CalibrationBin,
    Diagnostics,
    LearningCurve,
    RunDescription,
    SideDescription,
    Stage,
)
from deminat.report import About, check_path, render
from deminat.report.figures import Axis, calibration, comparison, learning, log_ratios
from deminat.tasks import gaussian

BAD = "<script>alert(1)</script>"
RNG = np.random.default_rng(0)
NORMS, RELATED = Stage("norms"), Stage("related", (3, 2))
CURVES = (
    (LearningCurve(NORMS, 100, (0.6, 0.55, 0.5)),),
    (LearningCurve(RELATED, 0, (0.6, 5.0)), LearningCurve(NORMS, 100, (0.7, 0.65, 0.65))),
)
RUN = RunDescription(
    seed=7,
    x=SideDescription((7,), (BAD, "b", "c", "d", "e")),
    y=SideDescription((1,), ("mek",)),
    given=None,
    dropped=4,
    groups=12,
    gap=None,
    versions={"deminat": "0.1.0", "python": "3.11.7"},
)
FULL = MIResult(
    1.0,
    0.1,
    500,
    "demi",
    RNG.normal(1, 1, 500),
    (Caution("duplicates", "3 of 9 rows repeat another", "Find out why"),),
    Diagnostics(
        recipe=("Gaussian copula",) * 2,
        steps=(150, 200),
        fold_means=(0.9, 1.1),
        training_means=(1.0, 1.2),
        correction=0.05,
        learning=CURVES,
        scaling="Views",
        calibration=tuple(CalibrationBin(p, p, 0.5) for p in (0.2, 0.8)),
        calibration_error=0.012,
        normaliser=0.98,
        normaliser_error=0.01,
        normaliser_checkable=True,
        held_out_loss=0.5,
        run=RUN,
    ),
    interval=(0.8, 1.3),
    p_value=1e-6,
    lower_bound=0.6,
)
BARE = MIResult(0.5, 0.05, 500, "ksg(k=3)", RNG.normal(0.5, 1, 500))
ABOUT = About(source="cells.csv", options={"preset": "auto"}, command="deminat estimate 'a b.csv'")


class Page(HTMLParser):
    """The text of a page; a tag that is not closed, or closed twice, fails."""

    def __init__(self, page):
        super().__init__()
        self.open, self.words, self.tags = [], [], set()
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert len({name for name, _ in attrs}) == len(attrs)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def page():
    return render([FULL, BARE], about=ABOUT)


def test_it_says_the_answer_with_units(page):
    text = Page(page).text
    assert "tells you 1.000 nats about mek." in text
    for words in (
        "The 95% interval is 0.800 to 1.300 nats.",
        "at least 0.600 nats, with 95% confidence",
        "p < 0.001",
        "1.443 bits",
        "correlation 0.93",
        "500 pairs; 4 pairs dropped",
        "in 12 groups",
        "2 folds",
        "0.050 nats added: half the gap between training and held-out scores",
        "off by 1.2%",
        "0.980, s.e. 0.010 (no unit)",
        "0.500 nats",
        "150 steps",
        "Gaussian copula (2 of 2 folds)",
        "ranks of each column",
        "fitted to training rows only",
        "cells.csv",
        "The seed is 7",
        "deminat 0.1.0, python 3.11.7",
        "deminat estimate 'a b.csv'",
    ):
        assert words in text, words


def test_warnings_come_with_advice_and_their_method(page):
    text = Page(page).text
    assert "duplicates demi 3 of 9 rows repeat another. Find out why." in text
    assert "Read the warning before you use it" in text
    assert "Warnings None." in Page(render([BARE])).text


def test_names_are_escaped_and_shortened(page):
    assert "<script" not in page.lower()
    assert "&lt;script&gt;" in page
    assert f"{BAD}, b, c, d, e and 2 more" in Page(page).text
    odd = Caution(BAD, BAD, BAD)
    bad = replace(
        FULL, method=BAD, warnings=(odd,), diagnostics=replace(FULL.diagnostics, scaling=BAD)
    )
    about = About(BAD, BAD, BAD, {BAD: BAD}, BAD)
    assert "<script" not in render([bad], about=about).lower()
    assert "\u202e" not in render([FULL], about=About(x="a\u202eb"))


def test_it_needs_nothing_from_outside(page):
    assert "://" not in page
    assert not re.search(r"\b(src|srcset|action)\s*=", page)
    assert set(re.findall(r'href="([^"]*)"', page)) == {"#warnings"}
    assert not re.search(r"url\(|@import|\son\w+=", page)
    assert "default-src 'none'" in page
    assert not Page(page).tags & {"script", "link", "img", "iframe", "object", "form"}


def test_the_baseline_stands_beside_it(page):
    text = Page(page).text
    assert "ksg(k=3) 0.500 nats none 0.050 nats none none" in text
    assert "The first row is the answer" in text
    assert "The first row" not in render([FULL])


def test_bits_are_bits_everywhere():
    text = Page(render([FULL, BARE], unit="bits")).text
    assert "tells you 1.443 bits" in text
    assert "1.154 to 1.876 bits" in text
    assert "mutual information (bits)" in text
    assert text.count("nats") == 1  # the other unit, once, beside the estimate
    with pytest.raises(ValueError, match='"nats" or "bits"'):
        render([FULL], unit="hartley")


@pytest.mark.parametrize(
    "result",
    [
        BARE,
        replace(FULL, mi=math.nan, standard_error=math.nan, interval=(math.nan, math.inf)),
        replace(FULL, mi=math.inf, pointwise=np.full(500, np.inf), lower_bound=math.nan),
        replace(FULL, mi=-0.01, p_value=0.4, lower_bound=0.0),
        MIResult(0.0, 0.0, 20, "demi", np.zeros(20)),
        MIResult(0.0, 0.0, 0, "demi", np.zeros(0)),
        MIResult(
            80.0,
            0.1,
            20,
            "gm",
            np.r_[np.full(999, 80.0), 1.0],
            (),
            Diagnostics(steps=(5,), learning=((),)),
        ),
        replace(FULL, diagnostics=replace(FULL.diagnostics, normaliser_checkable=False)),
    ],
)
def test_what_is_missing_breaks_nothing(result):
    text = Page(render([result, FULL])).text
    assert Page(render([result])).text
    assert "nan" not in text.lower()
    assert "-0.000" not in text


def test_it_says_why_something_is_missing():
    assert "ksg(k=3) trains nothing" in render([BARE])
    assert "without evaluations" in render([replace(FULL, diagnostics=Diagnostics(steps=(9,)))])
    assert "closed form" in render([replace(FULL, diagnostics=Diagnostics(steps=(0,)))])
    assert "nothing to draw" in render([replace(BARE, pointwise=np.ones(500))])
    assert "no finite estimate" in render([replace(BARE, mi=math.nan)])
    nothing = render([replace(BARE, mi=-0.01)])
    assert "No information about y was found in x: -0.010 nats." in nothing
    assert "Dependence is not shown (p = 0.400)" in render([replace(FULL, p_value=0.4)])
    with pytest.raises(ValueError, match="at least one"):
        render([])


def test_marks_stand_where_their_numbers_are():
    axis, (answer, other) = comparison([FULL, BARE], "nats")
    assert answer.certain
    assert not other.certain
    assert other.bound is None
    places = {text: at for at, text in axis.ticks}
    assert answer.estimate == pytest.approx(places["1.0"], abs=0.01)
    assert answer.bound == pytest.approx(axis.at(0.6))
    assert sum(answer.span) == pytest.approx(axis.at(1.3), abs=0.02)
    assert other.span[0] == pytest.approx(axis.at(0.4))


@pytest.mark.parametrize(
    ("axis", "texts"),
    [
        (Axis(0, 1, ""), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (Axis(-0.011, 0.006, ""), ["-0.010", "-0.005", "0.000", "0.005"]),
        (Axis(0, 0.05, "", percent=True), ["0%", "1%", "2%", "3%", "4%", "5%"]),
        (Axis(0, 0.004, "", percent=True), ["0.0%", "0.1%", "0.2%", "0.3%", "0.4%"]),
        (Axis(0, 80, ""), ["0", "20", "40", "60", "80"]),
    ],
)
def test_ticks_are_round_numbers(axis, texts):
    assert [text for _, text in axis.ticks] == texts


def test_curves_are_gathered_by_stage():
    norms, related = learning(FULL, "nats")
    assert (norms.title, related.title) == ("norms of the rows", "related columns")
    assert len(norms.lines) == 2
    assert "(nats)" in norms.y.label
    first, second, third = norms.lines[0]
    zero = norms.rules[0][0][1]
    assert first[1] == pytest.approx(zero)
    assert zero < second[1] < third[1] < 100  # down is less loss
    assert related.lines[0][1][1] < 0  # out of the panel


def test_a_histogram_holds_all_pairs():
    drawn = log_ratios(FULL, "nats")
    shares = [bar.height / 100 * drawn.y.high for bar in drawn.bars]
    assert sum(shares) == pytest.approx(1, abs=0.01)
    below = sum(s for s, bar in zip(shares, drawn.bars, strict=True) if bar.below)
    assert below == pytest.approx(np.mean(FULL.pointwise < 0), abs=0.03)
    assert calibration(BARE) is None
    assert calibration(FULL).dots == ((20.0, 80.0), (80.0, 20.0))


def test_a_result_writes_its_own_report(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    assert path.read_text() != FULL.to_html(path) == path.read_text(encoding="utf-8")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    assert "bits about" in FULL.to_html(unit="bits")
    with pytest.raises(DataError, match="cannot write"):
        FULL.to_html(tmp_path / "nowhere" / "report.html")


def test_results_know_what_they_are_of():
    x, y = gaussian(2, 1.0).sample(60, seed=0)
    x[3, 0] = np.nan
    frame = pl.DataFrame({"raf": x[:, 0], "erk": x[:, 1]})
    groups = np.arange(60) // 2
    options = {"nan": "omit", "groups": groups, "seed": 5}
    trained, closed = compare(frame, y, methods=["demi", "gaussian"], folds=2, **options)
    for result in (trained, closed):
        run = result.diagnostics["run"]
        assert run.x == SideDescription((2,), ("raf", "erk"))
        assert run.y == SideDescription((2,))
        assert (run.seed, run.dropped, run.groups, run.gap) == (5, 1, 30, None)
        assert {"deminat", "numpy", "torch"} <= set(run.versions)
        written = result.to_dict()
        assert written["diagnostics"]["run"]["x"] == {"shape": [2], "names": ["raf", "erk"]}
        assert len(json.dumps(written, allow_nan=False)) < 20_000
    curves = trained.diagnostics["learning"]
    assert len(curves) == 2
    assert all(len(curve.held_out) > 1 for fold in curves for curve in fold)
    assert trained.diagnostics["scaling"] == "Views"
    assert "Knowing raf and erk" in trained.to_html()


def test_a_series_reports_its_gap():
    result = estimate(np.arange(30.0), RNG.normal(size=30), order=True, method="gaussian")
    assert result.diagnostics["run"].gap >= 1
    assert "in the order of time" in result.to_html()


@pytest.fixture
def table(tmp_path):
    x, y = gaussian(1, 1.0).sample(100, seed=0)
    path = tmp_path / "odd name.csv"
    pl.DataFrame({BAD: x[:, 0], "mek": y[:, 0]}).write_csv(path)
    return path


def test_the_command_writes_a_report_that_repeats_it(table, tmp_path):
    out = tmp_path / "out.html"
    words = ["estimate", str(table), "--x", BAD, "--y", "mek"]
    words += ["--method", "gaussian", "--method", "ksg", "--seed", "3", "--report", str(out)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) == 2
    assert f"report: {out}" in done.stderr
    page = out.read_text(encoding="utf-8")
    assert "<script" not in page
    (command,) = re.findall("<code>(.*)</code>", page)
    command = shlex.split(html.unescape(command))
    assert (command[:2], sorted(command[1:])) == (["deminat", "estimate"], sorted(words))
    out.unlink()
    assert CliRunner().invoke(app, command[1:]).exit_code == 0
    assert out.read_text(encoding="utf-8") == page


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere/a.html", "No such file"),
        ("folder.html", "is a folder"),
        ("odd name.csv", "ends in .html"),
    ],
)
def test_a_place_that_cannot_be_is_refused_before_the_work(table, tmp_path, name, message):
    (tmp_path / "folder.html").mkdir()
    before = table.read_bytes()
    words = ["estimate", str(table), "--x", "no such column", "--y", "mek"]
    done = CliRunner().invoke(app, [*words, "--report", str(tmp_path / name)])
    assert isinstance(done.exception, DataError)  # exit code 2: see test_cli
    assert message in str(done.exception)
    assert "\n" not in str(done.exception)
    assert table.read_bytes() == before
    with pytest.raises(DataError, match=message):
        check_path(tmp_path / name)


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no chromium on this machine: apt-get install chromium"
)
LONG = "a_column_with_a_very_long_name_without_any_space_in_it_at_all"
MEASURE = """<!DOCTYPE html><body style="margin:0">
<iframe style="width:{width}px;height:6000px;border:0" srcdoc="{page}"></iframe>
<script>onload = () => {{
  const inner = document.querySelector("iframe").contentDocument.documentElement;
  document.body.dataset.width = inner.scrollWidth;
}}</script>"""


def chromium(folder, page, *options):
    """Open a page in a headless browser and return what it prints."""
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    words = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    words += [f"--user-data-dir={folder / 'profile'}", *options, file.as_uri()]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def screenshot(folder, page, *options):
    path = folder / "shot.png"
    chromium(folder, page, f"--screenshot={path}", *options)
    return np.asarray(Image.open(BytesIO(path.read_bytes())).convert("L"), dtype=float)


@needs_chromium
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(("scheme", "dark"), [(1, False), (0, True)])
def test_a_browser_shows_it_light_and_dark(tmp_path, page, width, scheme, dark):
    options = f"--window-size={width},1200", f"--blink-settings=preferredColorScheme={scheme}"
    shot = screenshot(tmp_path, page, *options)
    assert shot.shape[1] == width
    ground = np.median(shot)
    assert (ground < 60) == dark
    assert (ground > 200) != dark
    marked = np.abs(shot - ground) > 100
    assert 0.01 < marked.mean() < 0.3  # text and figures, on an even ground
    assert marked[:600].any()
    assert marked[600:].any()


def inner_width(folder, page, width):
    """How wide a page is that is given so many pixels: more if it scrolls sideways."""
    framed = MEASURE.format(width=width, page=html.escape(page))
    return int(re.findall(r'data-width="(\d+)"', chromium(folder, framed, "--dump-dom"))[0])


@needs_chromium
def test_a_phone_does_not_scroll_sideways(tmp_path, page):
    command = f"deminat estimate {LONG * 3}.csv"
    wide = replace(FULL, method=LONG, warnings=(Caution(LONG, LONG, LONG),))
    odd = render([wide, FULL], about=About(LONG, LONG, LONG, {LONG: LONG}, command))
    assert inner_width(tmp_path, page, 390) == 390
    assert inner_width(tmp_path, odd, 390) == 390
    spoilt = page.replace("<main>", "<main><p style='width:500px'>wide</p>")
    assert inner_width(tmp_path, spoilt, 390) > 390  # the measure can fail


@needs_chromium
def test_it_prints_on_paper(tmp_path, page):
    path = tmp_path / "report.pdf"
    chromium(tmp_path, page, f"--print-to-pdf={path}")
    assert path.read_bytes().startswith(b"%PDF")
    assert path.stat().st_size > 10_000
