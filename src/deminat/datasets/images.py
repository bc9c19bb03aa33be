"""Published sets of images, read from the user's data folder: MNIST, CIFAR-10 and CIFAR-100.

Checksums identify the files of a set. They detect accidents: an incomplete download, a file of
another set, a damaged disk.

MNIST is in the IDX format: an array of bytes, packed with gzip or not.

    00 00 | type | k | lengths of k axes, four bytes each, big-endian | values

Type 8 is an unsigned byte, the only one read here. The length of a packed file is known only by
unpacking it. So it is unpacked piece by piece, up to one byte more than the header declares, and
an array is made only if exactly the declared bytes are found.

CIFAR is read in the publisher's binary version. A file is a sequence of records, with nothing
before, between or after them:

    label, or coarse label and fine label | 1024 bytes red | 1024 green | 1024 blue

Each colour is a plane of 32 by 32 bytes, row by row from the top.
"""

import gzip
import hashlib
import io
import math
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..data.files.guards import (
    DEFLATE_AT_MOST,
    PathLike,
    check_memory,
    check_readable,
    parsing,
    show_path,
)
from ..errors import DataError, printable

__all__ = ["Published", "cifar10", "cifar100", "mnist", "read_idx"]

_GZIP = b"\x1f\x8b"
_BYTES = b"\0\0\x08"
_MOST_AXES = 32
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Published:
    """A published set of files.

    Args:
        title: The name of the set.
        folder: The folder within the data folder that holds its files.
        source: Where to get them.
        splits: The names of the files of each split.
        checksum: The name of the checksum in `hashlib`.
        sums: The checksums of each file: as published and, if that is packed, unpacked. The key is
            the name without .gz.
        sizes: The bytes of each file, where known.
    """

    title: str
    folder: str
    source: str
    splits: Mapping[str, tuple[str, ...]]
    checksum: str
    sums: Mapping[str, tuple[str, ...]]
    sizes: Mapping[str, int] = field(default_factory=dict)

    def names(self, split: str) -> tuple[str, ...]:
        """Return the names of the files of `split`."""
        if split not in self.splits:
            raise ValueError(f"split must be 'train' or 'test', got {split!r}")
        return self.splits[split]

    def place(self, folder: PathLike | None) -> Path:
        """Return the folder of this set in the data folder, which is `folder` if given."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "deminat")
        data = folder or os.environ.get("DEMINAT_DATA") or cache
        return Path(os.path.expanduser(data), self.folder)

    def find(self, folder: PathLike | None, *files: tuple[str, ...], check: bool) -> list[Path]:
        """Return a path for each file, the first existing one of its possible names."""
        place, paths = self.place(folder), []
        for names in files:
            path = next((place / name for name in names if os.path.exists(place / name)), None)
            if path is None:
                raise DataError(
                    f"no {' or '.join(names)} in {show_path(place)}: nothing is downloaded; get it "
                    f"from {self.source}, and set folder= or the environment variable DEMINAT_DATA "
                    f"to the folder that holds {self.folder}"
                )
            paths.append(check_readable(path))
        for path in paths if check else ():
            self.check(path)
        return paths

    def check(self, path: Path) -> None:
        """Refuse a file that is not, byte for byte, the published one."""
        name = path.name.removesuffix(".gz")
        with parsing(path, self.title), path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != self.sizes.get(name, size):
                raise self._other(path, f"it has {size} bytes, not {self.sizes[name]}")
            # Not for security: md5 must work also where it is disabled for that purpose.
            begin = partial(hashlib.new, self.checksum, usedforsecurity=False)
            found = hashlib.file_digest(file, begin).hexdigest()
        if found not in self.sums[name]:
            known = " or, unpacked, ".join(self.sums[name])
            raise self._other(path, f"its {self.checksum} is {found}, not {known}")

    def _other(self, path: Path, why: str) -> DataError:
        """Return the error of a file that is not the published one."""
        return DataError(
            f"{show_path(path)} is not the published file ({why}): get it again from "
            f"{self.source}, or read another set with check=False"
        )


_DIGITS = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
_MD5 = (  # of these files, packed and unpacked
    ("f68b3c2dcbeaaa9fbdd348bbdeb94873", "6bbc9ace898e44ae57da46a324031adb"),
    ("d53e105ee54ea40749a09fcbcd1e9432", "a25bea736e30d166cdddb491f175f624"),
    ("9fb629c4189551a2d022fa330f9573f3", "2646ac647ad5339dbf082846283269ea"),
    ("ec29112dd5afa0611ce80d1b7f02629c", "27ae3e4e09519cfbb04c329615203637"),
)
_MNIST = Published(
    title="MNIST",
    folder="mnist",
    source="yann.lecun.com/exdb/mnist or its mirror storage.googleapis.com/cvdf-datasets/mnist",
    splits=_DIGITS,
    checksum="md5",
    sums=dict(zip((*_DIGITS["train"], *_DIGITS["test"]), _MD5, strict=True)),
)

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


def mnist(
    split: Literal["train", "test"] = "train", folder: PathLike | None = None, *, check: bool = True
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the handwritten digits of LeCun et al.: images of 28 by 28 pixels and their labels.

    The published files are read from `mnist` in the data folder, packed
    (train-images-idx3-ubyte.gz and so on) or unpacked, without .gz. The md5 of both forms is known.
    If both are present, the packed one is read.

    Args:
        split: "train" for 60,000 images, "test" for 10,000 (the files called t10k).
        folder: The data folder, which holds `mnist`; see `deminat.datasets` for the default.
        check: Whether the files must be the published ones. If not, any files of the same form are
            read: images (n, 28, 28) and labels (n,).

    Returns:
        Images (n, 28, 28), 0 for paper to 255 for ink, and labels (n,) from 0 to 9, both uint8.

    Raises:
        DataError: If a file is missing, is not the published one, or cannot be read.

    References:
        LeCun, Bottou, Bengio, Haffner (1998), Gradient-based learning applied to document
        recognition, Proceedings of the IEEE 86:2278-2324.
    """
    files = [(f"{name}.gz", name) for name in _MNIST.names(split)]
    paths = _MNIST.find(folder, *files, check=check)
    images, labels = (read_idx(path) for path in paths)
    if images.shape != (len(labels), 28, 28) or labels.ndim != 1:
        raise DataError(
            f"{show_path(paths[0])} has shape {images.shape} and its labels {labels.shape}, which "
            "must be (n, 28, 28) and (n,): get both files from one set"
        )
    return images, labels


def cifar10(
    split: Literal["train", "test"] = "train", folder: PathLike | None = None, *, check: bool = True
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
    files = [_records(path, record) for path in paths]
    needed = sum(records.nbytes for records in files)
    check_memory(paths[0].parent, needed, "take a machine with more memory")
    for path, records in zip(paths, files, strict=True):
        _check_labels(records, classes, path)
    images = np.concatenate([records["image"] for records in files])
    return images, np.concatenate([records[wanted] for records in files])


def _records(path: Path, record: np.dtype[Any]) -> NDArray[Any]:
    """Return the records of a file, mapped into memory."""
    with parsing(path, "CIFAR"):
        size = path.stat().st_size
        if size < record.itemsize or size % record.itemsize:
            raise DataError(
                f"{show_path(path)} has {size} bytes, and must have one or more whole records of "
                f"{record.itemsize} bytes: it is cut off or of another kind; get it again"
            )
        return np.asarray(np.memmap(path, record, "r"))


def _check_labels(records: NDArray[Any], classes: Mapping[str, int], path: Path) -> None:
    """Refuse records whose class does not exist."""
    for name, count in classes.items():
        wrong = np.flatnonzero(records[name] >= count)
        if len(wrong):
            raise DataError(
                f"{show_path(path)} has {name} {records[name][wrong[0]]} in its record {wrong[0]} "
                f"(from 0), and {name}s end at {count - 1}: it is damaged or of another kind"
            )


def read_idx(path: PathLike) -> NDArray[np.uint8]:
    """Return the writable array in an idx file; its first bytes show whether it is packed."""
    path = check_readable(Path(path))
    with parsing(path, "idx"), path.open("rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        stream = gzip.GzipFile(fileobj=file) if packed else file
        shape = _shape(stream, show_path(path))
        most = os.fstat(file.fileno()).st_size * (DEFLATE_AT_MOST if packed else 1)
        return np.frombuffer(_values(stream, path, shape, most), np.uint8).reshape(shape)


def _shape(stream: io.BufferedIOBase, label: str) -> tuple[int, ...]:
    """Read the header; leave the stream at the first value."""
    start = stream.read(len(_BYTES) + 1)
    if len(start) <= len(_BYTES) or not start.startswith(_BYTES):
        raise DataError(f"{label} is no idx file of unsigned bytes: check what it is")
    axes = start[-1]
    lengths = stream.read(4 * axes)
    if len(lengths) < 4 * axes:
        raise DataError(f"{label} is cut off within its header: get it again")
    shape = struct.unpack(f">{axes}I", lengths)
    if not 1 <= axes <= _MOST_AXES or min(shape) < 1:
        raise DataError(
            f"{label} declares shape {printable(shape)}, and an array needs 1 to {_MOST_AXES} axes"
            ", none of them empty: check what it is"
        )
    return shape


def _values(stream: io.BufferedIOBase, path: Path, shape: tuple[int, ...], most: int) -> bytearray:
    """Return the values of an array of `shape`, of a file that can hold `most` bytes."""
    size, values = math.prod(shape), bytearray()
    found = f"cannot hold more than {most}"
    if size <= most:
        check_memory(path, size, "take a machine with more memory")
        # One byte more is requested: gzip compares checksums at the end of the stream.
        while chunk := stream.read(min(_CHUNK, size + 1 - len(values))):
            values += chunk
        found = "holds more" if len(values) > size else f"holds {len(values)}"
    if len(values) != size:
        raise DataError(
            f"{show_path(path)} declares {printable(size)} bytes of values and {found}: it is "
            "damaged or its header is wrong; get it again"
        )
    return values
