r"""The forty tasks of the "Beyond Normal" benchmark, under their original names.

Four families have a known mutual information: normal, Student, additive uniform, and their images
under invertible maps. Each task has one difficulty: dimension, weak but dense dependence, heavy
tails, hard edges, or a map that bends the space and leaves the mutual information unchanged.

- `multinormal-dense-d-d-0.5`: every two of the $2d$ columns correlate by 1/2.
- `multinormal-sparse-d-d-2-2.0`: two pairs $(x_i, y_i)$ share a latent variable of twice the
  size of their noise, which makes a correlation of $2^2/(1 + 2^2) = 0.8$; the rest is noise.
- `spiral-...`: the plane (0, 1) of x and the plane (1, 2) of y turn by $|x|^2/d$, $|y|^2/d$.

References:
    Czyz et al. (2023), Beyond Normal: On the evaluation of mutual information estimators.
"""

from functools import cache

import numpy as np

from . import maps
from .edges import additive_uniform
from .gaussian import normal
from .maps import Map
from .student import student
from .task import Task
from .warped import spiralled

__all__ = ["bmi_tasks"]


def _dense(d: int, rho: float = 0.5) -> Task:
    covariance = (1 - rho) * np.eye(2 * d) + rho
    return normal(covariance, dim_x=d, name=f"multinormal-dense-{d}-{d}-{rho}")


def _sparse(d: int, pairs: int = 2, strength: float = 2.0) -> Task:
    covariance = np.eye(2 * d)
    x = np.arange(pairs)
    covariance[x, d + x] = covariance[d + x, x] = strength**2 / (1 + strength**2)
    return normal(covariance, dim_x=d, name=f"multinormal-sparse-{d}-{d}-{pairs}-{strength}")


def _image(task: Task, of_both: Map) -> Task:
    return task.mapped(f"{of_both.name}-{task.name}", of_both, of_both)


def _one_dimensional() -> list[Task]:
    base = normal([[1, 0.75], [0.75, 1]], dim_x=1, name="1v1-normal-0.75")
    cauchy = student(1, 1, dof=1)
    uniform = _image(base, maps.normal_cdf)
    return [
        base,
        uniform,
        additive_uniform(0.1),
        additive_uniform(0.75),
        base.mapped("1v1-bimodal-0.75", maps.bimodal_x, maps.bimodal_y),
        base.mapped(f"wiggly-{base.name}", maps.wiggly_x, maps.wiggly_y),
        _image(base, maps.half_cube),
        cauchy,
        _image(cauchy, maps.asinh),
        uniform.mapped(f"swissroll_x-{uniform.name}", x=maps.swiss_roll),
    ]


def _images() -> list[Task]:
    sparse = [_sparse(d) for d in (3, 5, 25)]
    uniform = [_image(task, maps.normal_cdf) for task in sparse]
    half_cubes = [_image(task, maps.half_cube) for task in sparse]
    spirals = [spiralled(task, f"spiral-{task.name}") for task in sparse + uniform]
    tamed = [_image(student(d, d, dof), maps.asinh) for d, dof in ((2, 1), (3, 2), (5, 2))]
    return [*uniform, *half_cubes, *spirals, *tamed]


@cache
def bmi_tasks() -> tuple[Task, ...]:
    """Return the forty tasks, in the order of the benchmark."""
    normals = [_dense(d) for d in (2, 3, 5, 25, 50)] + [_sparse(d) for d in (2, 3, 5, 25)]
    students = [student(d, d, dof) for d, dof in ((2, 1), (2, 2), (3, 2), (3, 3), (5, 2), (5, 3))]
    return (*_one_dimensional(), *normals, *students, *_images())
