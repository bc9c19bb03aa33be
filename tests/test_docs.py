"""The documentation builds without a warning, needs no network, and every snippet in it runs."""

import json
import re
import shlex
import subprocess
import sys
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
import torch
from typer.main import get_command
from typer.testing import CliRunner

import deminat
from common import QUICK_ESTIMATORS
from deminat.cli import app
from deminat.estimators.recipes import Auto
from deminat.estimators.registry import PRESETS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RESULTS = ROOT / "results"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md"), RESULTS / "README.md"])
WITH_PYTHON = [path for path in PAGES if "```python" in path.read_text("utf-8")]
FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)`(deminat [^`]+)`(?!`)")
REMOTE = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
PARSED = {"paper", "bench", "doctor"}  # slow commands are parsed, not run


def page_id(path):
    return str(path.relative_to(ROOT))


# The site


class Page(HTMLParser):
    """What a page loads, what it links to, and its anchors."""

    def __init__(self, path):
        super().__init__()
        self.loads, self.links, self.anchors = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag in REMOTE and found.get(REMOTE[tag]):
            self.loads.append(found[REMOTE[tag]])
        elif tag == "a" and found.get("href"):
            self.links.append(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    options = ["-W", "--keep-going", "-n", "-q", "-b", "html", "-d", out / "doctrees"]
    run = [sys.executable, "-m", "sphinx", *options, DOCS, out / "html"]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return out / "html"


def test_the_site_stands_alone(site):
    """Nothing is loaded from elsewhere, and links inside the site resolve."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert len(pages) > 10
    for path, page in pages.items():
        assert not [url for url in page.loads if urlsplit(url).netloc], path
        for url in [*page.loads, *page.links]:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.exists(), f"{path.name}: {url}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].anchors, f"{path.name}: {url}"
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", style.read_text("utf-8")), (
            style
        )
    assert "<math" in (site / "how.html").read_text("utf-8")
    assert documented(site / "objects.inv") >= {
        f"deminat.{name}"
        for name in deminat.__all__
        if name not in ("datasets", "infomax", "tasks")
    }


def documented(inventory):
    """The Python names that the site documents."""
    lines = zlib.decompress(inventory.read_bytes().split(b"\n", 4)[4]).decode().splitlines()
    return {line.split()[0] for line in lines if " py:" in line}


# Python


class Brief(Auto):
    """A recipe of networks that are trained briefly."""

    def neural(self, objective, *_):
        return replace(QUICK_ESTIMATORS["demi"], objective=objective)


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A folder with the files that snippets name, and networks that are trained briefly."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEMINAT_DATA", str(tmp_path))
    for name in PRESETS:
        monkeypatch.setitem(PRESETS, name, Brief)
    rng = np.random.default_rng(0)
    cells = deminat.datasets.sachs().sample(120, seed=0)
    for name in ("cells.csv", "new.csv"):
        cells.select("raf", "mek", "erk", "pka").write_csv(name)
    deminat.estimate(cells["raf"], cells["mek"], method="gaussian").save("run")
    monkeypatch.setattr("deminat.datasets.sachs", lambda: cells)
    for name in ("x", "y"):
        np.save(f"{name}.npy", rng.normal(size=(120, 2)))
    np.savez("session.npz", v1=rng.normal(size=(120, 2)), m1=rng.normal(size=(120, 2)))
    lines = [f"{i // 5},{rng.normal():.3f},{rng.normal():.3f}" for i in range(150)]
    Path("visits.csv").write_text("\n".join(["patient,dose,pulse", *lines]))
    Path("images").mkdir()
    for i, image in enumerate(rng.normal(size=(120, 1, 6, 6))):
        np.save(f"images/{i}.npy", image)
    ages = [f"{20 + i % 50}" for i in range(120)]
    Path("labels.csv").write_text("\n".join(["age", *ages]))
    return tmp_path


def reader_variables():
    """The variables that snippets expect the reader to have."""
    draw = torch.Generator().manual_seed(0)
    x, y, x_test, y_test = torch.randn(4, 100, 2, generator=draw)
    x_new, y_new = torch.rand(2, 5, 2, generator=draw)
    codes, other_codes = torch.randn(2, 20, 4, generator=draw)
    joint, table, unpaired = codes[:, 0], codes @ other_codes.T, codes
    names = {"x": x, "y": y, "x_test": x_test, "y_test": y_test, "product": unpaired}
    names |= {"x_new": x_new, "y_new": y_new}
    return {**names, "joint": joint, "table": table, "codes": codes, "other_codes": other_codes}


@pytest.mark.parametrize("path", WITH_PYTHON, ids=page_id)
def test_python_snippets_run(path, small):
    if path.stem == "causal":
        for package in ("causallearn", "tigramite", "pgmpy", "pandas"):
            pytest.importorskip(package)
    names = reader_variables()
    for language, code in FENCE.findall(path.read_text("utf-8")):
        if language == "python":
            exec(compile(code, page_id(path), "exec"), names)


def test_every_fence_has_a_language_that_is_tested_or_shown():
    tested = {"python", "console", ""}  # "" is a shell where a line begins with deminat
    shown = {"{toctree}", "{literalinclude}", "{eval-rst}", "{rows}", "{commands}", "{include}"}
    for path in PAGES:
        found = {language for language, _ in FENCE.findall(path.read_text("utf-8"))}
        assert found <= tested | shown | {"{raw}"}, path


# Commands


def commands_of(path):
    """The commands of a page's fences, without prompt and comment."""
    text = path.read_text("utf-8")
    blocks = [code for language, code in FENCE.findall(text) if language in ("", "console")]
    lines = [line.removeprefix("$ ") for code in blocks for line in code.splitlines()]
    return [re.sub(r"\s+#.*", "", line) for line in lines if line.startswith("deminat ")]


def alternatives(command):
    """`deminat paper a|b` as two commands, in words."""
    return product(*(word.split("|") for word in shlex.split(command)[1:]))


RECORDED = sorted((DOCS / "outputs").glob("*.txt"))
COMMANDS = {
    command: None
    for command in [
        *(command for path in PAGES for command in commands_of(path)),
        *(path.read_text("utf-8").splitlines()[0].removeprefix("$ ") for path in RECORDED),
    ]
    if command.startswith("deminat ")
}
NAMED = {
    " ".join(command.split()): None
    for path in PAGES
    for command in INLINE.findall(path.read_text("utf-8"))
    if "..." not in command and "COMMAND" not in command
}


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_commands_run(command, small):
    for words in alternatives(command):
        if words[0] in PARSED:
            parse(words)
            continue
        done = CliRunner().invoke(app, words)
        laws = {0, 1} if words[0] == "check" else {0}  # networks trained briefly break laws
        assert done.exit_code in laws, f"{words}: {done.output} {done.exception}"
        if "--json" in words:
            json.loads(done.stdout)


def test_every_file_of_results_is_listed_with_its_command():
    text = (RESULTS / "README.md").read_text("utf-8")
    listed = re.findall(r"^\| `(\S+)` \| `deminat ", text, re.MULTILINE)
    files = [path.relative_to(RESULTS) for path in RESULTS.rglob("*.csv")]
    assert files
    assert sorted(map(str, files)) == sorted(name.replace(".*", ".csv") for name in listed)


@pytest.mark.parametrize("command", NAMED, ids=str)
def test_commands_in_sentences_exist(command):
    """A sentence may leave the file out, but every option that it names exists."""
    for words in alternatives(command):
        try:
            parse(words)
        except Exception as error:
            if type(error).__name__ != "MissingParameter":  # of click or of typer
                raise


def parse(words):
    """Parse a command as the command line would, without running it."""
    command, words = get_command(app), list(words)
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    assert not words or not hasattr(command, "commands"), f"no command {words[0]}"
    if words:
        command.make_context("deminat", words)


def test_the_parser_of_commands_rejects_a_wrong_one():
    with pytest.raises(Exception, match="nothing_such"):
        parse(["estimate", "cells.csv", "--nothing_such"])
    with pytest.raises(AssertionError, match="nosuch"):
        parse(["nosuch"])


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_recorded_outputs_are_whole(path):
    """A recording has its command and its output: made by `make outputs`, never by hand."""
    first, *printed = path.read_text("utf-8").splitlines()
    assert first.startswith(("$ deminat ", "$ python examples/"))
    assert printed
    assert "Traceback" not in "".join(printed)
    if first.startswith("$ python"):
        assert (ROOT / first.split()[2]).exists()


# Tables


@pytest.mark.parametrize("name", ["bmi", "highmi", "trust", "cap-verdict"])
def test_tables_are_made_of_the_rows(name, monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_ext")
    tables = pytest.importorskip("rows").TABLES
    lines = tables[name]().split("\n\n")[0].splitlines()
    assert len(lines) > 2
    assert len({line.count("|") for line in lines}) == 1
