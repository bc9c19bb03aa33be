"""Figures. matplotlib is an extra: `pip install 'deminat[plot]'`."""

from .answers import (
    plot_concentration,
    plot_methods,
    plot_pointwise,
    save_comparison,
    save_information,
)
from .errors import plot_errors, plot_shares, save_errors, save_shares
from .pairs import save_heat_map, save_network

__all__ = [
    "plot_concentration",
    "plot_errors",
    "plot_methods",
    "plot_pointwise",
    "plot_shares",
    "save_comparison",
    "save_errors",
    "save_heat_map",
    "save_information",
    "save_network",
    "save_shares",
]
