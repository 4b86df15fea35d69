r"""Least squares on chosen inner cells, by conjugate gradients.

On cells :math:`F` the ridge problem is
:math:`(D X_F W X_F^\top D + \lambda I)\,x = D X_F W (z - X_F^\top s)` with :math:`D = \sqrt q` and
:math:`y = s + D x`. The iterates have the form :math:`x = D X_F \nu`, so for :math:`\lambda = 0`
the limit is the solution nearest to the starting table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.solve.continuous.incidence import Incidence
from discreet.solve.continuous.kernels import conjugate_steps
from discreet.solve.continuous.problem import Problem

Vector = NDArray[np.float64]
Operator = Callable[[Vector], Vector]

_CHUNK = 250  # steps between two looks at the keyboard


@dataclass(frozen=True, eq=False)
class Solved:
    """A solution on chosen cells.

    Attributes:
      y: Values of the cells.
      z: All published cells; zero where no chosen cell counts.
      steps: Steps taken.
      residual: Largest entry of the residual reached.
    """

    y: Vector
    z: Vector
    steps: int
    residual: float


def solve_on_cells(
    problem: Problem,
    incidence: Incidence,
    cells: NDArray[np.int64],
    dual: Vector,
    *,
    ridge: float,
    tolerance: float,
    max_steps: int,
) -> Solved:
    r"""Solve the ridge problem on some cells from :math:`\nu` in `dual`, which is updated.

    Cost: each step is one pass over the cells' incidence there and one back.
    """
    at, prior = incidence.position, problem.prior
    deviation, start = prior.deviations(cells), prior.starts(cells)
    weights = problem.weights[at]
    nu = np.where(weights > 0, dual[at], 0.0)
    x = deviation * incidence.adjoint(nu)
    away = problem.z[at] - incidence.aggregate(start + deviation * x)
    s = weights * away - ridge * nu
    r = deviation * incidence.adjoint(s)
    vectors, images, done = (x, r, r.copy()), (nu, s, s.copy()), 0
    while done < max_steps:
        chunk = min(_CHUNK, max_steps - done)
        taken = conjugate_steps(
            incidence.sums, deviation, weights, ridge, vectors, images, tolerance, chunk
        )
        done += taken
        if taken < chunk:
            break
    dual[at] = nu
    y = start + deviation * x
    z = np.zeros(problem.design.n_published)
    z[at] = incidence.aggregate(y)
    return Solved(y, z, done, float(np.abs(r).max(initial=0.0)))


def preconditioned(
    apply: Operator,
    rhs: Vector,
    x: Vector,
    precondition: Operator,
    *,
    tolerance: float,
    max_steps: int,
    watch: Callable[[int], None] | None = None,
) -> tuple[Vector, int]:
    """Conjugate gradients with a preconditioner; returns the solution and the steps taken."""
    r = rhs - apply(x)
    s = precondition(r)
    p, product = s, float(r @ s)
    for step in range(max_steps):
        if np.abs(r).max(initial=0.0) <= tolerance or product <= 0.0:
            return x, step
        q = apply(p)
        alpha = product / float(p @ q)
        x = x + alpha * p
        r = r - alpha * q
        s = precondition(r)
        before, product = product, float(r @ s)
        p = s + (product / before) * p
        if watch is not None:
            watch(step)
    return x, max_steps
