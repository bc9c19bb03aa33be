"""Example data: one table comes with the package, images are read from a data folder.

The data folder is the argument `folder`, else the environment variable DEMINAT_DATA, else deminat
in the user's cache ($XDG_CACHE_HOME or ~/.cache). Nothing is ever downloaded.
"""

from .digits import mnist
from .photographs import cifar10, cifar100
from .proteins import sachs

__all__ = ["cifar10", "cifar100", "mnist", "sachs"]
