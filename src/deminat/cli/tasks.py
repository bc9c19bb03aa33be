"""`deminat tasks`."""

import json
from typing import TYPE_CHECKING

import typer

from .app import app
from .console import say
from .options import Json

if TYPE_CHECKING:
    pass

__all__ = ["tasks"]


@app.command()
def tasks(as_json: Json = False) -> None:
    """List the distributions with known mutual information."""
    from ..tasks import EXAMPLES, bmi_tasks

    rows = [
        {"name": t.name, "mi": t.mi, "unit": "nats", "dim_x": t.dim_x, "dim_y": t.dim_y}
        for t in bmi_tasks()
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    width = max(len(str(row["name"])) for row in rows)
    for row in rows:
        typer.echo(f"{row['name']:<{width}}  {row['mi']:.5f} nats  {row['dim_x']} x {row['dim_y']}")
    say(f"also, for any dimension and MI: {', '.join(EXAMPLES)}")
