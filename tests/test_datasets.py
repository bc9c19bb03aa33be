"""The data are those that were published, and files in their place that are not are told."""

import gzip
import hashlib
import os
import struct
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from deminat import datasets
from deminat.data.files import guards as checks
from deminat.datasets import images as photographs
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


def refusal(*arguments, load=datasets.mnist, **options):
    with pytest.raises(DataError) as caught:
        load(*arguments, **options)
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


# CIFAR-10 and CIFAR-100, on tiny sets that the tests write

BATCHES = [f"data_batch_{number}.bin" for number in range(1, 6)]
TEN, HUNDRED = "cifar-10-batches-bin", "cifar-100-binary"
PHOTOGRAPHS = np.random.default_rng(1).integers(0, 256, (10, 3, 32, 32), np.uint8)
KINDS = np.array([9, 0, 3, 1, 4, 1, 5, 9, 2, 6], np.uint8)
COARSE, FINE = KINDS + np.uint8(10), KINDS * np.uint8(11)
# For each file of a set: its loader, split, folder, name, and a record's bytes.
FILES = [
    (datasets.cifar10, "train", TEN, "data_batch_1.bin", 3073),
    (datasets.cifar10, "test", TEN, "test_batch.bin", 3073),
    (datasets.cifar100, "train", HUNDRED, "train.bin", 3074),
    (datasets.cifar100, "test", HUNDRED, "test.bin", 3074),
]
EACH_FILE = pytest.mark.parametrize(
    ("load", "split", "place", "name", "record"), FILES, ids=[name for *_, name, _ in FILES]
)


def write_records(path, images, *labels):
    """Write records in the publisher's form, byte after byte."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = zip(*labels, images, strict=True)
    path.write_bytes(b"".join(bytes([*kinds]) + image.tobytes() for *kinds, image in rows))


@pytest.fixture
def small(tmp_path):
    """A data folder with ten photographs in every split, two for each batch."""
    for number, name in enumerate(BATCHES):
        two = slice(2 * number, 2 * number + 2)
        write_records(tmp_path / TEN / name, PHOTOGRAPHS[two], KINDS[two])
    write_records(tmp_path / TEN / "test_batch.bin", PHOTOGRAPHS[::-1], KINDS[::-1])
    write_records(tmp_path / HUNDRED / "train.bin", PHOTOGRAPHS, COARSE, FINE)
    write_records(tmp_path / HUNDRED / "test.bin", PHOTOGRAPHS[::-1], COARSE[::-1], FINE[::-1])
    return tmp_path


@pytest.mark.parametrize(("split", "step"), [("train", 1), ("test", -1)])
@pytest.mark.parametrize(
    ("load", "options", "expected"),
    [
        (datasets.cifar10, {}, KINDS),
        (datasets.cifar100, {}, FINE),
        (datasets.cifar100, {"labels": "fine"}, FINE),
        (datasets.cifar100, {"labels": "coarse"}, COARSE),
    ],
)
def test_cifar_reads_both_splits(small, load, options, expected, split, step):
    images, labels = load(split, small, check=False, **options)
    np.testing.assert_array_equal(images, PHOTOGRAPHS[::step], strict=True)
    np.testing.assert_array_equal(labels, expected[::step], strict=True)
    images[:], labels[:] = 0, 0  # they are the caller's, not the file's


def test_a_photograph_is_red_green_and_blue_row_by_row(tmp_path):
    pixels = bytearray(3072)
    pixels[1] = 10  # red, first row, second column
    pixels[1024 + 32] = 20  # green, second row, first column
    pixels[3071] = 30  # blue, the last of all
    path = tmp_path / TEN / "test_batch.bin"
    path.parent.mkdir()
    path.write_bytes(b"\x07" + pixels)
    images, labels = datasets.cifar10("test", tmp_path, check=False)
    assert labels.tolist() == [7]
    assert np.argwhere(images[0]).tolist() == [[0, 0, 1], [1, 1, 0], [2, 31, 31]]
    assert images[images > 0].tolist() == [10, 20, 30]


def test_unchecked_cifar10_reads_the_batches_that_are_there(small):
    for name in (BATCHES[0], BATCHES[3]):
        (small / TEN / name).unlink()
    write_records(small / TEN / BATCHES[4], PHOTOGRAPHS[:1], KINDS[:1])
    images, labels = datasets.cifar10(folder=small, check=False)
    kept = [2, 3, 4, 5, 0]
    np.testing.assert_array_equal(images, PHOTOGRAPHS[kept])
    np.testing.assert_array_equal(labels, KINDS[kept])


def test_published_cifar10_needs_all_batches(small, monkeypatch):
    monkeypatch.setattr(photographs.Published, "check", lambda *_: None)
    assert len(datasets.cifar10(folder=small)[1]) == 10
    (small / TEN / BATCHES[3]).unlink()
    assert f"no {BATCHES[3]} in" in refusal(load=datasets.cifar10, folder=small)


@pytest.mark.parametrize("load", [datasets.cifar10, datasets.cifar100])
def test_cifar_is_found_by_the_environment(small, home, monkeypatch, load):
    monkeypatch.setenv("DEMINAT_DATA", str(small))
    np.testing.assert_array_equal(load(check=False)[0], PHOTOGRAPHS)
    assert not home.exists()


@pytest.mark.parametrize("check", [True, False])
@EACH_FILE
def test_missing_cifar_says_what_where_and_what_to_do(
    home, load, split, place, name, record, check
):
    message = refusal(split, load=load, check=check)
    for words in (
        f"no {name} in",
        str(home / ".cache/deminat" / place),
        "DEMINAT_DATA",
        "www.cs.toronto.edu/~kriz/cifar.html",
        "the binary version",
        "cifar-100-binary.tar.gz" if place == HUNDRED else "cifar-10-binary.tar.gz",
        "nothing is downloaded",
    ):
        assert words in message
    assert not home.exists()


@EACH_FILE
def test_a_folder_in_place_of_photographs_is_told(tmp_path, load, split, place, name, record):
    (tmp_path / place / name).mkdir(parents=True)
    assert "is a directory" in refusal(split, tmp_path, load=load, check=False)


@pytest.mark.parametrize("change", [-1, 1, -3072])
@EACH_FILE
def test_records_that_are_not_whole_are_refused(small, load, split, place, name, record, change):
    path = small / place / name
    size = path.stat().st_size + change
    os.truncate(path, size)
    message = refusal(split, small, load=load, check=False)
    for words in (str(path), f"has {size} bytes", f"records of {record} bytes"):
        assert words in message


@EACH_FILE
def test_photographs_without_a_record_are_refused(small, load, split, place, name, record):
    os.truncate(small / place / name, 0)
    assert "has 0 bytes" in refusal(split, small, load=load, check=False)


@pytest.mark.parametrize(
    ("load", "path", "byte", "says"),
    [
        (datasets.cifar10, f"{TEN}/data_batch_2.bin", 0, "label 255"),
        (datasets.cifar100, f"{HUNDRED}/train.bin", 0, "coarse label 255"),
        (datasets.cifar100, f"{HUNDRED}/train.bin", 1, "fine label 255"),
    ],
)
@pytest.mark.parametrize("row", [0, 1])
def test_a_class_that_does_not_exist_is_told(small, load, path, byte, says, row):
    content = bytearray((small / path).read_bytes())
    content[row * (3074 if HUNDRED in path else 3073) + byte] = 255
    (small / path).write_bytes(content)
    message = refusal(folder=small, load=load, check=False)
    for words in (str(small / path), f"has {says} in its record {row} "):
        assert words in message


@pytest.mark.parametrize(
    ("load", "path", "last"),
    [
        (datasets.cifar10, f"{TEN}/test_batch.bin", [9]),
        (datasets.cifar100, f"{HUNDRED}/test.bin", [19, 99]),
    ],
)
def test_the_last_class_is_read_and_none_beyond_it(tmp_path, load, path, last):
    write_records(tmp_path / path, PHOTOGRAPHS[:1], *([kind] for kind in last))
    assert load("test", tmp_path, check=False)[1].tolist() == last[-1:]
    for which in range(len(last)):
        beyond = [kind + (index == which) for index, kind in enumerate(last)]
        write_records(tmp_path / path, PHOTOGRAPHS[:1], *([kind] for kind in beyond))
        assert f"labels end at {last[which]}" in refusal("test", tmp_path, load=load, check=False)


@EACH_FILE
def test_cifar_of_another_size_is_not_the_published(small, load, split, place, name, record):
    message = refusal(split, small, load=load)
    size = (small / place / name).stat().st_size
    published = record * (50_000 if name == "train.bin" else 10_000)
    for words in (
        f"{name} is not the published file (it has {size} bytes, not {published})",
        "get it again",
        "check=False",
    ):
        assert words in message


@pytest.mark.parametrize(
    ("load", "path", "size"),
    [
        (datasets.cifar10, f"{TEN}/test_batch.bin", 30_730_000),
        (datasets.cifar100, f"{HUNDRED}/test.bin", 30_740_000),
    ],
)
def test_cifar_with_other_bytes_is_not_the_published(small, load, path, size):
    os.truncate(small / path, size)
    message = refusal("test", small, load=load)
    with (small / path).open("rb") as file:
        assert f"its sha256 is {hashlib.file_digest(file, 'sha256').hexdigest()}" in message
    assert "is not the published file" in message
    assert len(load("test", small, check=False)[1]) == 10_000


def test_cifar_with_the_published_bytes_is_read(small, monkeypatch):
    content = (small / HUNDRED / "test.bin").read_bytes()
    known = replace(
        photographs._CIFAR100,
        sums={"test.bin": (hashlib.sha256(content).hexdigest(),)},
        sizes={"test.bin": len(content)},
    )
    monkeypatch.setattr(photographs, "_CIFAR100", known)
    np.testing.assert_array_equal(datasets.cifar100("test", small)[0], PHOTOGRAPHS[::-1])


def test_photographs_are_held_once(tmp_path):
    images = np.zeros((2_000, 3, 32, 32), np.uint8)
    write_records(tmp_path / TEN / "test_batch.bin", images, KINDS.repeat(200))
    tracemalloc.start()
    try:
        datasets.cifar10("test", tmp_path, check=False)
        assert tracemalloc.get_traced_memory()[1] < 1.05 * images.nbytes
    finally:
        tracemalloc.stop()


def test_photographs_beyond_the_memory_are_refused_unread(small, monkeypatch):
    monkeypatch.setattr(checks, "available_memory", lambda: 20_000)
    message = refusal(folder=small, load=datasets.cifar10, check=False)
    assert "GB of memory" in message
    assert "a machine with more memory" in message


@pytest.mark.parametrize("load", [datasets.cifar10, datasets.cifar100])
@pytest.mark.parametrize("split", ["validation", "", None])
def test_cifar_has_two_splits(small, load, split):
    with pytest.raises(ValueError, match="split must be 'train' or 'test'"):
        load(split, small, check=False)


@pytest.mark.parametrize("labels", ["both", "fine label", None])
def test_cifar100_has_two_kinds_of_labels(small, labels):
    with pytest.raises(ValueError, match="labels must be 'fine' or 'coarse'"):
        datasets.cifar100("test", small, labels=labels, check=False)


# CIFAR, the real sets where DEMINAT_DATA names a folder that has them


def needs(place):
    """Skip a test where the publisher's files are not to be found."""
    if not os.path.isdir(os.path.join(os.environ.get("DEMINAT_DATA") or os.devnull, place)):
        pytest.skip(f"DEMINAT_DATA names no folder that holds {place}")


@pytest.mark.parametrize(
    ("split", "n", "first", "corner"),
    [
        ("train", 50_000, [6, 9, 9, 4, 1], [59, 62, 63]),
        ("test", 10_000, [3, 8, 8, 0, 6], [158, 112, 49]),
    ],
)
def test_the_published_cifar10_is_read(split, n, first, corner):
    needs(TEN)
    images, labels = datasets.cifar10(split)
    assert (images.shape, labels.shape) == ((n, 3, 32, 32), (n,))
    assert (images.dtype, labels.dtype) == (np.uint8, np.uint8)
    assert labels[:5].tolist() == first
    assert images[0, :, 0, 0].tolist() == corner
    assert np.bincount(labels).tolist() == [n // 10] * 10


@pytest.mark.parametrize(("split", "n"), [("train", 50_000), ("test", 10_000)])
@pytest.mark.parametrize(("kind", "classes"), [("fine", 100), ("coarse", 20)])
def test_the_published_cifar100_is_read(split, n, kind, classes):
    needs(HUNDRED)
    images, labels = datasets.cifar100(split, labels=kind)
    assert images.shape == (n, 3, 32, 32)
    assert np.bincount(labels).tolist() == [n // classes] * classes
