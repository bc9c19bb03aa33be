"""The paper's experiments, a command each."""

import json
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DataError
from .app import app
from .console import progress, say
from .options import Cluster, Jobs, Json

if TYPE_CHECKING:
    from ..runtime.sweep import Sweep

__all__ = ["paper"]

paper = typer.Typer(
    help="Run an experiment of the paper, or the part that is missing, and write its results.",
    no_args_is_help=True,
)
app.add_typer(paper, name="paper")

Out = Annotated[
    Path, typer.Option(help="Folder for rows, tables and figures; goes on where it was.")
]
Only = Annotated[
    list[str] | None,
    typer.Option(help="Keep cells that match: d=20, training='demi*'. Repeatable."),
]
Reps = Annotated[int | None, typer.Option(min=1, help="Draws of each.")]
Scale = Annotated[
    float | None, typer.Option(help="Share of pairs, steps or images, for a quick look.")
]
Precision = Annotated[
    str | None,
    typer.Option(help="Of products in training: float32, or bfloat16, where that is faster."),
]
_OUT = Path("paper")


@paper.command()
def gaussian(
    out: Out = _OUT,
    only: Only = None,
    reps: Reps = None,
    scale: Scale = None,
    precision: Precision = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:
    """Error of every method on Gaussians, by true information (section 3.1); 10 draws of each.

    deminat paper gaussian --only d=20 --only n=32000 --reps 2
    """
    changed = {"reps": reps, "scale": scale, "precision": precision}
    _run("gaussian", out, only, as_json, changed, _sweeping(jobs, cluster))


@paper.command()
def longrun(
    out: Out = _OUT,
    only: Only = None,
    reps: Reps = None,
    scale: Scale = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:
    """Curves of 100,000 steps on fresh pairs (appendix B).

    deminat paper longrun --scale 0.2
    """
    _run("longrun", out, only, as_json, {"reps": reps, "scale": scale}, _sweeping(jobs, cluster))


@paper.command()
def consistency(
    out: Out = _OUT,
    only: Only = None,
    reps: Reps = None,
    scale: Scale = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Instead of 100.")] = None,
    contrast: Annotated[
        int | None, typer.Option(min=1, help="Unpaired images a pair of InfoNCE, instead of 63.")
    ] = None,
    precision: Precision = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:
    """Self-consistency on MNIST (appendix A).

    deminat paper consistency --epochs 5 --contrast 3
    """
    changed = {
        "reps": reps,
        "scale": scale,
        "epochs": epochs,
        "contrast": contrast,
        "precision": precision,
    }
    _run("consistency", out, only, as_json, changed, _sweeping(jobs, cluster))


@paper.command()
def infomax(
    out: Out = _OUT,
    dataset: Annotated[str, typer.Option(help="cifar10 or cifar100.")] = "cifar10",
    objective: Annotated[
        list[str] | None,
        typer.Option(
            help="demi, 'demi(alpha=0.1)', jsd, 'smile(tau=5)', mine, infonce, supervised ..."
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Instead of 100.")] = None,
    critic: Annotated[
        str | None,
        typer.Option(help="dot, as the paper's; scaled or normalised, which learn faster; concat."),
    ] = None,
    units: Annotated[int | None, typer.Option(min=1, help="Of the critic, 2,048.")] = None,
    negatives: Annotated[
        int | None, typer.Option(min=0, help="Other images for each; 0 for all of its batch.")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=2, help="Images a step, 64, of all processes together.")
    ] = None,
    precision: Annotated[str | None, typer.Option(help="float32, or bfloat16: mixed.")] = None,
    probe_every: Annotated[int | None, typer.Option(min=1, help="Epochs between probes.")] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    check: Annotated[
        bool, typer.Option(help="Only the published files, or any images in their form.")
    ] = True,
    reps: Reps = None,
    scale: Scale = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Trainings at once; each takes a core and gigabytes.")
    ] = 1,
    as_json: Json = False,
) -> None:
    """Deep InfoMax with each objective, judged by probes (section 3.2).

    deminat paper infomax --dataset cifar10 --objective demi --epochs 8 --units 256

    torchrun --nproc-per-node 2 -m deminat paper infomax --objective demi --epochs 8
    """
    from ..studies.paper.distributed import (
        follow_leader,
        is_one_of_several,
        leader,
        process_group,
        rank,
    )
    from ..studies.paper.infomax import run_infomax, training_for

    changed = {
        "dataset": dataset,
        "trainings": tuple(dict.fromkeys(map(training_for, objective))) if objective else None,
        "epochs": epochs,
        "critic": critic,
        "units": units,
        "negatives": negatives,
        "batch": batch,
        "precision": precision,
        "probe_every": probe_every,
        "check": check,
        "reps": reps,
        "scale": scale,
    }
    if jobs > 1 and is_one_of_several():
        raise DataError("processes of torchrun train one model together: leave out --jobs")
    with process_group(device) as own_device:
        sweep = _sweep("infomax", [], changed)
        run = partial(run_infomax, folder=out / "checkpoints", device=own_device)
        if rank() > 0:
            follow_leader(run)
            return
        (out / "checkpoints").mkdir(parents=True, exist_ok=True)
        with leader(run) as led:
            _run_sweep("infomax", out, replace(sweep, run=led), as_json, {"jobs": jobs})


def _sweeping(jobs: int | None, cluster: str | None) -> dict[str, Any]:
    """Return how to run a sweep whose cells are apart from each other."""
    from ..studies.paper.distributed import is_one_of_several

    if is_one_of_several():
        raise DataError("torchrun is for infomax; here use --jobs or --cluster")
    return {"jobs": jobs or -1, "cluster": cluster}


def _run(
    name: str,
    out: Path,
    only: list[str] | None,
    as_json: bool,
    changed: dict[str, Any],
    how: dict[str, Any],
) -> None:
    _run_sweep(name, out, _sweep(name, only or [], changed), as_json, how)


def _sweep(name: str, only: list[str], changed: dict[str, Any]) -> "Sweep":
    """Return what to run, or say at once what is not installed."""
    from ..studies.paper.experiments import EXPERIMENTS

    experiment = EXPERIMENTS[name]
    for module in experiment.needs:
        if find_spec(module) is None:
            raise DataError(f"this needs {module}: pip install {module}")
    return experiment.sweep(only, **changed)


def _run_sweep(name: str, out: Path, sweep: "Sweep", as_json: bool, how: dict[str, Any]) -> None:
    from ..studies.paper.experiments import EXPERIMENTS, run_paper

    say(f"{len(sweep.cells)} cells, rows in {out / name}.sqlite")
    with progress(name, kept=True) as report_share:
        rows = run_paper(name, EXPERIMENTS[name], sweep, out, progress=report_share, **how)
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    say(f"wrote {out / name}.csv, .parquet, .md, .tex, .png and .svg")
