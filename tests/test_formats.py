"""A file format is one entry of a registry, which code outside the package may add."""

import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

import deminat
from deminat import DataError
from deminat.data import files
from deminat.data.files.formats import FORMATS, Format

TOY = "a=1 b=2 c=red\na=3 b=5 c=blue\na=4 b=7 c=red\n"


@dataclass
class ToyTable:
    """Lines of `name=value`."""

    label: str
    names: list[str]
    frame: pl.DataFrame
    note: str = ""

    @property
    def text_columns(self):
        return self.names

    @property
    def rows(self):
        return self.frame.height

    def word_columns(self, names):
        return {"c"}.intersection(names)

    def pick(self, names, labels, rows=None):
        frame = self.frame.select(names) if rows is None else self.frame.select(names)[rows]
        kinds = {n: pl.Enum(["blue", "red"]) if n in labels else pl.Float64 for n in names}
        return frame.cast(kinds)

    def pieces(self, names, labels):
        yield self.pick(names, labels)


def open_toy(path):
    lines = path.read_text().splitlines()
    rows = [dict(cell.split("=") for cell in line.split()) for line in lines]
    return ToyTable(path.name, list(rows[0]), pl.DataFrame(rows))


@pytest.fixture
def toy(tmp_path, monkeypatch):
    monkeypatch.setitem(FORMATS, ".toy", Format(table=open_toy))
    path = tmp_path / "t.toy"
    path.write_text(TOY)
    return path


def test_columns_of_a_registered_table_are_read(toy):
    x, y = files.read(toy, "a", "b")
    assert x["a"].to_list() == [1, 3, 4]
    assert y["b"].to_list() == [2, 5, 7]
    x, y, z = files.read(toy, "a", "1", given="c")
    assert y.columns == ["b"]
    assert z["c"].to_list() == ["red", "blue", "red"]
    assert files.scan_labels(toy, "c").take(np.array([0, 2])).tolist() == ["red", "red"]
    assert files.scan_times(toy, "a").take().tolist() == [1, 3, 4]


def test_errors_of_a_registered_table_are_those_of_any(toy):
    with pytest.raises(DataError, match=r"t.toy has no column 'd': it has a, b, c"):
        files.read(toy, "a", "d")
    with pytest.raises(DataError, match="'a' is on both sides"):
        files.read(toy, "a", "a,b")


def test_a_registered_table_may_be_a_whole_side_and_name_files_of_a_folder(toy, tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    for name in ("blue", "green", "red"):
        np.save(folder / f"{name}.npy", np.zeros(2))
    toy.write_text("a=1 c=red.npy\na=3 c=blue.npy\na=4 c=green.npy\n")
    FORMATS[".toy"] = Format(table=lambda path: TextToy(**vars(open_toy(path))))
    with pytest.raises(DataError, match=r"column 'c' has red\.npy in row 1"):
        files.scan_pair(folder, toy)


class TextToy(ToyTable):
    def pick(self, names, labels, rows=None):
        return self.frame.select(names)


def test_a_registered_archive_is_read(tmp_path, monkeypatch):
    class Toys:
        names = ("x", "y")

        def check(self, name):
            pass

        def shape(self, name):
            return (40, 2)

        def load(self, name, rows=None):
            values = np.random.default_rng(ord(name)).normal(size=(40, 2))
            return values if rows is None else values[rows]

    @contextmanager
    def opened(path):
        yield Toys()

    monkeypatch.setitem(FORMATS, ".toys", Format(archive=opened))
    path = tmp_path / "t.toys"
    path.touch()
    x, y = files.scan(path, None, None)
    assert (len(x), x.row_width, x.take(np.array([3])).shape) == (40, 2, (1, 2))
    result = deminat.estimate(x, y, method="gaussian")
    assert result.mi == deminat.estimate(x.take(), y.take(), method="gaussian").mi


def test_messages_list_the_registered_suffixes(toy, tmp_path):
    other = tmp_path / "t.other"
    other.touch()
    readable = ", ".join(FORMATS)
    assert readable.endswith(".hdf5, .toy")
    with pytest.raises(DataError, match=rf"cannot read \.other files.* one of {readable}"):
        files.read(other, "a", "b")


def test_a_removed_format_is_refused(toy, monkeypatch):
    monkeypatch.delitem(FORMATS, ".toy")
    with pytest.raises(DataError, match=r"cannot read \.toy files"):
        files.read(toy, "a", "b")


def test_the_registry_needs_no_torch():
    code = "import sys, deminat.data.files.formats; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
