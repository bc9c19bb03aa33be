"""Small photographs in colour: CIFAR-10 and CIFAR-100, in the publisher's binary version.

A file is a sequence of records, with nothing before, between or after them:

    label, or coarse label and fine label | 1024 bytes red | 1024 green | 1024 blue

Each colour is a plane of 32 by 32 bytes, row by row from the top.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..data.files.guards import PathLike, check_memory, parsing, show_path
from ..errors import DataError
from .published import Published

__all__ = ["cifar10", "cifar100"]

_PAGE = "www.cs.toronto.edu/~kriz/cifar.html (the binary version, {})"
_SHAPE = (3, 32, 32)

# The labels of a record, one byte each, and their numbers of classes.
_CLASSES10 = {"label": 10}
_CLASSES100 = {"coarse label": 20, "fine label": 100}

_SUMS10 = {
    "data_batch_1.bin": ("cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",),
    "data_batch_2.bin": ("a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",),
    "data_batch_3.bin": ("bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",),
    "data_batch_4.bin": ("014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",),
    "data_batch_5.bin": ("755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",),
    "test_batch.bin": ("8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",),
}
_CIFAR10 = Published(
    title="CIFAR-10",
    folder="cifar-10-batches-bin",
    source=_PAGE.format("cifar-10-binary.tar.gz"),
    splits={
        "train": tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
        "test": ("test_batch.bin",),
    },
    checksum="sha256",
    sums=_SUMS10,
    sizes=dict.fromkeys(_SUMS10, 10_000 * 3073),
)
_CIFAR100 = Published(
    title="CIFAR-100",
    folder="cifar-100-binary",
    source=_PAGE.format("cifar-100-binary.tar.gz"),
    splits={"train": ("train.bin",), "test": ("test.bin",)},
    checksum="sha256",
    sums={
        "train.bin": ("f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29",),
        "test.bin": ("d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a",),
    },
    sizes={"train.bin": 50_000 * 3074, "test.bin": 10_000 * 3074},
)


def cifar10(
    split: Literal["train", "test"] = "train",
    folder: PathLike | None = None,
    *,
    check: bool = True,
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the photographs of CIFAR-10: images of 32 by 32 pixels in colour and their labels.

    The labels are 0 airplane, 1 automobile, 2 bird, 3 cat, 4 deer, 5 dog, 6 frog, 7 horse, 8 ship,
    9 truck.

    Args:
        split: "train" for 50,000 images (data_batch_1.bin to data_batch_5.bin), "test" for
            10,000 (test_batch.bin).
        folder: The data folder, which holds `cifar-10-batches-bin` with the files of the binary
            version; see `deminat.datasets` for the default.
        check: Whether the files must be the published ones. If not, any files of the same form are
            read, of those batches that are present.

    Returns:
        Images (n, 3, 32, 32), red, green and blue from 0 to 255, and labels (n,), both uint8.

    Raises:
        DataError: If a file is missing, is not the published one, or cannot be read.

    References:
        Krizhevsky (2009), Learning multiple layers of features from tiny images, University of
        Toronto.
    """
    return _read(_find(_CIFAR10, split, folder, check), _CLASSES10, "label")


def cifar100(
    split: Literal["train", "test"] = "train",
    folder: PathLike | None = None,
    *,
    labels: Literal["fine", "coarse"] = "fine",
    check: bool = True,
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the photographs of CIFAR-100: images of 32 by 32 pixels in colour and their labels.

    Args:
        split: "train" for 50,000 images (train.bin), "test" for 10,000 (test.bin).
        folder: The data folder, which holds `cifar-100-binary` with the files of the binary
            version; see `deminat.datasets` for the default.
        labels: "fine" for the 100 classes, "coarse" for the 20 groups of five that they form.
        check: Whether the files must be the published ones. If not, any of the same form are read.

    Returns:
        Images (n, 3, 32, 32) and labels (n,), as of `cifar10`.

    Raises:
        DataError: If a file is missing, is not the published one, or cannot be read.
    """
    if labels not in ("fine", "coarse"):
        raise ValueError(f"labels must be 'fine' or 'coarse', got {labels!r}")
    return _read(_find(_CIFAR100, split, folder, check), _CLASSES100, f"{labels} label")


def _find(published: Published, split: str, folder: PathLike | None, check: bool) -> list[Path]:
    """Return the files of `split`: all and as published, or those that are present."""
    names = published.names(split)
    if not check:
        place = published.place(folder)
        names = tuple(name for name in names if os.path.exists(place / name)) or names[:1]
    return published.find(folder, *((name,) for name in names), check=check)


def _read(
    paths: Sequence[Path], classes: Mapping[str, int], wanted: str
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the images of all files, one after the other, and the labels called `wanted`."""
    record = np.dtype([*((name, np.uint8) for name in classes), ("image", np.uint8, _SHAPE)])
    counts = [_count(path, record.itemsize) for path in paths]
    n = sum(counts)
    check_memory(paths[0].parent, n * record.itemsize, "take a machine with more memory")
    images, labels = np.empty((n, *_SHAPE), np.uint8), np.empty(n, np.uint8)
    stop = 0
    for path, count in zip(paths, counts, strict=True):
        start, stop = stop, stop + count
        with parsing(path, "CIFAR"):
            records = np.memmap(path, record, "r", shape=(count,))
            _check_labels(records, classes, path)
            images[start:stop], labels[start:stop] = records["image"], records[wanted]
    return images, labels


def _count(path: Path, record: int) -> int:
    """Return the number of records of `record` bytes in a file."""
    with parsing(path, "CIFAR"):
        size = path.stat().st_size
    if size < record or size % record:
        raise DataError(
            f"{show_path(path)} has {size} bytes, and must have one or more whole records of "
            f"{record} bytes: it is cut off or of another kind; get it again"
        )
    return size // record


def _check_labels(records: NDArray[Any], classes: Mapping[str, int], path: Path) -> None:
    """Refuse records whose class does not exist."""
    for name, count in classes.items():
        wrong = np.flatnonzero(records[name] >= count)
        if len(wrong):
            raise DataError(
                f"{show_path(path)} has {name} {records[name][wrong[0]]} in its record {wrong[0]} "
                f"(from 0), and {name}s end at {count - 1}: it is damaged or of another kind"
            )
