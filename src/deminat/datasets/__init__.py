"""Data to try things on: some come with the package, others are read from a folder of yours.

That folder is the one given, else the one that the environment variable DEMINAT_DATA names,
else deminat in the user's cache ($XDG_CACHE_HOME or ~/.cache). Nothing is ever downloaded.
"""

from .digits import mnist
from .photographs import cifar10, cifar100
from .proteins import sachs

__all__ = ["cifar10", "cifar100", "mnist", "sachs"]
