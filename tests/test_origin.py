"""Rows tell where they come from: version, commit of a clone, processor."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import deminat
from deminat.origin import origin

PACKAGE = Path(deminat.__file__).parent
ASK = "from deminat.origin import origin; print(origin()['version'])"


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
    with (copied / "deminat" / "errors.py").open("a") as file:
        file.write("\n# changed\n")
    assert version_at(copied) == f"{deminat.__version__} {commit} changed"


def test_the_processor_is_named():
    assert "cores" in origin()["machine"]
