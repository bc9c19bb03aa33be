"""Handwritten digits: MNIST."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..data.files.guards import PathLike, show_path
from ..errors import DataError
from .idx import read_idx
from .published import Published

__all__ = ["mnist"]

_MNIST = Published(
    title="MNIST",
    folder="mnist",
    source="yann.lecun.com/exdb/mnist or its mirror storage.googleapis.com/cvdf-datasets/mnist",
    splits={
        "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
        "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
    },
    checksum="md5",
    sums={
        "train-images-idx3-ubyte": (
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "6bbc9ace898e44ae57da46a324031adb",
        ),
        "train-labels-idx1-ubyte": (
            "d53e105ee54ea40749a09fcbcd1e9432",
            "a25bea736e30d166cdddb491f175f624",
        ),
        "t10k-images-idx3-ubyte": (
            "9fb629c4189551a2d022fa330f9573f3",
            "2646ac647ad5339dbf082846283269ea",
        ),
        "t10k-labels-idx1-ubyte": (
            "ec29112dd5afa0611ce80d1b7f02629c",
            "27ae3e4e09519cfbb04c329615203637",
        ),
    },
)


def mnist(
    split: Literal["train", "test"] = "train",
    folder: PathLike | None = None,
    *,
    check: bool = True,
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
