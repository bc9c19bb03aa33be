"""Options that several commands have, and the values that they take."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "UNTRAINED",
    "Categorical",
    "Cluster",
    "File",
    "Folds",
    "Groups",
    "Jobs",
    "Json",
    "MaxRows",
    "Method",
    "Nan",
    "Order",
    "Preset",
    "Report",
    "Resume",
    "Save",
    "Seed",
    "Skip",
    "Unit",
    "X",
    "Y",
    "YFile",
]


class Method(StrEnum):
    """Methods of the command line; a test keeps them equal to `METHODS`."""

    DEMI = "demi"
    JSD = "jsd"
    CCMI = "ccmi"
    SMILE = "smile"
    MINE = "mine"
    NWJ = "nwj"
    INFONCE = "infonce"
    GM = "gm"
    KSG = "ksg"
    GAUSSIAN = "gaussian"
    COPULA = "copula"


UNTRAINED = Method.KSG, Method.GAUSSIAN, Method.COPULA


class Preset(StrEnum):
    """Presets of the command line."""

    AUTO = "auto"
    QUICK = "quick"
    PAPER = "paper"


class Unit(StrEnum):
    """Units of the command line."""

    NATS = "nats"
    BITS = "bits"


class Nan(StrEnum):
    """What to do with missing values."""

    RAISE = "raise"
    OMIT = "omit"


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1,
        envvar="DEMINAT_JOBS",
        help="Processes to use, by default one for each core; the answer does not depend on it.",
    ),
]
Cluster = Annotated[
    str | None, typer.Option(help="Address of a Dask scheduler to use: tcp://host:8786.")
]

File = Annotated[Path, typer.Argument(help="CSV, TXT, Parquet, NPY, NPZ, HDF5; a folder of NPY.")]
YFile = Annotated[Path | None, typer.Argument(help="A second file, of y alone.")]
X = Annotated[
    str | None,
    typer.Option(
        help="Columns of x: names, gene_*, numbers from 0, as a,b,c. Of NPZ, HDF5: an array, x."
    ),
]
Y = Annotated[str | None, typer.Option(help="Columns of y. Of NPZ and HDF5: an array, y.")]
Categorical = Annotated[str, typer.Option(help="Columns that are categories: a,b.")]
Folds = Annotated[
    int,
    typer.Option(help="Number of critics, each trained without the pairs it scores."),
]
Given = Annotated[
    str | None,
    typer.Option(help="Columns that are known already: what x tells about y beyond these."),
]
Groups = Annotated[
    str | None,
    typer.Option(help="One column whose equal values belong together, such as a subject's."),
]
Order = Annotated[
    str | None,
    typer.Option(
        help="Column of times: numbers or ISO 8601; 'rows' if rows are in the order of time, "
        "'none' if their order means nothing."
    ),
]
MaxRows = Annotated[
    int | None,
    typer.Option(min=1, help="Draw so many of more rows; 200000, fewer of over 671 values each."),
]
Report = Annotated[
    Path | None, typer.Option(help="Write a report to this .html file: one page, no network.")
]
Save = Annotated[
    Path | None,
    typer.Option(help="Keep the run in this folder, for deminat score and deminat.load."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where a run with --save ended.")]
Seed = Annotated[int, typer.Option(min=0, help="One seed gives one answer.")]
Skip = Annotated[Nan, typer.Option("--nan", help="Refuse missing x or y, or omit their pairs.")]
