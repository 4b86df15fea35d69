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

from discreet.design.incidence import Incidence
from discreet.solve.least_squares.conjugate_kernels import conjugate_steps
from discreet.solve.least_squares.problem import Problem

Vector = NDArray[np.float64]
Operator = Callable[[Vector], Vector]
Deflate = Callable[[Vector, Vector], Vector]
r"""Makes :math:`s` with :math:`r = DXs` and :math:`X^\top D r` into :math:`P^{-1} r`."""


@dataclass(frozen=True)
class ConjugateSchedule:
    """The constants of conjugate gradients.

    Attributes:
      chunk: Steps between two looks at the keyboard and at the progress.
      shortest: The same for few cells, which need few steps.
      gain: Share of the best residual that is a gain.
      patience: Chunks without a gain after which rounding is taken to forbid one.
      stuck: Share of the last residual that is no progress, with stiff margins taken out.
      digits: By how much residuals may fall there before they are computed anew: rounding hides
        more than nine digits of stiff directions.
      longest: Steps after which they are in any case.
    """

    chunk: int = 250
    shortest: int = 10
    gain: float = 0.9
    patience: int = 10
    stuck: float = 0.5
    digits: float = 1e-9
    longest: int = 5_000


SCHEDULE = ConjugateSchedule()


@dataclass(frozen=True, eq=False)
class Solved:
    """A solution on chosen cells.

    Attributes:
      y: Values of the cells.
      z: All published cells; zero where no chosen cell counts.
      steps: Steps taken.
    """

    y: Vector
    z: Vector
    steps: int


def solve_on_cells(
    problem: Problem,
    incidence: Incidence,
    cells: NDArray[np.int64],
    dual: Vector,
    *,
    ridge: float,
    limits: Vector,
    max_steps: int,
    deflate: Deflate | None = None,
) -> Solved:
    r"""Solve the ridge problem on some cells from :math:`\nu` in `dual`, which is updated.

    The gradient of every one of the cells is brought within its limit.

    Cost: each step is one pass over the cells' incidence there and one back; with stiff margins
    taken out, two of each and a triangular solve.
    """
    at, prior = incidence.position, problem.prior
    deviation, start = prior.deviations(cells), prior.starts(cells)
    weights = problem.weights[at]
    nu = np.where(weights > 0, dual[at], 0.0)
    system = _System(
        incidence, deviation, weights, ridge, problem.z[at] - incidence.aggregate(start)
    )
    x, scaled = system.down(nu), deviation * limits
    if deflate is None:
        done = _plain(system, x, nu, scaled, max_steps)
    else:
        done = _deflated(system, x, nu, deflate, scaled, max_steps)
    dual[at] = nu
    y = start + deviation * x
    z = np.zeros(problem.design.n_published)
    z[at] = incidence.aggregate(y)
    return Solved(y, z, done)


@dataclass(frozen=True, eq=False)
class _System:
    """The equations on the chosen cells, with targets less what the starting table gives."""

    incidence: Incidence
    deviation: Vector
    weights: Vector
    ridge: float
    targets: Vector

    def up(self, x: Vector) -> Vector:
        return self.incidence.aggregate(self.deviation * x)

    def down(self, nu: Vector) -> Vector:
        return self.deviation * self.incidence.adjoint(nu)

    def residual(self, x: Vector, nu: Vector) -> tuple[Vector, Vector]:
        """The residual of a solution and the image it has; the solution's own is given."""
        s = self.weights * (self.targets - self.up(x)) - self.ridge * nu
        return self.down(s), s


def _plain(system: _System, x: Vector, nu: Vector, limits: Vector, max_steps: int) -> int:
    """Improve a solution and its image in place; returns the steps taken."""
    r, s = system.residual(x, nu)
    vectors, images, done = (x, r, r.copy()), (nu, s, s.copy()), 0
    best = _Best(SCHEDULE.patience)
    while done < max_steps:
        chunk = min(SCHEDULE.chunk, max(len(x), SCHEDULE.shortest), max_steps - done)
        taken = conjugate_steps(
            system.incidence.sums,
            system.deviation,
            system.weights,
            system.ridge,
            vectors,
            images,
            limits,
            chunk,
        )
        done += taken
        if taken < chunk or best.is_out_of_reach(r, limits, x, nu):
            break
    return done


class _Best:
    """The best of some iterates, for a residual that rounding keeps from falling further.

    Args:
      patience: Iterates without a gain before it is taken to be the last.
    """

    def __init__(self, patience: int) -> None:
        self._left, self._since, self._patience = np.inf, 0, patience
        self._kept: list[Vector] = []

    def is_out_of_reach(self, r: Vector, limits: Vector | float, *vectors: Vector) -> bool:
        """Whether nothing was gained for long; the vectors are then what they were at best."""
        left, self._since = float((np.abs(r) / limits).max(initial=0.0)), self._since + 1
        if left < SCHEDULE.gain * self._left:
            self._left, self._since, self._kept = left, 0, [v.copy() for v in vectors]
        if self._since < self._patience:
            return False
        for vector, kept in zip(vectors, self._kept, strict=True):
            vector[:] = kept
        return True


def _deflated(
    system: _System,
    x: Vector,
    nu: Vector,
    deflate: Deflate,
    limits: Vector,
    max_steps: int,
) -> int:
    """The same with a preconditioner, in runs that start from the true residual.

    In stiff directions a large residual has a small image, which rounding hides during a run.
    """
    done, before = 0, np.inf
    while True:
        r, s = system.residual(x, nu)
        left = float((np.abs(r) / limits).max(initial=0.0))
        if left <= 1.0 or left > SCHEDULE.stuck * before or done >= max_steps:
            return done
        steps = min(SCHEDULE.longest, max_steps - done)
        enough = max(1.0, SCHEDULE.digits * left) * limits
        done += _deflated_run(system, (x, r), (nu, s), deflate, enough, steps)
        before = left


def _deflated_run(
    system: _System,
    cells: tuple[Vector, Vector],
    images: tuple[Vector, Vector],
    deflate: Deflate,
    limits: Vector,
    max_steps: int,
) -> int:
    """Steps until the residual is small, or so much smaller that rounding may hide it."""
    (x, r), (nu, s) = cells, images
    p, pi, product, first = np.zeros_like(x), np.zeros_like(nu), 1.0, 0.0
    for step in range(max_steps):
        image = deflate(s, system.up(r))
        direction = system.down(image)
        size = float(np.abs(direction).max())
        first = size if step == 0 else first
        if (np.abs(r) <= limits).all() or size <= SCHEDULE.digits * first:
            return step
        before, product = product, float(r @ direction)
        beta = product / before if step else 0.0
        p = direction + beta * p
        pi = image + beta * pi
        change = system.weights * system.up(p) + system.ridge * pi
        q = system.down(change)
        curvature = float(p @ q)
        if not (product > 0 and curvature > 0):
            return step
        alpha = product / curvature
        x += alpha * p
        nu += alpha * pi
        r -= alpha * q
        s -= alpha * change
    return max_steps


def preconditioned(
    apply: Operator,
    rhs: Vector,
    x: Vector,
    precondition: Operator,
    *,
    limits: Vector | float,
    max_steps: int,
    watch: Callable[[int], None] | None = None,
) -> tuple[Vector, int]:
    """Conjugate gradients with a preconditioner; returns the solution and the steps taken."""
    r = rhs - apply(x)
    s = precondition(r)
    p, product, best = s, float(r @ s), _Best(SCHEDULE.chunk)
    for step in range(max_steps):
        if product <= 0.0 or (np.abs(r) <= limits).all() or best.is_out_of_reach(r, limits, x):
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
