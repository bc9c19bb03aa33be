r"""Images of the paper's Gaussians that no map of single columns can invert.

- `spiral`: the plane (0, 1) of x and the plane (1, 2) of y turn by $|x|^2/d$ and $|y|^2/d$, so the
  correlation depends on the norm of a row.
- `rotated_cubic`: every column of both sides is cubed, then each side is multiplied by a random
  orthogonal matrix. A column is then a sum of cubes, and its ranks do not restore the Gaussian.

Both maps are invertible, so the mutual information is that of the Gaussian.
"""

from . import maps
from .gaussian import gaussian
from .task import Task

__all__ = ["rotated_cubic", "spiral", "spiralled"]

# Rotating back has an error of 1e-15 in the cubes, which is 1e-5 in columns near zero. This must
# stay far below the noise, which is 7e-3 at 5 nats a column.
_MOST_NATS_A_CUBE = 5


def spiralled(task: Task, name: str) -> Task:
    """Return `task` with a plane of each side turned by an angle that grows with the norm."""
    x = maps.spiral(axes=(0, 1), speed=1 / task.dim_x)
    y = maps.spiral(axes=(1, 2), speed=1 / task.dim_y)
    return task.mapped(name, x, y)


def spiral(d: int, mi: float) -> Task:
    """Return the spiral of `gaussian(d, mi)`, in at least 3 columns a side."""
    if d < 3:
        raise ValueError(f"d must be at least 3 for a spiral, got {d!r}")
    base = gaussian(d, mi)
    return spiralled(base, base.name.replace("gaussian", "spiral"))


def rotated_cubic(d: int, mi: float) -> Task:
    """Return `gaussian(d, mi)` with both sides cubed column by column, then rotated."""
    base = gaussian(d, mi)
    if mi > _MOST_NATS_A_CUBE * d:
        raise ValueError(f"mi must be at most {_MOST_NATS_A_CUBE} d, got {mi!r} for d={d}")
    name = base.name.replace("gaussian", "rotated-cubic")
    cubes = base.mapped(name, maps.cube, maps.cube)
    return cubes.mapped(name, maps.rotation(d, seed=[d, 0]), maps.rotation(d, seed=[d, 1]))
