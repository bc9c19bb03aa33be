"""`deminat paper`: the experiments of the paper, one command each."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option, Typer

from ..errors import DataError
from .app import app
from .console import print_json, progress, say
from .inputs import check_installed
from .options import Cluster, Jobs, Json

if TYPE_CHECKING:
    from ..runtime.sweep import Sweep
    from ..studies.paper.experiments import Experiment

__all__ = ["paper"]

_OUT = Path("paper")

paper = Typer(
    help="Run the missing part of an experiment of the paper and write its results.",
    no_args_is_help=True,
)
app.add_typer(paper, name="paper")

Out = Annotated[
    Path, Option(help="Folder for rows, tables and figures. Cells in it are not run again.")
]
Only = Annotated[
    list[str] | None,
    Option(help="Run only cells that match, such as d=20, training='demi*'. Repeatable."),
]
Reps = Annotated[
    int | None, Option(min=1, help="Repetitions of each cell (notebook, gaussian: 10, else 1).")
]
Scale = Annotated[
    float | None, Option(help="Share of the pairs, steps or images to use, up to 1 (default 1).")
]
Precision = Annotated[
    str | None,
    Option(help="Precision of training: float32 (default), or bfloat16 where that is faster."),
]
Epochs = Annotated[int | None, Option(min=1, help="Epochs of training (default 100).")]


@paper.command()
def notebook(
    out: Out = _OUT,
    only: Only = None,
    reps: Reps = None,
    scale: Scale = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:
    """Train as the authors' notebook does, beside its losses and the released checkpoints.

    deminat paper notebook --only variant=notebook --reps 2
    """
    sweep = _experiment("notebook").sweep(only or [], reps=reps, scale=scale)
    _run("notebook", sweep, out, as_json, jobs or -1, cluster)


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
    """Measure the error of every method on Gaussians, by true information (section 3.1).

    deminat paper gaussian --only d=20 --only n=32000 --reps 2
    """
    experiment = _experiment("gaussian")
    sweep = experiment.sweep(only or [], reps=reps, scale=scale, precision=precision)
    _run("gaussian", sweep, out, as_json, jobs or -1, cluster)


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
    """Follow the estimates over 100,000 training steps on fresh pairs (appendix B).

    deminat paper longrun --scale 0.2
    """
    sweep = _experiment("longrun").sweep(only or [], reps=reps, scale=scale)
    _run("longrun", sweep, out, as_json, jobs or -1, cluster)


@paper.command()
def consistency(
    out: Out = _OUT,
    only: Only = None,
    reps: Reps = None,
    scale: Scale = None,
    epochs: Epochs = None,
    contrast: Annotated[
        int | None, Option(min=1, help="Unpaired images per pair for InfoNCE (default 63).")
    ] = None,
    precision: Precision = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:
    """Test self-consistency on MNIST images (appendix A).

    deminat paper consistency --epochs 5 --contrast 3
    """
    sweep = _experiment("consistency").sweep(
        only or [], reps=reps, scale=scale, epochs=epochs, contrast=contrast, precision=precision
    )
    _run("consistency", sweep, out, as_json, jobs or -1, cluster)


@paper.command()
def infomax(
    out: Out = _OUT,
    dataset: Annotated[str, Option(help="Images: cifar10 or cifar100.")] = "cifar10",
    objective: Annotated[
        list[str] | None,
        Option(
            help="Objective, such as demi, 'demi(alpha=0.1)', jsd, 'smile(tau=5)', mine, infonce "
            "or supervised (default all). Repeatable."
        ),
    ] = None,
    epochs: Epochs = None,
    critic: Annotated[
        str | None,
        Option(
            help="Critic: dot (default, the paper's), concat, or the faster scaled, normalised."
        ),
    ] = None,
    units: Annotated[
        int | None, Option(min=1, help="Hidden units of the critic (default 2,048).")
    ] = None,
    negatives: Annotated[
        int | None, Option(min=0, help="Unpaired images per image; 0, the default, for the batch.")
    ] = None,
    batch: Annotated[
        int | None, Option(min=2, help="Images per step, over all processes (default 64).")
    ] = None,
    precision: Precision = None,
    probe_every: Annotated[
        int | None, Option(min=1, help="Epochs between two probes (default 2).")
    ] = None,
    device: Annotated[str, Option(help="Device: cpu or cuda.")] = "cpu",
    check: Annotated[
        bool, Option(help="Accept the published image files only, or any in their format.")
    ] = True,
    reps: Reps = None,
    scale: Scale = None,
    jobs: Annotated[
        int, Option(min=1, help="Trainings to run at once. Each takes a core and gigabytes.")
    ] = 1,
    as_json: Json = False,
) -> None:
    """Train encoders by Deep InfoMax with each objective and evaluate by probes (section 3.2).

    deminat paper infomax --dataset cifar10 --objective demi --epochs 8 --units 256

    torchrun --nproc-per-node 2 -m deminat paper infomax --objective demi --epochs 8
    """
    from ..studies.paper import distributed
    from ..studies.paper.infomax import run_infomax, training_for

    trainings = tuple(dict.fromkeys(map(training_for, objective))) if objective else None
    if jobs > 1 and distributed.is_one_of_several():
        raise DataError("processes of torchrun train one model together: leave out --jobs")
    with distributed.process_group(device) as own_device:
        sweep = _experiment("infomax").sweep(
            [],
            dataset=dataset,
            trainings=trainings,
            epochs=epochs,
            critic=critic,
            units=units,
            negatives=negatives,
            batch=batch,
            precision=precision,
            probe_every=probe_every,
            check=check,
            reps=reps,
            scale=scale,
        )
        run = partial(run_infomax, folder=out / "checkpoints", device=own_device)
        if distributed.rank() > 0:
            distributed.follow_leader(run)
            return
        (out / "checkpoints").mkdir(parents=True, exist_ok=True)
        with distributed.leader(run) as led:
            _run("infomax", replace(sweep, run=led), out, as_json, jobs)


def _experiment(name: str) -> "Experiment":
    """Return an experiment; refuse missing packages, and torchrun except for infomax."""
    from ..studies.paper.distributed import is_one_of_several
    from ..studies.paper.experiments import EXPERIMENTS

    if is_one_of_several() and name != "infomax":
        raise DataError("torchrun is for infomax; use --jobs or --cluster here")
    for module in EXPERIMENTS[name].needs:
        check_installed(module, name)
    return EXPERIMENTS[name]


def _run(
    name: str, sweep: "Sweep", out: Path, as_json: bool, jobs: int, cluster: str | None = None
) -> None:
    """Run the missing cells of a sweep and write its rows, tables and figure."""
    from ..studies.paper.experiments import run_paper

    say(f"{len(sweep.cells)} cells; rows are stored in {out / name}.sqlite")
    with progress(name, resumable=True) as share:
        rows = run_paper(
            name, _experiment(name), sweep, out, jobs=jobs, cluster=cluster, progress=share
        )
    if as_json:
        print_json(rows)
    say(f"wrote {out / name}.csv, .parquet, .md, .tex, .png and .svg")
