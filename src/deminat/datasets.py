"""Data to try things on: some come with the package, others are read from a folder of yours.

That folder is the one given, else the one that the environment variable DEMINAT_DATA names,
else deminat in the user's cache ($XDG_CACHE_HOME or ~/.cache). Nothing is ever downloaded.
"""

from __future__ import annotations

import hashlib
import io
import os
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deminat.errors import DataError
from deminat.files.checks import PathLike, foreign, readable, shown
from deminat.files.idx import read_idx

__all__ = ["mnist", "sachs"]

_MNIST = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
_MNIST_FROM = "yann.lecun.com/exdb/mnist or its mirror storage.googleapis.com/cvdf-datasets/mnist"
# The md5 of each file as published, and of what it holds.
_MNIST_MD5 = {
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
}


def sachs() -> pl.DataFrame:
    """Return the protein signalling data of Sachs et al.: 7,466 cells by 11 proteins.

    Each row is one human immune cell, each column the amount of one phosphorylated protein or
    phospholipid as measured by flow cytometry: raf, mek, plc, pip2, pip3, erk, akt, pka, pkc,
    p38, jnk. The cells of all nine experimental conditions are pooled. Raf activates mek, and
    erk acts on akt, so these pairs depend on each other strongly; the values have long tails.

    Returns:
        A frame (7466, 11) of Float64, exactly as published.

    References:
        Sachs, Perez, Pe'er, Lauffenburger, Nolan (2005), Causal protein-signaling networks
        derived from multiparameter single-cell data, Science 308:523-529.
        The table is sachs.2005.continuous.txt of github.com/cmu-phil/example-causal-datasets,
        licence CC0 1.0.
    """
    packed = resources.files("deminat").joinpath("data", "sachs.parquet").read_bytes()
    return pl.read_parquet(io.BytesIO(packed))


def mnist(
    split: Literal["train", "test"] = "train",
    folder: PathLike | None = None,
    *,
    check: bool = True,
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the handwritten digits of LeCun et al.: images of 28 by 28 pixels and their labels.

    The publisher's own files are read from `mnist` in the data folder, packed
    (train-images-idx3-ubyte.gz and so on) or, as many tools leave them, unpacked without .gz;
    the md5 of both forms is known. If both are there the packed one is read.

    Args:
        split: "train" for 60,000 images, "test" for 10,000 (the files called t10k).
        folder: The data folder, which holds `mnist`. If None, DEMINAT_DATA names it; if that
            is not set, it is deminat in the user's cache.
        check: Whether only the published files will do. Without, any set in their form is
            read: images (n, 28, 28) and labels (n,).

    Returns:
        Images (n, 28, 28), 0 for paper to 255 for ink, and labels (n,) from 0 to 9, both uint8.

    Raises:
        DataError: If a file is missing, is not the published one, or cannot be read.

    References:
        LeCun, Bottou, Bengio, Haffner (1998), Gradient-based learning applied to document
        recognition, Proceedings of the IEEE 86:2278-2324.
    """
    if split not in _MNIST:
        raise ValueError(f"split must be 'train' or 'test', got {split!r}")
    paths = [_find_mnist(_data_folder(folder) / "mnist", name) for name in _MNIST[split]]
    if check:
        for path in paths:
            _check_published(path)
    images, labels = (read_idx(path) for path in paths)
    if images.shape != (len(labels), 28, 28) or labels.ndim != 1:
        raise DataError(
            f"{shown(paths[0])} has shape {images.shape} and its labels {labels.shape}, which must "
            "be (n, 28, 28) and (n,): get both files from one set"
        )
    return images, labels


def _data_folder(folder: PathLike | None) -> Path:
    """Return the folder given, or the one of the environment, or the one in the cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "deminat")
    return Path(os.path.expanduser(folder or os.environ.get("DEMINAT_DATA") or cache))


def _find_mnist(folder: Path, name: str) -> Path:
    """Return the file `name` in `folder`, the packed one if both are there."""
    for path in (folder / f"{name}.gz", folder / name):
        if os.path.exists(path):
            return readable(path)
    raise DataError(
        f"no {name}.gz, packed or not, in {shown(folder)}: nothing is downloaded silently; get it "
        f"from {_MNIST_FROM}, and let folder= or the environment variable DEMINAT_DATA name the "
        "folder that holds mnist"
    )


def _check_published(path: Path) -> None:
    """Refuse a file that is not, byte for byte, the published one."""
    with foreign(path, "MNIST"), path.open("rb") as file:
        # A checksum against accidents, which must also work where md5 is barred from security.
        found = hashlib.file_digest(file, partial(hashlib.md5, usedforsecurity=False)).hexdigest()
    published = _MNIST_MD5[path.name.removesuffix(".gz")]
    if found not in published:
        raise DataError(
            f"{shown(path)} is not the published file (its md5 is {found}, not {published[0]} or, "
            f"unpacked, {published[1]}): get it again from {_MNIST_FROM}, or read another set with "
            "check=False"
        )
