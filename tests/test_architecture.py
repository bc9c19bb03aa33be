"""Imports go only along the path of the data, and what is public is what `__all__` says."""

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

# The path of the data. A room may import those before it, never those after it.
PATH = [
    "errors",
    "store",
    "results",
    "arrays",
    "rows",
    "items",
    "copies",
    "serial",
    "kinship",
    "inputs",
    "files",
    "datasets",
    "tasks",
    "transforms",
    "reference",
    "screening",
    "splits",
    "pairs",
    "critics",
    "objectives",
    "descent",
    "history",
    "training",
    "meters",
    "workers",
    "tensorboard",
    "layers",
    "slopes",
    "allpairs",
    "gradients",
    "couplings",
    "scores",
    "fitting",
    "stages",
    "crossfit",
    "estimators",
    "flows",
    "classical",
    "models",
    "packing",
    "saving",
    "inference",
    "methods",
    "runs",
    "checkpoints",
    "asking",
    "api",
    "checks",
    "selection",
    "infomax",
    "plotting",
    "doctor",
    "pointwise",
    "origin",
    "allocator",
    "report",
    "sweeps",
    "matrix",
    "experiments",
    "bench",
    "cli",
    "__main__",
]


# A result that is asked for its own report, or to be saved, asks a later room, when it is asked.
AGAINST_THE_PATH = {("results", "report"), ("results", "saving")}


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """The rooms that a module imports anywhere, functions included."""
    package = ["deminat", *path.relative_to(SOURCE).parts[:-1]]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            found |= {f"{name}.{alias.name}" for alias in node.names}
    return {name.split(".")[1] for name in found if name.startswith("deminat.")}


MODULES = sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")


def test_every_room_is_on_the_path():
    assert {room_of(path) for path in MODULES} == set(PATH)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_along_the_path(path):
    room = room_of(path)
    later = set(PATH[PATH.index(room) + 1 :])
    found = {(room, other) for other in imported_rooms(path) & later}
    assert found <= AGAINST_THE_PATH


def test_the_import_test_can_see_an_import():
    assert {"errors", "results"} <= imported_rooms(SOURCE / "inputs.py")
    assert "api" in imported_rooms(SOURCE / "cli" / "answers.py")  # inside a function
    assert "critics" in imported_rooms(SOURCE / "bench" / "speed.py")


def test_all_is_sorted_complete_and_importable():
    assert len(set(deminat.__all__)) == len(deminat.__all__)
    assert set(dir(deminat)) == set(deminat.__all__)
    for name in deminat.__all__:
        assert getattr(deminat, name) is not None
    with pytest.raises(AttributeError, match="nothing_such"):
        _ = deminat.nothing_such


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
    allowed = {"html", "math", "collections", "dataclasses", "pathlib", "typing", "numpy"}
    tree = ast.parse((SOURCE / "results.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] in allowed
        if isinstance(node, ast.Import):
            assert {a.name for a in node.names} <= allowed
