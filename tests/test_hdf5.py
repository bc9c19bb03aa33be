"""HDF5: datasets by their path, and what is refused."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from deminat import DataError
from deminat.cli import app
from deminat.data import files

h5py = pytest.importorskip("h5py", reason="the io extra is not installed")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "recording.h5"
    rng = np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        file["x"] = rng.normal(size=(40, 3))
        file["session/velocity"] = rng.normal(size=40).astype(np.float32)
        file["session/spikes"] = rng.poisson(2, size=(40, 5))
        file["label"] = np.repeat([0, 1], 20)
        file["names"] = np.array([b"a", b"b"])
        file["empty"] = np.empty((0, 3))
        file["packed"] = rng.normal(size=(40, 2))
        file["soft"] = h5py.SoftLink("/x")
        file["elsewhere"] = h5py.ExternalLink("other.h5", "/x")
        del file["packed"]
        file.create_dataset("packed", data=np.zeros((40, 2)), compression="gzip")
    return path


def test_datasets_are_read_by_their_paths(path):
    x, y = files.read(path, "session/spikes", "session/velocity")
    assert x.shape == (40, 5)
    assert y.dtype == np.float32
    x, y, z = files.read(path, None, "session/velocity", given="packed", categorical=["packed"])
    assert x.shape == (40, 3)
    assert isinstance(z, pl.DataFrame)
    assert files.scan_labels(path, "label").take().tolist() == [0] * 20 + [1] * 20


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "no array 'nothing'"),
        ("names", "not numbers"),
        ("empty", "an array needs rows"),
        ("soft", "no array 'soft'"),
        ("elsewhere", "no array 'elsewhere'"),
        ("session", "no array 'session'"),
        ("x", "is on both sides"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused(path, name, message):
    with pytest.raises(DataError, match=message):
        files.read(path, name, "x")


def test_values_of_other_files_are_not_read(tmp_path):
    (tmp_path / "secret").write_bytes(b"0" * 80)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.zeros(10)
        external = [(str(tmp_path / "secret"), 0, 80)]
        file.create_dataset("raw", (10,), dtype="f8", external=external)
        layout = h5py.VirtualLayout((10,), "f8")
        layout[:] = h5py.VirtualSource(str(tmp_path / "b.h5"), "x", (10,))
        file.create_virtual_dataset("virtual", layout)
    for name in ("raw", "virtual"):
        with pytest.raises(DataError, match="has its values in other files"):
            files.read(tmp_path / "a.h5", name, "x")


def test_more_than_the_memory_is_refused_unread(tmp_path):
    with h5py.File(tmp_path / "large.h5", "w") as file:
        file.create_dataset("x", (1 << 40, 8), dtype="f8", chunks=(1024, 8))
        file["y"] = np.zeros(3)
    with pytest.raises(DataError, match="GB of memory"):
        files.read(tmp_path / "large.h5", "x", "y")


@pytest.mark.parametrize("kept", [0, 100, 800])
def test_what_is_cut_off_is_refused(path, kept):
    whole = path.read_bytes()
    path.write_bytes(whole[:kept])
    with pytest.raises(DataError, match="cannot be read as HDF5"):
        files.read(path, "x", "session/velocity")


def test_the_command_reads_it(path):
    words = ["estimate", str(path), "--x", "x", "--y", "session/velocity", "--method", "gaussian"]
    result = CliRunner().invoke(app, [*words, "--json"])
    assert json.loads(result.stdout)["n"] == 40
