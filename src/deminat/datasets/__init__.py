"""Example data: one table comes with the package, images are read from a data folder.

The data folder is the argument `folder`, else the environment variable DEMINAT_DATA, else deminat
in the user's cache ($XDG_CACHE_HOME or ~/.cache). Nothing is ever downloaded.
"""

import io
from importlib import resources

import polars as pl

from .images import cifar10, cifar100, mnist

__all__ = ["cifar10", "cifar100", "mnist", "sachs"]


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
    packed = resources.files("deminat").joinpath("datasets", "sachs.parquet").read_bytes()
    return pl.read_parquet(io.BytesIO(packed))
