"""Tasks: distributions with known mutual information and known log ratio.

Example:
    >>> from deminat import tasks
    >>> task = tasks.get("spiral-multinormal-sparse-3-3-2-2.0")
    >>> x, y = task.sample(1000, seed=0)
    >>> task.log_ratio(x, y).shape
    (1000,)
    >>> round(task.mi, 4)
    1.0217
"""

import difflib
import re

from deminat.tasks import maps
from deminat.tasks.bmi import bmi_tasks
from deminat.tasks.gaussian import cubic, gaussian, normal
from deminat.tasks.maps import Map
from deminat.tasks.student import student
from deminat.tasks.task import Task
from deminat.tasks.uniform import additive_uniform

__all__ = [
    "Map",
    "Task",
    "additive_uniform",
    "bmi_tasks",
    "cubic",
    "gaussian",
    "get",
    "maps",
    "names",
    "normal",
    "student",
]

_PAPER = {"gaussian": gaussian, "cubic": cubic}
_PAPER_NAME = re.compile(r"(gaussian|cubic)-(\d{1,6})d-(\d+(?:\.\d+)?(?:e[+-]\d+)?)nats", re.ASCII)
_PAPER_EXAMPLES = ("gaussian-20d-10nats", "cubic-20d-10nats")


def names() -> tuple[str, ...]:
    """Return the names of the forty benchmark tasks; `get` also reads those of the paper."""
    return tuple(task.name for task in bmi_tasks())


def get(name: str) -> Task:
    """Return the task called `name`.

    Args:
        name: One of `names()`, or a task of the paper such as `gaussian-20d-10nats` or
            `cubic-50d-0.5nats`.

    Raises:
        ValueError: If there is no such task; the message names the closest ones.
    """
    if paper := _PAPER_NAME.fullmatch(name):
        kind, d, mi = paper.groups()
        return _PAPER[kind](int(d), float(mi))
    for task in bmi_tasks():
        if task.name == name:
            return task
    raise ValueError(f"no task is called {name!r}; {_advice(name)}")


def _advice(name: str) -> str:
    close = difflib.get_close_matches(name, names() + _PAPER_EXAMPLES)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"see deminat.tasks.names(), or write {' or '.join(_PAPER_EXAMPLES)}"
