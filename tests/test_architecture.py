"""What is public is what `__all__` says; `make lint` checks that imports follow the layers."""

import ast
import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import deminat

SOURCE = Path(deminat.__file__).parent


def test_all_is_sorted_complete_and_importable():
    assert len(set(deminat.__all__)) == len(deminat.__all__)
    assert set(dir(deminat)) == set(deminat.__all__)
    for name in deminat.__all__:
        assert getattr(deminat, name) is not None
    with pytest.raises(AttributeError, match="nothing_such"):
        _ = deminat.nothing_such
    assert deminat.choose_start is deminat.choose_baseline  # the old name still works


def test_every_module_names_what_is_public():
    for info in pkgutil.walk_packages([str(SOURCE)], "deminat."):
        module = importlib.import_module(info.name)
        assert module.__doc__, info.name
        for name in module.__all__:
            assert hasattr(module, name), f"{info.name}.{name}"


@pytest.mark.parametrize("statement", ["import deminat", "import deminat.cli"])
def test_torch_is_not_imported_until_needed(statement):
    code = f"{statement}; import sys; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))


def test_results_need_numpy_only():
    allowed = {
        "html",
        "math",
        "collections",
        "dataclasses",
        "pathlib",
        "typing",
        "numpy",
        "records",
    }
    tree = ast.parse((SOURCE / "results.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] in allowed
        if isinstance(node, ast.Import):
            assert {a.name for a in node.names} <= allowed
