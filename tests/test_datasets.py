"""The data are those that were published, and files in their place that are not are told."""

import gzip
import hashlib
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from deminat import datasets
from deminat.errors import DataError

DATA = Path(__file__).parents[2] / "shared/data"
SOURCE = DATA / "small/sachs.2005.continuous.txt"
SHA256 = "9b3f895c1652f9230a3356d76d7a320c88494feee9c6df509b001ccef8eae484"


def test_sachs_has_the_published_values():
    frame = datasets.sachs()
    assert frame.shape == (7466, 11)
    assert " ".join(frame.columns) == "raf mek plc pip2 pip3 erk akt pka pkc p38 jnk"
    assert set(frame.dtypes) == {pl.Float64}
    values = np.ascontiguousarray(frame.to_numpy(), "<f8")
    assert hashlib.sha256(values.tobytes()).hexdigest() == SHA256


def test_sachs_is_a_fresh_frame_each_time():
    assert datasets.sachs() is not datasets.sachs()


@pytest.mark.skipif(not SOURCE.exists(), reason="the source text is not on this machine")
def test_sachs_equals_the_source_text():
    header, *lines = SOURCE.read_text().splitlines()
    frame = datasets.sachs()
    assert header.split("\t") == frame.columns
    assert [[float(v) for v in line.split("\t")] for line in lines] == frame.to_numpy().tolist()


# MNIST, on a tiny set that the tests write

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 28, 28), np.uint8)
LABELS = np.array([3, 1, 4, 1, 5], np.uint8)


def write(folder, part="train", images=IMAGES, labels=LABELS, pack=gzip.compress):
    """Write a set of digits in the publisher's form below the data folder."""
    (folder / "mnist").mkdir(parents=True, exist_ok=True)
    suffix = ".gz" if pack is gzip.compress else ""
    for name, array in ((f"{part}-images-idx3", images), (f"{part}-labels-idx1", labels)):
        head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
        (folder / "mnist" / f"{name}-ubyte{suffix}").write_bytes(pack(head + array.tobytes()))
    return folder


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with nothing in it, and no variable that names a folder."""
    for name in ("DEMINAT_DATA", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    return tmp_path / "home"


def refusal(*arguments, **options):
    with pytest.raises(DataError) as caught:
        datasets.mnist(*arguments, **options)
    assert str(caught.value).isprintable()
    return str(caught.value)


@pytest.mark.parametrize("pack", [gzip.compress, bytes], ids=["gzip", "plain"])
@pytest.mark.parametrize(("split", "part"), [("train", "train"), ("test", "t10k")])
def test_mnist_reads_both_splits_packed_or_not(tmp_path, split, part, pack):
    images, labels = datasets.mnist(split, write(tmp_path, part, pack=pack), check=False)
    np.testing.assert_array_equal(images, IMAGES, strict=True)
    np.testing.assert_array_equal(labels, LABELS, strict=True)


def test_mnist_prefers_the_packed_form(tmp_path):
    write(tmp_path, labels=LABELS + 1, pack=bytes)
    assert datasets.mnist(folder=write(tmp_path), check=False)[1].tolist() == LABELS.tolist()


def test_mnist_looks_in_the_folder_then_the_environment_then_the_cache(home, monkeypatch):
    def first_label(folder=None):
        return datasets.mnist(folder=folder, check=False)[1][0]

    def put(folder, label):
        return str(write(folder, labels=LABELS * 0 + np.uint8(label)))

    put(home / ".cache/deminat", 1)
    assert first_label() == 1
    put(home / "xdg/deminat", 2)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "xdg"))
    assert first_label() == 2
    monkeypatch.setenv("DEMINAT_DATA", put(home / "named", 3))
    assert first_label() == 3
    assert first_label(put(home / "given", 4)) == first_label("~/given") == 4
    monkeypatch.setenv("DEMINAT_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert first_label() == 1


@pytest.mark.parametrize(("split", "part"), [("train", "train"), ("test", "t10k")])
def test_missing_mnist_says_what_where_and_what_to_do(home, split, part):
    message = refusal(split)
    for words in (
        f"{part}-images-idx3-ubyte.gz",
        str(home / ".cache/deminat/mnist"),
        "DEMINAT_DATA",
        "yann.lecun.com/exdb/mnist",
        "storage.googleapis.com/cvdf-datasets/mnist",
        "nothing is downloaded",
    ):
        assert words in message
    assert not home.exists()


def test_mnist_needs_both_files(tmp_path):
    (write(tmp_path) / "mnist/train-labels-idx1-ubyte.gz").unlink()
    assert "no train-labels-idx1-ubyte.gz" in refusal("train", tmp_path, check=False)
    (tmp_path / "mnist/train-labels-idx1-ubyte.gz").mkdir()
    assert "is a directory" in refusal("train", tmp_path, check=False)


@pytest.mark.parametrize("pack", [gzip.compress, bytes], ids=["gzip", "plain"])
def test_mnist_that_is_not_as_published_is_refused(tmp_path, pack):
    message = refusal("test", write(tmp_path, "t10k", pack=pack))
    path = next((tmp_path / "mnist").glob("*images*"))
    assert hashlib.md5(path.read_bytes()).hexdigest() in message
    for words in (str(path), "is not the published file", "get it again", "check=False"):
        assert words in message


def test_unchecked_mnist_is_still_checked_for_damage(tmp_path):
    path = write(tmp_path) / "mnist/train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-20])
    assert path.name in refusal(folder=tmp_path, check=False)


@pytest.mark.parametrize(
    ("images", "labels"),
    [
        (IMAGES, LABELS[:4]),
        (IMAGES[:, :27], LABELS),
        (IMAGES.reshape(5, -1), LABELS),
        (IMAGES, LABELS[:, None]),
    ],
)
def test_mnist_of_other_shapes_is_refused(tmp_path, images, labels):
    write(tmp_path, images=images, labels=labels)
    message = refusal(folder=tmp_path, check=False)
    assert str(images.shape) in message
    assert str(labels.shape) in message


@pytest.mark.parametrize("split", ["t10k", "", None])
def test_mnist_has_two_splits(tmp_path, split):
    with pytest.raises(ValueError, match="split must be 'train' or 'test'"):
        datasets.mnist(split, tmp_path)


# MNIST, the real set where it is there

COUNTS = {
    "train": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
    "test": [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
}


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A data folder with the publisher's files."""
    if not (DATA / "unpack").exists():
        pytest.skip("the published MNIST is not on this machine")
    folder = tmp_path_factory.mktemp("data")
    subprocess.run([sys.executable, DATA / "unpack", folder, "mnist"], check=True)
    return folder


@pytest.mark.parametrize(
    ("split", "n", "first"), [("train", 60_000, [5, 0, 4, 1, 9]), ("test", 10_000, [7, 2, 1, 0, 4])]
)
def test_the_published_mnist_is_read(published, split, n, first):
    images, labels = datasets.mnist(split, published)
    assert (images.shape, labels.shape) == ((n, 28, 28), (n,))
    assert (images.dtype, labels.dtype) == (np.uint8, np.uint8)
    assert labels[:5].tolist() == first
    assert np.bincount(labels).tolist() == COUNTS[split]
    assert (images.min(), images.max()) == (0, 255)


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_published_mnist_is_known_unpacked(published, tmp_path, split):
    (tmp_path / "mnist").mkdir()
    for path in (published / "mnist").glob("*.gz"):
        (tmp_path / "mnist" / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    for packed, plain in zip(
        datasets.mnist(split, published), datasets.mnist(split, tmp_path), strict=True
    ):
        np.testing.assert_array_equal(packed, plain)


def test_one_changed_bit_of_the_published_mnist_is_told(published, tmp_path):
    (tmp_path / "mnist").mkdir()
    for path in (published / "mnist").glob("t10k*"):
        (tmp_path / "mnist" / path.name).write_bytes(path.read_bytes())
    labels = tmp_path / "mnist/t10k-labels-idx1-ubyte.gz"
    content = bytearray(labels.read_bytes())
    content[1000] ^= 1
    labels.write_bytes(content)
    assert f"{labels} is not the published file" in refusal("test", tmp_path)
