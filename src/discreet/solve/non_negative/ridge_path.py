r"""Non-negative least squares through its dual, for designs of any kind.

For a ridge :math:`\rho` the optimum is :math:`y = \max(0, s + qX\nu)`, and :math:`\nu` solves

.. math:: \rho V (\nu - \nu_0) + X^\top \max(0, s + qX\nu) = z, \qquad V = W^{-1},

by Newton's method: guess which cells are positive, solve on those, guess again from the signs. The
dual is convex, and a step beyond its minimum is cut off there, so the iteration cannot cycle. Then
the ridge is lowered and its centre :math:`\nu_0` moved to the last point, which takes out its bias
(the proximal point method on the dual, which is Bregman iteration on the fit). Every iterate keeps
the form :math:`\max(0, s + qX\nu)`, which singles out one of all tables that fit equally well.

Exact margins, :math:`V = 0`, and very heavy ones get a larger variance :math:`V'` instead. The
multipliers :math:`\mu = \rho(\nu - \nu_0)` on them are made what they should be by shifting their
targets by :math:`(V' - V)\mu` (the method of multipliers).

Small systems are solved by a dense factor, others by conjugate gradients on the positive cells.
There `Deflation` takes exact and heavy margins out of the equations, so that :math:`V'` may be tiny
and a few shifts suffice; else they weigh about what others do, and many shifts are needed.

See Hintermüller, Ito & Kunisch (2003); Osher et al. (2005); Bertsekas (1982).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dsyrk, dtrsv
from scipy.linalg.lapack import dpotrf
from scipy.sparse import csr_array

from discreet.arrays import Mask, Real, Whole
from discreet.design.base import dot
from discreet.design.incidence import Incidence
from discreet.solve.least_squares.conjugate import Deflate, solve_on_cells
from discreet.solve.least_squares.problem import LeastSquaresProblem

# Up to so many entries of a dense matrix its factor beats conjugate gradients,
SMALL = 1e6
# and up to so many (160 MB) it is still tried where conjugate gradients failed.
DENSE = 2e7

# Where the lowest ridge was not enough, the ridge falls again from this share of the first one:
# high ridges leave smaller rounding errors than a longer stay at the lowest.
_RESTART = 0.01
# Conjugate gradients need not go below this part of what a certificate allows.
_SHARE = 0.03
# Newton steps for one ridge. The dual is convex and overshoots are cut, so the limit is for safety.
_NEWTON_STEPS = 100
# Of the cells at zero whose gradient would raise them, this quantile is made positive at once.
_WOKEN = 0.1
# A step is cut where the slope at its end exceeds this share of the slope at its start.
_OVERSHOOT = 0.1
# Thirty halvings find the end of a cut step to nine digits; Newton's next step does the rest.
_BISECTIONS = 30
# The diagonal of a system that rounding makes indefinite is raised by this factor, until it is not.
_RAISED = 10.0


@dataclass(frozen=True)
class SystemSchedule:
    """How the systems of a ridge path are solved; three ways follow."""

    lower: float = 0.3  # factor between two ridges
    # Lowest ridge, relative to the first: rounding spoils the point below it, and conjugate
    # gradients become slow.
    least: float = 5e-4
    exact: float = 1.0  # weight of exact margins, times the largest of the others
    # Weight of held margins at most, times that of others; shifts do the rest.
    heaviest: float = 1.0
    is_direct: bool = False  # whether by a dense factor, for which no weight is too heavy
    # Whether held margins are taken out of the equations; else they must be light.
    deflates: bool = False
    # Part of what a certificate allows at which the path ends: factors gain a digit in a step or
    # two, which keeps the fit of a fit the same.
    safely: float = 1.0
    # Share of the positive cells that may have changed when a stage ends: the next goes on.
    few: float = 0.05
    # Residual of conjugate gradients, in units of the ridge times a typical cell.
    tight: float = 0.2
    sharper: float = 0.5  # factor by which `few` and `tight` fall from stage to stage


# For tables that are small, or where conjugate gradients fail: a factor feels no ill condition, so
# the ridge falls fast and far, and weights may be as heavy as doubles allow.
DIRECT = SystemSchedule(0.1, 1e-6, 1e5, 1e12, is_direct=True, safely=0.1, few=0.0, tight=0.0)
# For other tables. A hundred margins of weight 1e5 in a table of 14,400 cells take 488 steps; left
# inside the equations, as `LIGHT` has them, they stall after 7,373.
DEFLATED = SystemSchedule(exact=1e4, heaviest=1e6, deflates=True)
# For more held margins than can be deflated, and for the start of steps within bounds.
LIGHT = SystemSchedule(heaviest=0.2)


class RidgePath:
    """The optimum as a function of the ridge, followed downwards.

    Args:
      problem: Targets, weights, prior, and what to reach.
      systems: How systems are solved.
      max_steps: Steps after which to give up.
      penalty: A ridge that is part of the objective, or zero for the limit.
      zero: Inner cells that are known to be zero.

    Attributes:
      nu: The point.
      y: The table there.
      fitted: Its published cells.
      multipliers: Multiplier of each published cell, the force that holds it off its target.
      steps: Newton steps, or those of conjugate gradients where these are used.
    """

    def __init__(
        self,
        problem: LeastSquaresProblem,
        systems: SystemSchedule,
        max_steps: int,
        penalty: float = 0.0,
        zero: Mask | None = None,
    ) -> None:
        self.problem, self._penalty = problem, penalty
        self._max_steps, self.steps, design = max_steps, 0, problem.design
        self._used, self._movable = problem.weights > 0, problem.prior.movable(design.n_inner)
        if zero is not None:
            self._movable = self._movable & ~zero
        self._systems, self._roughness = systems, 1.0
        self._variance, light = self._working_variances()
        # The mean eigenvalue of the sums of squares: here ridge and margins weigh the same.
        self.first_ridge = float(self._inner_change(light).sum()) / max(design.n_inner, 1) or 1.0
        self.ridge, self._targets = max(self.first_ridge, penalty), problem.z
        self.nu = self.centre = np.zeros(design.n_published)
        # Conjugate gradients go on from where they ended last, whatever cells are positive now.
        self._image = np.zeros(design.n_published)
        start = problem.prior.starts(np.arange(design.n_inner))
        self.u = self._start = np.where(self._movable, start, 0.0)
        nu = light * problem.z / self.ridge
        self._move(nu, self._inner_change(nu))
        self._iterate()

    def _working_variances(self) -> tuple[Real, Real]:
        """The variances V', and weights none of which is heavy."""
        problem, held = self.problem, self.problem.held
        variance = np.divide(1.0, problem.weights, out=np.ones_like(problem.z), where=self._used)
        soft = self._used.copy()
        soft[held] = False
        typical = float(np.median(variance[soft])) if soft.any() else 1.0
        variance[held] = np.maximum(problem.slack, typical / self._systems.heaviest)
        heavy = variance[held[problem.slack > 0]].min(initial=typical)
        variance[problem.exact] = max(heavy / self._systems.exact, typical / self._systems.heaviest)
        if self._systems.deflates:
            # Rounding errors of a held margin, times its weight, are gradients of its cells: no
            # weight may lift them above what conjugate gradients are asked to reach.
            largest = float(np.abs(problem.z[held]).max(initial=0.0))
            allowed = _SHARE * float(problem.limits.gradient.min(initial=np.inf))
            rounding = float(np.finfo(float).eps) * largest / allowed
            variance[held] = np.maximum(variance[held], rounding)
        light = np.where(self._used, 1.0 / np.maximum(variance, typical), 0.0)
        return variance, np.where(soft, problem.weights, light)

    @property
    def is_spent(self) -> bool:
        """Whether no more steps may be taken."""
        return self.steps >= self._max_steps

    def follow(self, share: float) -> None:
        """Lower the ridge to a share of the first one; its centre stays where it is."""
        least = max(share * self.first_ridge, self._penalty)
        while self.ridge > least and not self.is_spent:
            self._solve_for(max(self._systems.lower * self.ridge, least))

    def stage(self, *, keeps_ridge: bool = False) -> None:
        """Move the centre, lower the ridge, and solve again; a penalty has no bias to take out."""
        if self._penalty:
            self._solve_for(max(self._systems.lower * self.ridge, self._penalty))
            return
        self._wake_cells_at_zero()
        self.centre, ridge, least = self.nu, self.ridge, self._systems.least * self.first_ridge
        if not keeps_ridge:
            before = _RESTART * self.first_ridge if ridge <= least else ridge
            ridge = max(self._systems.lower * before, least)
        self._solve_for(ridge)

    def _solve_for(self, ridge: float) -> None:
        """Shift the targets of held margins and solve for another ridge."""
        held = self.problem.held
        self._targets = self.problem.z.copy()
        self._targets[held] += (self._variance[held] - self.problem.slack) * self.multipliers[held]
        self.ridge = ridge
        self._iterate()

    def _wake_cells_at_zero(self) -> None:
        """Move the point along the multipliers until cells at zero that should rise do so."""
        slope = self.problem.design.adjoint(self.multipliers) / self.problem.limits.gradient
        # While positive cells are at rest, nothing else changes on the way to the first cell that
        # becomes positive: it is gone in one step, not one stage after the other.
        rising = self._movable & (self.u < 0) & (slope > 1.0)
        if rising.any() and (np.abs(slope[self.u > 0]) <= 1.0).all():
            change = self._inner_change(self.multipliers)
            away = -self.u[rising] / change[rising]
            t = float(np.quantile(away, _WOKEN, method="lower"))
            self._move(t * self.multipliers, t * change)

    def _iterate(self) -> None:
        """Newton steps for the present ridge, until hardly a cell changes its sign."""
        few = self._roughness * self._systems.few
        for _ in range(_NEWTON_STEPS):
            positive = self.u > 0
            self._step(positive)
            changed = int((positive != (self.u > 0)).sum())
            if changed <= few * int(positive.sum()) or self.is_spent:
                break
        self.multipliers = self.ridge * (self.nu - self.centre)
        self._roughness *= self._systems.sharper

    def _gradient(self) -> Real:
        """The gradient of the dual."""
        drawn = self.ridge * self._variance * (self.nu - self.centre)
        return np.where(self._used, drawn + self.fitted - self._targets, 0.0)

    def _inner_change(self, nu: Real) -> Real:
        """How inner cells change with the point, but for their bounds."""
        prior, step = self.problem.prior, self.problem.design.adjoint(nu)
        moved = step if prior.variance is None else prior.variance * step
        return np.where(self._movable, moved, 0.0)

    def _move(self, d: Real, du: Real) -> None:
        # The table is moved by its own change, not computed from the point: points grow as ridges
        # fall, and the rounding errors of a large one would spoil small cells.
        self.nu, self.u = self.nu + d, self.u + du
        self.y = np.maximum(self.u, 0.0)
        self.fitted = self.problem.design.aggregate(self.y)

    def _step(self, positive: Mask) -> None:
        """A Newton step, cut off at the minimum of the dual along it."""
        nu, u, g = self.nu, self.u, self._gradient()
        cells = np.flatnonzero(positive)
        d, du = self._direct(cells, g) if self._systems.is_direct else self._iterative(cells)
        self._move(d, du)
        slope = dot(self._gradient(), d)
        if slope > _OVERSHOOT * abs(dot(g, d)):
            # Along the line only the positive parts of cells are not linear: no pass is needed.
            table = self.problem.prior.per_variance(du)
            drawn = dot(d, self.ridge * self._variance * d)
            rest = slope - drawn - dot(table, self.y)
            low, high = 0.0, 1.0
            for _ in range(_BISECTIONS):
                t = (low + high) / 2
                slope = rest + t * drawn + dot(table, np.maximum(u + t * du, 0.0))
                low, high = (low, t) if slope > 0 else (t, high)
            self.nu, self.u = nu, u
            self._move(high * d, high * du)

    def _direct(self, cells: Whole, g: Real) -> tuple[Real, Real]:
        """The Newton direction and how cells answer, by a factor for margins or for cells."""
        self.steps += 1
        used = np.flatnonzero(self._used)
        drawn, g = self.ridge * self._variance[used], g[used]
        X = self._matrix[cells] * self.problem.prior.deviations(cells)[:, None]
        # The smaller of two systems, one for each positive cell or one for each published one.
        if len(cells) < len(used):
            scaled = X / drawn
            found = (-g + X.T @ solve_lifted(scaled @ X.T, np.ones(len(cells)), scaled @ g)) / drawn
        else:
            found = solve_lifted(X.T @ X, drawn, -g)
        d = np.zeros(len(self._used))
        d[used] = found
        return d, self._inner_change(d)

    @cached_property
    def _matrix(self) -> Real:
        """The design as a dense matrix, of the published cells in use."""
        X = self.problem.design.matrix()[:, np.flatnonzero(self._used)]
        dense: Real = X.toarray().astype(np.float64)
        return dense

    def _iterative(self, cells: Whole) -> tuple[Real, Real]:
        """The same by conjugate gradients, whose solution on positive cells is the better one."""
        z = self._targets + self.ridge * self._variance * self.centre
        weights = np.where(self._used, 1.0 / self._variance, 0.0)
        problem = replace(self.problem, z=z, weights=weights)
        limits, fitted, y = self._gradient_limits(cells), np.zeros_like(z), np.zeros(0)
        if len(cells):
            incidence, deflate = Incidence.of(self.problem.design, cells), None
            if self._systems.deflates and len(self.problem.held):
                lift = self.first_ridge * self._variance[self._deflation.at]
                deflate = self._deflation.on(cells, incidence.position, lift)
            solved = solve_on_cells(
                problem,
                incidence,
                cells,
                self._image,
                ridge=self.ridge,
                limits=limits[cells],
                max_steps=self._max_steps - self.steps,
                deflate=deflate,
            )
            self.steps += solved.steps
            fitted, y = solved.z, solved.y
        nu = problem.misfit(fitted) / self.ridge
        u = self._start + self._inner_change(nu)
        # The sign of a gradient within its error says nothing: such cells stay at zero.
        u[(u > 0) & (problem.prior.per_variance(u) <= limits / self.ridge)] = 0.0
        u[cells] = y
        return nu - self.nu, u - self.u

    @cached_property
    def _deflation(self) -> Deflation:
        return Deflation(self.problem, self.problem.held)

    def _gradient_limits(self, cells: Whole) -> Real:
        """The gradients that a solution may leave: what is allowed, or moves cells a little."""
        limits, typical = self.problem.limits, float(self.y[cells].mean()) if len(cells) else 0.0
        enough = _SHARE * np.minimum(limits.gradient, self.ridge * limits.inner)
        rough = self._roughness * self._systems.tight * self.ridge * typical
        return np.maximum(enough, rough)


def solve_lifted(matrix: Real, diagonal: Real, values: Real) -> Real:
    """Solve with a matrix and a diagonal; this is raised where rounding makes them indefinite."""
    try:
        factor = cho_factor(matrix + np.diag(diagonal), lower=True)
    except LinAlgError:
        return solve_lifted(matrix, _RAISED * diagonal, values)
    solution: Real = cho_solve(factor, values)
    return solution


_NONE = -1


class Deflation:
    r"""The held margins of a problem taken out of the equations, for changing positive cells.

    Weights :math:`\kappa` far above others make :math:`DXWX^\top D + \lambda I` ill-conditioned
    in the few directions :math:`E = DX_e` of the margins that bear them. The preconditioner

    .. math:: P^{-1} = I - E\,(E^\top E + \operatorname{diag} \varepsilon)^{-1} E^\top

    shrinks just those: with :math:`\varepsilon = c/\kappa` they get about the curvature `c` of the
    others, and the steps of conjugate gradients no longer depend on the weights.

    :math:`E^\top E` counts the cells that two margins share. The cells of the largest block share
    none with each other, so that block is diagonal and is eliminated first; the rest is dense.

    Attributes:
      at: Published positions of the held margins, those of the largest block first.
    """

    def __init__(self, problem: LeastSquaresProblem, at: Whole) -> None:
        members, held = Incidence.of(problem.design), np.zeros(problem.design.n_published, bool)
        held[at] = True
        # In groups of which a cell counts in at most one; none is left out as implied by others.
        groups = members.using(held, np.zeros(len(members.nested), dtype=bool))
        by_size = sorted(range(len(groups.cells)), key=lambda g: -len(groups.cells[g]))
        self.at = np.concatenate([groups.cells[g] for g in by_size]).astype(np.int64)
        self._n_large, self._prior = len(groups.cells[by_size[0]]), problem.prior
        rank = np.full(problem.design.n_published + 1, len(at), dtype=np.int32)
        rank[self.at] = np.arange(len(at))
        self._rank = rank[groups.index[by_size]]
        self._n_published = problem.design.n_published

    def on(self, cells: Whole, position: Whole, lift: Real) -> Deflate:
        r"""The preconditioner on some cells.

        Args:
          cells: The positive inner cells.
          position: Published position of each entry of the images it will be given.
          lift: The numbers :math:`\varepsilon`, in the order of `at`.

        Cost: the factor of the dense part.
        """
        # The matrix E: a row for each cell, a column for each held margin; one more for none.
        rank, n = self._rank[:, cells], len(self.at)
        values = np.repeat(self._prior.deviations(cells), len(rank))
        rows = np.arange(0, rank.size + 1, len(rank))
        padded = csr_array((values, rank.T.ravel(), rows), shape=(len(cells), n + 1))
        E = csr_array(padded[:, :n])
        solve = _SchurSolver(csr_array(E.T @ E), self._n_large, lift)
        node_of = np.full(self._n_published, _NONE)
        node_of[position] = np.arange(len(position))
        node = node_of[self.at]
        here = node != _NONE
        node = node[here]

        def deflate(s: Real, up: Real) -> Real:
            values = np.zeros(len(here))
            values[here] = up[node]
            image = s.copy()
            image[node] -= solve(values)[here]
            return image

        return deflate


class _SchurSolver:
    """Solves with a matrix whose first `n` rows are diagonal, and a lift of its diagonal."""

    def __init__(self, matrix: csr_array, n: int, lift: Real) -> None:
        self._pivot = 1.0 / (matrix.diagonal()[:n] + lift[:n])
        self._between = matrix[n:, :n]
        self._factor = rest = matrix[n:, n:].toarray(order="F")
        if len(rest):
            between = self._between.toarray(order="F") * np.sqrt(self._pivot)
            complement = dsyrk(-1.0, between, beta=1.0, c=rest, lower=1, overwrite_c=1)
            self._factor = _factor(complement, lift[n:])

    def __call__(self, values: Real) -> Real:
        n = len(self._pivot)
        first = self._pivot * values[:n]
        if len(values) == n:
            return first
        second = values[n:] - self._between @ first
        second = dtrsv(self._factor, second, lower=1, overwrite_x=1)
        second = dtrsv(self._factor, second, lower=1, trans=1, overwrite_x=1)
        return np.concatenate([first - self._pivot * (self._between.T @ second), second])


def _factor(matrix: Real, lift: Real) -> Real:
    """The Cholesky factor of a lifted matrix; lifted more where rounding makes it indefinite."""
    lifted = matrix.copy(order="F")
    np.einsum("ii->i", lifted)[:] += lift
    factor, failed = dpotrf(lifted, lower=1, overwrite_a=1, clean=0)
    return _factor(matrix, _RAISED * lift) if failed else np.asarray(factor)
