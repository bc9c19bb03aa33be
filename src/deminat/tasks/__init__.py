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
from collections.abc import Callable

from . import maps
from .bmi import bmi_tasks
from .edges import additive_uniform
from .gaussian import cubic, gaussian, normal
from .maps import Map
from .mixed import labelled, mixed_tasks
from .mixture import mixture
from .student import correlated_student, student
from .task import Task
from .warped import rotated_cubic, spiral

__all__ = [
    "EXAMPLES",
    "Map",
    "Task",
    "additive_uniform",
    "bmi_tasks",
    "correlated_student",
    "cubic",
    "gaussian",
    "get",
    "labelled",
    "maps",
    "mixed_tasks",
    "mixture",
    "names",
    "normal",
    "rotated_cubic",
    "spiral",
    "student",
]

# Families of tasks of any dimension and mutual information, by an example of their names.
_FAMILIES: dict[str, Callable[..., Task]] = {
    "gaussian-20d-10nats": gaussian,
    "cubic-20d-10nats": cubic,
    "spiral-12d-15nats": spiral,
    "rotated-cubic-10d-5nats": rotated_cubic,
    "student-10d-20nats-dof3": correlated_student,
    "mixture-10d-8nats-a-component": mixture,
}
EXAMPLES = tuple(_FAMILIES)
_NUMBER = r"(\d+(?:\.\d+)?(?:e[+-]\d+)?)"


def names() -> tuple[str, ...]:
    """Return the names of the forty benchmark tasks; `get` also reads those like `EXAMPLES`."""
    return tuple(task.name for task in bmi_tasks())


def get(name: str) -> Task:
    """Return the task called `name`.

    Args:
        name: One of `names()`, or one of `EXAMPLES` with numbers of your own, such as
            `cubic-50d-0.5nats`.

    Raises:
        ValueError: If there is no such task; the message names the closest ones.
    """
    for example, family in _FAMILIES.items():
        if numbers := re.fullmatch(_pattern(example), name, re.ASCII):
            d, *rest = numbers.groups()
            return family(int(d), *map(float, rest))
    for task in bmi_tasks():
        if task.name == name:
            return task
    close = difflib.get_close_matches(name, names() + EXAMPLES)
    advice = f"see deminat.tasks.names(), or write {' or '.join(EXAMPLES)}"
    if close:
        advice = f"did you mean {' or '.join(close)}?"
    raise ValueError(f"no task is called {name!r}; {advice}")


def _pattern(example: str) -> str:
    """Return a pattern of names like `example`, with a group for each number."""
    kind, numbers = re.split(r"(?<=-)\d+d", example)
    return kind + r"(\d{1,6})d" + re.sub(r"\d+", lambda _: _NUMBER, numbers)
