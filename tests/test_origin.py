"""Rows tell where they come from: versions, commit of a clone, processor."""

import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import deminat
from deminat.runtime.environment import environment

PACKAGE = Path(deminat.__file__).parent
ASK = "from deminat.runtime.environment import environment; print(environment()['version'])"


def version_at(folder):
    asked = subprocess.run(
        [sys.executable, "-c", ASK], cwd=folder, capture_output=True, text=True, check=True
    )
    return asked.stdout.strip()


def git(folder, *arguments):
    who = "-c", "user.name=someone", "-c", "user.email=someone@example.org"
    asked = subprocess.run(
        ["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return asked.stdout.strip()


@pytest.fixture
def copied(tmp_path):
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "deminat", ignore=ignored)
    return tmp_path


def test_an_installation_has_a_version_alone(copied):
    assert version_at(copied) == deminat.__version__


def test_a_clone_has_a_commit_and_says_if_it_was_changed(copied):
    git(copied, "init", "-q")
    assert version_at(copied) == deminat.__version__  # in a repository that does not have it
    git(copied, "add", "deminat")
    git(copied, "commit", "-qm", "all")
    commit = git(copied, "rev-parse", "--short=12", "HEAD")
    assert version_at(copied) == f"{deminat.__version__} {commit}"
    changed = set()
    for words in ("one", "another"):
        with (copied / "deminat" / "errors.py").open("a") as file:
            file.write(f"\n# {words}\n")
        changed.add(version_at(copied))
    start = f"{deminat.__version__} {commit} changed "
    assert [name.removeprefix(start).isalnum() for name in changed] == [True, True]


def test_torch_and_the_processor_are_named():
    assert environment()["torch"] == version("torch")
    assert "cores" in environment()["machine"]
