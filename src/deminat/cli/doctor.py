"""`deminat doctor`: does this installation work?"""

import typer

from .app import app
from .console import print_json, progress
from .options import Json

__all__ = ["doctor"]


@app.command()
def doctor(as_json: Json = False) -> None:
    """Show versions, device and threads, and test the estimator in about five seconds."""
    with progress("testing") as report_share:
        from ..studies.doctor import examine  # late: imports torch

        report = examine(report_share)
    if as_json:
        print_json(report)
    else:
        for name, value in report.items():
            typer.echo(f"{name:<14} {value}")
    if report["self_test"] != "passed":
        raise typer.Exit(1)
