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
    from ..studies.paper.distributed import Run
    from ..studies.paper.experiments import Study

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
# The defaults of the options below are those of the studies, whose modules take seconds to import.
_option = partial(Option, show_default=False)
_count = partial(_option, min=1)
Reps = Annotated[int, _count(help="Repetitions of each cell (notebook, gaussian: 10, else 1).")]
Scale = Annotated[
    float, _option(help="Share of the pairs, steps or images to use, up to 1 (default 1).")
]
Precision = Annotated[
    str, _option(help="Precision of training: float32 (default), or bfloat16 where that is faster.")
]
Epochs = Annotated[int, _count(help="Epochs of training (default 100).")]


@paper.command()
def notebook(
    out: Out = _OUT,
    only: Only = None,
    reps: Reps = 10,
    scale: Scale = 1.0,
    jobs: Jobs = None,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:
    """Train as the authors' notebook does, beside its losses and the released checkpoints.

    deminat paper notebook --only variant=notebook --reps 2
    """
    from ..studies.paper.notebook import NotebookStudy

    study = NotebookStudy(reps=reps, scale=scale)
    _run("notebook", study, out, jobs or -1, as_json, only, cluster)


@paper.command()
def gaussian(
    out: Out = _OUT,
    only: Only = None,
    reps: Reps = 10,
    scale: Scale = 1.0,
    precision: Precision = "float32",
    jobs: Jobs = None,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:
    """Measure the error of every method on Gaussians, by true information (section 3.1).

    deminat paper gaussian --only d=20 --only n=32000 --reps 2
    """
    from ..studies.paper.gaussian import GaussianStudy

    study = GaussianStudy(precision=precision, reps=reps, scale=scale)
    _run("gaussian", study, out, jobs or -1, as_json, only, cluster)


@paper.command()
def longrun(
    out: Out = _OUT,
    only: Only = None,
    reps: Reps = 1,
    scale: Scale = 1.0,
    jobs: Jobs = None,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:
    """Follow the estimates over 100,000 training steps on fresh pairs (appendix B).

    deminat paper longrun --scale 0.2
    """
    from ..studies.paper.longrun import LongRunStudy

    study = LongRunStudy(reps=reps, scale=scale)
    _run("longrun", study, out, jobs or -1, as_json, only, cluster)


@paper.command()
def consistency(
    out: Out = _OUT,
    only: Only = None,
    reps: Reps = 1,
    scale: Scale = 1.0,
    epochs: Epochs = 100,
    contrast: Annotated[
        int, _count(help="Unpaired images per pair for InfoNCE (default 63).")
    ] = 63,
    precision: Precision = "float32",
    jobs: Jobs = None,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:
    """Test self-consistency on MNIST images (appendix A).

    deminat paper consistency --epochs 5 --contrast 3
    """
    from ..studies.paper.consistency import ConsistencyStudy

    study = ConsistencyStudy(
        epochs=epochs, contrast=contrast, precision=precision, reps=reps, scale=scale
    )
    _run("consistency", study, out, jobs or -1, as_json, only, cluster)


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
    epochs: Epochs = 100,
    critic: Annotated[
        str,
        _option(
            help="Critic: dot (default, the paper's), concat, or the faster scaled, normalised."
        ),
    ] = "dot",
    units: Annotated[int, _count(help="Hidden units of the critic (default 2,048).")] = 2048,
    negatives: Annotated[
        int, _option(min=0, help="Unpaired images per image; 0, the default, for the batch.")
    ] = 0,
    batch: Annotated[
        int, _option(min=2, help="Images per step, over all processes (default 64).")
    ] = 64,
    precision: Precision = "float32",
    probe_every: Annotated[int, _count(help="Epochs between two probes (default 2).")] = 2,
    device: Annotated[str, Option(help="Device: cpu or cuda.")] = "cpu",
    check: Annotated[
        bool, Option(help="Accept the published image files only, or any in their format.")
    ] = True,
    reps: Reps = 1,
    scale: Scale = 1.0,
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
    from ..studies.paper.infomax import InfoMaxStudy, run_infomax, training_for

    if jobs > 1 and distributed.is_one_of_several():
        raise DataError("processes of torchrun train one model together: leave out --jobs")
    study = InfoMaxStudy(
        dataset=dataset,
        trainings=tuple(dict.fromkeys(map(training_for, objective or InfoMaxStudy.trainings))),
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
    with distributed.process_group(device) as own_device:
        run = partial(run_infomax, folder=out / "checkpoints", device=own_device)
        if distributed.rank() > 0:
            distributed.follow_leader(run)
            return
        (out / "checkpoints").mkdir(parents=True, exist_ok=True)
        with distributed.leader(run) as led:
            _run("infomax", study, out, jobs, as_json, run=led)


def _run(
    name: str,
    study: "Study",
    out: Path,
    jobs: int,
    as_json: bool,
    only: list[str] | None = None,
    cluster: str | None = None,
    run: "Run | None" = None,
) -> None:
    """Run the missing cells of a study and write its rows, tables and figure.

    Under torchrun an experiment needs a `run` of its own, which all processes join.
    """
    from ..studies.paper.distributed import is_one_of_several
    from ..studies.paper.experiments import EXPERIMENTS, run_paper

    if run is None and is_one_of_several():
        raise DataError("torchrun is for infomax; use --jobs or --cluster here")
    experiment = EXPERIMENTS[name]
    for module in experiment.needs:
        check_installed(module, name)
    experiment = replace(experiment, study=study, run=run or experiment.run)
    sweep = experiment.sweep(only or [])
    say(f"{len(sweep.cells)} cells; rows are stored in {out / name}.sqlite")
    with progress(name, resumable=True) as share:
        rows = run_paper(name, experiment, sweep, out, jobs=jobs, cluster=cluster, progress=share)
    if as_json:
        print_json(rows)
    say(f"wrote {out / name}.csv, .parquet, .md, .tex, .png and .svg")
