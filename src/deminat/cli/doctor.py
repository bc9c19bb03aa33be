"""Is this installation sound? `deminat doctor`."""

import json

import typer

from .app import app
from .console import progress
from .options import Json

__all__ = ["doctor"]


@app.command()
def doctor(as_json: Json = False) -> None:
    """Show versions, device and threads, and test the estimator in about five seconds."""
    with progress("testing") as report_share:
        from ..studies.doctor import examine  # late: torch takes seconds

        report = examine(report_share)
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    else:
        for name, value in report.items():
            typer.echo(f"{name:<14} {value}")
    if report["self_test"] != "passed":
        raise typer.Exit(1)
