"""`deminat tasks`: the built-in distributions whose mutual information is known."""

import typer

from .app import app
from .console import print_json, say
from .options import Json

__all__ = ["tasks"]


@app.command()
def tasks(as_json: Json = False) -> None:
    """List the distributions with known mutual information, in nats."""
    from ..tasks import EXAMPLES, bmi_tasks

    known = bmi_tasks()
    if as_json:
        print_json(
            [
                {"name": t.name, "mi": t.mi, "unit": "nats", "dim_x": t.dim_x, "dim_y": t.dim_y}
                for t in known
            ]
        )
        return
    width = max(len(t.name) for t in known)
    for t in known:
        typer.echo(f"{t.name:<{width}}  {t.mi:.5f} nats  {t.dim_x} x {t.dim_y}")
    say(f"note: for any dimension and information there are also {', '.join(EXAMPLES)}")
