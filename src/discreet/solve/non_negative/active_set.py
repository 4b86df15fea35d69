r"""Non-negative least squares by active sets along a shrinking ridge.

For a ridge :math:`\lambda > 0` the optimum is :math:`y = \max(0, s + qX\nu)` with
:math:`\nu = W(z - X^\top y)/\lambda`, and it is found by guessing which cells are positive, solving
on those, and guessing again from the signs (a semismooth Newton method on the dual). Full steps
are taken while they settle more cells than they unsettle; otherwise the step is damped by an exact
line search on the dual, which is convex, so the iteration cannot cycle. The ridge is then lowered,
and the cells that were positive are the next guess. As :math:`\lambda \to 0` the optimum tends to
the non-negative least squares solution nearest to the starting table.

The limit is reached without small ridges, whose systems are ill-conditioned: the misfit that the
ridge causes is carried over to the targets, :math:`\tilde z \leftarrow \tilde z + (z - X^\top y)`,
and the same ridge is solved again. Every iterate keeps the form :math:`\max(0, s + qX\nu)`, so the
choice among equal fits is not disturbed (Bregman iteration).

See Hintermüller, Ito & Kunisch (2003); Osher et al. (2005); Langsrud (2019b) for the problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.design.incidence import Incidence, Restrictor
from discreet.design.products import dot
from discreet.progress import report
from discreet.solve.least_squares.conjugate import Deflate, Solved, solve_on_cells
from discreet.solve.least_squares.problem import Problem
from discreet.solve.non_negative.deflation import Deflation

Vector = NDArray[np.float64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True)
class RidgeSchedule:
    """The constants of the path.

    Attributes:
      shrink: First factor between two ridges.
      fastest: Smallest such factor; with a smaller one the last guess would be of no use.
      slowest: Largest one.
      quick: Rounds for one ridge up to which the ridge then shrinks faster.
      long: Rounds beyond which it shrinks more slowly.
      loose: First residual of solves, in units of the ridge times a typical cell.
      tight: The same where few cells are in doubt.
      tightest: The same where their number does not fall.
      fresh: Lowest ridge while weights rise, relative to the first.
      floor: Lowest ridge after that; below it systems are ill-conditioned, so misfits are carried.
      share: Part of what a certificate allows by which solves may be off.
      few: Share of positive cells in doubt below which solves are tight.
      settled: Share in doubt at which the next ridge is tried.
      worse: Factor by which more cells in doubt are too many where margins are taken out.
      patience: Full steps without progress before a damped one.
      rounds: Most rounds for one ridge.
      most_repeats: Most times a misfit is carried over at once.
      lower: Factor of later ridges.
      least: Lowest of these, relative to the first.
      bisections: Halvings of a line search: as many as a mantissa needs in practice.
    """

    shrink: float = 0.4
    fastest: float = 0.3
    slowest: float = 0.7
    quick: int = 3
    long: int = 10
    loose: float = 0.3
    tight: float = 0.02
    tightest: float = 1e-3
    fresh: float = 5e-3
    floor: float = 5e-4
    share: float = 0.1
    few: float = 0.01
    settled: float = 2e-3
    worse: float = 1.5
    patience: int = 3
    rounds: int = 200
    most_repeats: float = 1e3
    lower: float = 0.5
    least: float = 1e-5
    bisections: int = 40


SCHEDULE = RidgeSchedule()


class RidgePath:
    """The optimum as a function of the ridge, followed downwards.

    Args:
      problem: Targets, weights, prior, and what to reach.
      restrict: The design's sums over chosen cells.
      first: Inner cells that are positive in the first guess.
      max_steps: Conjugate gradient steps after which to give up.
      zero: Inner cells that are known to be zero.
    """

    def __init__(
        self,
        problem: Problem,
        restrict: Restrictor,
        first: Marks,
        max_steps: int,
        zero: Marks | None = None,
    ) -> None:
        self.problem, self.max_steps = problem, max_steps
        self._restrict = restrict
        self._movable = problem.prior.movable(problem.design.n_inner)
        if zero is not None:
            self._movable = self._movable & ~zero
        self.u = np.where(first & self._movable, 1.0, -1.0)
        self.y = np.zeros(problem.design.n_inner)
        self.fitted = np.zeros(problem.design.n_published)
        self.dual = np.zeros(problem.design.n_published)
        self._carried = np.zeros(problem.design.n_published)
        self.ridge = self.first_ridge = typical_curvature(problem)
        self.steps, self.share, self.ease = 0, SCHEDULE.share, 1.0
        self._deflation: Deflation | None = None
        self._typical = _mean(np.abs(problem.right_hand_side)) / self.ridge

    def follow(
        self,
        last_ridge: float | None,
        between: Callable[[], None] | None = None,
        *,
        exactly: bool = True,
    ) -> None:
        """Lower the ridge to the last one, or until it no longer matters.

        Args:
          last_ridge: Where to end; `None` for the limit zero.
          between: Called after every ridge; may `aim` at other targets.
          exactly: Whether the last ridge is solved until no cell is in doubt.
        """
        shrink, goal = SCHEDULE.shrink, last_ridge or SCHEDULE.floor * self.first_ridge
        self.ridge = max(self.ridge, goal)
        while True:
            is_last = self.ridge <= goal
            rounds = self.settle(exactly=exactly and is_last and last_ridge is not None)
            if is_last or self.steps >= self.max_steps:
                return
            shrink = _next_factor(shrink, rounds)
            lower = max(self.ridge * shrink, goal)
            if last_ridge is None:
                self.carry(lower)
            if between is not None:
                between()
            self.ridge = lower
            self._report(goal)

    def aim(self, problem: Problem) -> None:
        """Take other targets and weights; what was carried over keeps its force."""
        old, new = self.problem.weights, problem.weights
        self._carried *= np.divide(old, new, out=np.ones_like(old), where=new > 0)
        self.problem = problem

    @property
    def is_deflated(self) -> bool:
        """Whether heavy margins are taken out of the equations."""
        return self._deflation is not None

    @property
    def heaviest(self) -> float:
        """The largest weight whose rounding errors the ridge keeps below the tolerance."""
        problem = self.problem
        largest = float(np.abs(problem.z[problem.held]).max(initial=0.0)) or 1.0
        allowed = SCHEDULE.share * float(problem.goal.gradient.min(initial=np.inf))
        return allowed / (np.finfo(float).eps * largest)

    def deflate(self, deflation: Deflation) -> None:
        """Take heavy margins out of the equations from now on."""
        self._deflation = deflation

    def begin_afresh(self, share: float = SCHEDULE.fresh) -> None:
        """Forget what was carried, because forces change, and take a ridge easier to solve.

        Args:
          share: How low the ridge may be, relative to the first one.
        """
        self._carried[:] = 0.0
        self.ridge = max(SCHEDULE.fastest * self.ridge, share * self.first_ridge)

    def correct(self) -> None:
        """Carry the misfit over; with heavy margins taken out only from a low ridge on."""
        if self.is_deflated and self.ridge > SCHEDULE.floor * self.first_ridge:
            self.begin_afresh(SCHEDULE.floor)
        else:
            lower = max(SCHEDULE.lower * self.ridge, SCHEDULE.least * self.first_ridge)
            self.carry(lower, self._repeats())
            self.ridge = lower

    def carry(self, ridge: float, times: float = 1.0) -> None:
        """Carry the misfit over to the targets of the next ridge, so that it undoes the present."""
        misfit = self._carried + times * (self.problem.z - self.fitted)
        self._carried = ridge / self.ridge * misfit

    def _repeats(self) -> float:
        """How often the misfit would be carried over before cells at zero that it pushes answer.

        Where it pushes no others, nothing else changes meanwhile, so it is done at once (kicking).
        """
        problem = self.problem
        push = problem.design.adjoint(problem.misfit(self.fitted))
        pushed = self._movable & (push > problem.goal.gradient)
        if (np.abs(push) > problem.goal.gradient)[self.y > 0].any() or not pushed.any():
            return 1.0
        away = -problem.prior.per_variance(self.u)[pushed] * self.ridge / push[pushed]
        return float(np.clip(np.median(away), 1.0, SCHEDULE.most_repeats))

    def proof(self) -> Vector:
        r"""A vector :math:`\nu` with :math:`y = \max(0, s + qX\nu)`, as nearly as can be had.

        The vector behind the last solve is exact on positive cells, the scaled misfit is right
        about the signs of the others; between the two lies the best.
        """
        problem, y = self._shifted, np.maximum(self.y, 0.0)
        force = problem.misfit(self.fitted) / self.ridge
        near, far = (problem.prior.moved(problem.design.adjoint(v)) for v in (self.dual, force))
        positive = self._movable & (y > 0)
        others = self._movable & ~positive
        low, high = 0.0, 1.0
        for _ in range(SCHEDULE.bisections):
            t = (low + high) / 2
            wrong_sign = (near + t * (far - near))[others].max(initial=0.0)
            off = t * np.abs(far - near)[positive].max(initial=0.0)
            low, high = (t, high) if wrong_sign > off else (low, t)
        return self.dual + high * (force - self.dual)

    def settle(self, *, exactly: bool) -> int:
        """Solve for the present ridge, exactly or until few cells are in doubt; returns rounds."""
        in_doubt: list[int] = []
        accuracy, is_fine = SCHEDULE.tight if exactly else SCHEDULE.loose, False
        for rounds in range(1, SCHEDULE.rounds + 1):
            positive = self.u > 0
            errors = self._errors(0.0 if is_fine else accuracy)
            y, u, fitted = self._solved_on(positive, errors)
            in_doubt.append(self._changes(positive, u, errors, is_fine=is_fine))
            n_positive = int(positive.sum())
            few = in_doubt[-1] <= SCHEDULE.few * n_positive
            if (
                in_doubt[-1] <= (0 if exactly else SCHEDULE.settled * n_positive)
                and is_fine == exactly
            ):
                self.u, self.y, self.fitted = u, y, fitted
                return rounds
            full = _progress(in_doubt) and not (self.is_deflated and _worse(in_doubt))
            t = 1.0 if full else self._damping(u, y)
            if is_fine and full:  # cells at zero that are hardly pushed stay there
                u[~positive & (u <= errors / self.ridge)] = 0.0
            self.u, self.y = _between(self.u, u, t), _between(self.y, y, t)
            self.fitted = fitted if t == 1.0 else self.problem.design.aggregate(self.y)
            if self.steps >= self.max_steps:
                return rounds
            is_fine = is_fine or (exactly and few)
            accuracy = _next_accuracy(accuracy, SCHEDULE.tight if few else accuracy, in_doubt)
        return SCHEDULE.rounds

    def _errors(self, accuracy: float) -> Vector:
        """Gradients that solves may leave: what moves typical cells by a share, or is allowed."""
        goal = self.problem.goal
        enough = np.minimum(self.share * goal.gradient, 0.1 * self.ridge * goal.inner)
        tight = np.maximum(enough, SCHEDULE.tight * self.ridge * self._typical)
        enough = np.minimum(self.ease * enough, tight)
        return np.maximum(accuracy * self.ridge * self._typical, enough)

    def _solved_on(self, positive: Marks, errors: Vector) -> tuple[Vector, Vector, Vector]:
        """The optimum when just these cells may differ from zero, and what it says of all cells."""
        problem, cells = self._shifted, np.flatnonzero(positive)
        y = np.zeros_like(self.y)
        solved = self._solve(problem, cells, errors[cells])
        y[cells] = solved.y
        step = problem.design.adjoint(problem.misfit(solved.z)) / self.ridge
        u = problem.prior.moved(step)
        u[cells] = solved.y
        u[~self._movable] = -1.0
        return y, u, solved.z

    @property
    def _shifted(self) -> Problem:
        return self.problem.aiming(self.problem.z + self._carried)

    def _solve(self, problem: Problem, cells: NDArray[np.int64], limits: Vector) -> Solved:
        if len(cells) == 0:
            return Solved(np.zeros(0), np.zeros(problem.design.n_published), 0)
        incidence = self._restrict(cells)
        solved = solve_on_cells(
            problem,
            incidence,
            cells,
            self.dual,
            ridge=self.ridge,
            limits=limits,
            max_steps=self.max_steps - self.steps,
            deflate=self._deflated_on(cells, incidence),
        )
        self.steps += solved.steps
        self._typical = float(np.abs(solved.y).mean())
        return solved

    def _deflated_on(self, cells: NDArray[np.int64], incidence: Incidence) -> Deflate | None:
        if self._deflation is None:
            return None
        lift = self.first_ridge / self.problem.weights[self._deflation.at]
        return self._deflation.on(cells, incidence.position, lift)

    def _changes(self, positive: Marks, u: Vector, errors: Vector, *, is_fine: bool) -> int:
        """How many cells the solution would move across zero by more than its own error.

        At last also how many cells would matter if they were not negative.
        """
        clear = errors / self.ridge
        below = errors / self.problem.goal.curvature if is_fine else clear
        return int((positive & (u < -below)).sum()) + int((~positive & (u > clear)).sum())

    def _damping(self, u: Vector, y: Vector) -> float:
        """The exact minimum of the dual between the present state (0) and the solution (1)."""
        du, dy = u - self.u, y - self.y
        weight = self.problem.prior.per_variance(du)
        low, high = 0.0, 1.0
        for _ in range(SCHEDULE.bisections):
            t = (low + high) / 2
            slope = dot(weight, np.maximum(self.u + t * du, 0.0) - self.y - t * dy)
            low, high = (low, t) if slope > 0 else (t, high)
        return max(low, 1e-3)

    def _report(self, goal: float) -> None:
        done = math.log(self.first_ridge / self.ridge)
        report("fit", done / max(math.log(self.first_ridge / goal), 1e-9))


def typical_curvature(problem: Problem) -> float:
    r"""Mean diagonal entry of :math:`DXWX^\top D`."""
    diagonal = problem.design.adjoint(problem.weights)
    variance = problem.prior.variance
    if variance is not None:
        diagonal = diagonal * variance
    return _mean(diagonal) or 1.0


def _mean(values: Vector) -> float:
    return float(values.sum()) / max(len(values), 1)


def _between(a: Vector, b: Vector, t: float) -> Vector:
    return b if t == 1.0 else a + t * (b - a)


def _progress(in_doubt: list[int]) -> bool:
    """Whether fewer cells were in doubt lately than ever before."""
    recent, earlier = in_doubt[-SCHEDULE.patience :], in_doubt[: -SCHEDULE.patience]
    return not earlier or min(recent) < min(earlier)


def _worse(in_doubt: list[int]) -> bool:
    return len(in_doubt) > 1 and in_doubt[-1] > SCHEDULE.worse * in_doubt[-2]


def _next_accuracy(accuracy: float, goal: float, in_doubt: list[int]) -> float:
    """Tighter solves when few cells are left in doubt, or when their number does not fall."""
    accuracy = min(accuracy, goal)
    if len(in_doubt) > 1 and in_doubt[-1] > 0.6 * in_doubt[-2]:
        accuracy = min(accuracy, max(0.2 * accuracy, SCHEDULE.tightest))
    return accuracy


def _next_factor(shrink: float, rounds: int) -> float:
    if rounds <= SCHEDULE.quick:
        shrink = shrink**1.5
    elif rounds > SCHEDULE.long:
        shrink = shrink**0.7
    return min(max(shrink, SCHEDULE.fastest), SCHEDULE.slowest)
