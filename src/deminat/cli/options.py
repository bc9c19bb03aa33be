"""Options that several commands share, and the values they accept."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, BadParameter, Option

from ..errors import printable
from ..estimators.registry import METHODS, PRESETS

__all__ = [
    "Budget",
    "Categorical",
    "Cluster",
    "Discrete",
    "File",
    "Folds",
    "Groups",
    "Jobs",
    "Json",
    "MaxRows",
    "Method",
    "Missing",
    "Nan",
    "Order",
    "Recipe",
    "Report",
    "Resume",
    "Save",
    "Seed",
    "Unit",
    "X",
    "Y",
    "YFile",
    "one_of",
]


def one_of(names: Iterable[str]) -> Callable[[Any], Any]:
    """Return a check that an option, or each of a repeated one, is one of some names."""

    def check(value: Any) -> Any:
        given = value if isinstance(value, list) else [value]
        wrong = [name for name in given if name is not None and name not in names]
        if wrong:
            raise BadParameter(f"'{printable(wrong[0])}' is not one of {', '.join(names)}.")
        return value

    return check


class Unit(StrEnum):
    """Units of the answer."""

    NATS = "nats"
    BITS = "bits"


class Nan(StrEnum):
    """Treatment of rows with missing values."""

    RAISE = "raise"
    OMIT = "omit"


File = Annotated[
    Path, Argument(help="A CSV, TXT, Parquet, NPY, NPZ or HDF5 file, or a folder of NPY files.")
]
YFile = Annotated[Path | None, Argument(help="File of y; the first file is then x as a whole.")]
X = Annotated[
    str | None,
    Option(
        help="Columns of x, separated by commas: names, patterns such as 'gene_*', or numbers from "
        "0. In NPZ and HDF5 files: one array (default x)."
    ),
]
Y = Annotated[
    str | None, Option(help="Columns of y, like --x. In NPZ and HDF5 files: one array (default y).")
]
Given = Annotated[
    str | None, Option(help="Columns of z, like --x: how much x tells about y beyond z.")
]
Categorical = Annotated[
    str,
    Option(
        help="Columns that are categories, separated by commas. Columns of words are categories "
        "also if they are not listed."
    ),
]
Discrete = Annotated[
    str | None,
    Option(
        metavar="NAMES",
        help="Columns of numbers that are labels, whose codes may be in any order, separated by "
        "commas; 'x' or 'y' for a whole file or array. 'all' or 'none' of them (default: those "
        "that take few values, each repeated often; a warning names them).",
    ),
]
Groups = Annotated[
    str | None,
    Option(
        help="Column that names the group of each row, such as a subject. Rows of one group are "
        "never split between training and scoring, nor used as unpaired samples of each other."
    ),
]
Order = Annotated[
    str | None,
    Option(
        help="Column of times: numbers or ISO 8601 dates. 'rows' if the rows are in time order. "
        "'none' if their order means nothing: similarity of adjacent rows is then ignored."
    ),
]
MaxRows = Annotated[
    int | None,
    Option(
        min=1,
        help="Use at most this many rows, sampled at random (default 200,000; fewer for very wide "
        "rows).",
    ),
]
Missing = Annotated[Nan, Option("--nan", help="Refuse rows with NaN or inf, or omit them.")]
Method = Annotated[
    list[str] | None,
    Option(
        metavar="NAME",
        callback=one_of(METHODS),
        help=f"Method: {', '.join(METHODS)} (default demi). Repeat the option to compare several.",
    ),
]
Recipe = Annotated[
    str,
    Option(
        metavar=f"[{'|'.join(PRESETS)}]",
        callback=one_of(PRESETS),
        help="Recipe of trained methods: auto is the most accurate, quick takes about half of "
        "the time, paper is the paper's.",
    ),
]
Folds = Annotated[
    int, Option(help="Number of folds, at least 2. Critics never score rows they were trained on.")
]
Seed = Annotated[int, Option(min=0, help="Random seed. The same seed gives the same answer.")]
Budget = Annotated[
    float | None,
    Option(help="Time limit in seconds (default none). Less time gives a less accurate answer."),
]
Jobs = Annotated[
    int | None,
    Option(
        min=1,
        envvar="DEMINAT_JOBS",
        help="Number of processes (default one per core). The answer does not depend on it.",
    ),
]
Cluster = Annotated[
    str | None, Option(help="Dask scheduler to use instead of processes, such as tcp://host:8786.")
]
Report = Annotated[Path | None, Option(help="Write an offline report to this .html file.")]
Save = Annotated[
    Path | None, Option(help="Save the run in this folder, for deminat score and deminat.load.")
]
Resume = Annotated[bool, Option("--resume", help="Continue the run in the --save folder.")]
Json = Annotated[bool, Option("--json", help="Print JSON instead of text.")]
