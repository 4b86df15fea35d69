r"""Non-negative least squares through the multipliers of its bounds.

Where every inner cell is published, :math:`H = XWX^\top` can be inverted, and the fit is
:math:`y = y_0 + H^{-1}(\lambda + C\mu)` with the fit :math:`y_0` without bounds, multipliers
:math:`\lambda \ge 0` of cells at zero, and multipliers :math:`\mu` of held margins
:math:`C^\top y = z_e - \sigma\mu`. For given cells `N` at zero these solve a system whose
matrix :math:`(H^{-1})_{NN}` is far better conditioned than `H` on the other cells: conjugate
gradients need some twenty steps. Cells with a negative multiplier are then set free, cells with a
negative value become zero, and so on until nothing changes (the primal-dual active set method).
Every iterate is stationary on the free cells, so a rough solution misleads no cell by much.

Structural zeros are cells that stay in `N` whatever their multiplier.

See Hintermüller, Ito & Kunisch (2003).
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Mask, Real, Whole
from discreet.design.base import dot
from discreet.design.product import ProductDesign
from discreet.progress import report
from discreet.solve.least_squares.conjugate import Operator
from discreet.solve.least_squares.problem import Problem
from discreet.solve.non_negative.fibres import Fibres
from discreet.solve.non_negative.schedule import MULTIPLIERS as SCHEDULE


class MultiplierFit:
    """The state of the method.

    Args:
      design: A complete design.
      problem: Its targets and weights.
      inverse: The inverse of its sums of squares.
      outside: Cells that are zero in any case.
      held: Published positions of held margins.
      slack: The numbers sigma.

    Attributes:
      y: The fit, with what is left of the cells at zero.
      steps: Conjugate gradient steps taken.
    """

    def __init__(
        self,
        design: ProductDesign,
        problem: Problem,
        inverse: Operator,
        outside: Mask,
        held: Whole,
        slack: Real,
    ) -> None:
        self._problem, self._inverse, self._outside = problem, inverse, outside
        self._slack, self.steps = slack, 0
        self._held = MarginSums(design, held)
        self._targets = problem.z[held]
        self._fibres = Fibres(design, problem.weights)
        self._scale = self._held.responses(inverse)
        self._free_fit = self._unbounded()
        self.bounds, self.multipliers = np.zeros(design.n_inner), np.zeros(len(held))
        self.y = self._free_fit
        self._zero = outside | (self.y < 0)

    @property
    def x(self) -> Real:
        """The fit without its cells at zero."""
        return np.where(self._zero, 0.0, np.maximum(self.y, 0.0))

    def run(self, max_steps: int) -> bool:
        """Guess the cells at zero until the certificate would hold; whether it would."""
        for _ in range(SCHEDULE.rounds):
            self._solve()
            zero = self._outside | np.where(self._zero, self.bounds > 0, self.y < 0)
            changed = int((zero != self._zero).sum())
            if changed <= SCHEDULE.few * len(zero) and self._is_reached():
                return True
            if self.steps >= max_steps:
                return False
            report("fit", 1.0 / (1.0 + np.log2(1.0 + changed)))
            self._zero = zero
        return False

    def _unbounded(self) -> Real:
        """The fit without bounds or held margins; what rounding left of it is fitted again."""
        problem = self._problem
        y = self._inverse(problem.right_hand_side)
        y += self._inverse(problem.design.adjoint(problem.misfit(problem.design.aggregate(y))))
        return y

    def _solve(self) -> None:
        """Conjugate gradients for the change of the multipliers, given the cells at zero.

        The steps are taken in single precision; every guess goes on from what is truly left.
        """
        self.bounds[~self._zero] = 0.0
        self._update()
        left, missed = np.where(self._zero, -self.y, 0.0), self._missed(self._held.up(self.y))
        unit = float(np.sqrt(dot(left, left) + dot(missed / self._scale, missed)))
        if unit > 0:
            bounds, held = self._change((left / unit).astype(np.float32), missed / unit)
            self.bounds += unit * bounds.astype(np.float64)
            self.multipliers = self.multipliers + unit * held
            self._update()

    def _change(self, r: Real, e: Real) -> tuple[Real, Real]:
        """The change of the multipliers that takes residuals of size one to a share of that."""
        precondition = self._fibres.on(self._zero)
        bounds, p, held, f = (np.zeros_like(values) for values in (r, r, e, e))
        product = 1.0
        for step in range(SCHEDULE.steps):
            if dot(r, r) + dot(e / self._scale, e) <= SCHEDULE.gain**2:
                break
            s, t = precondition(r), e / self._scale
            before, product = product, dot(r, s) + dot(e, t)
            beta = product / before if step else 0.0
            p, f = s + np.float32(beta) * p, t + beta * f
            q = self._inverse(self._with(p, f))
            turned = self._held.up(q) + self._slack * f
            curvature = dot(p, q) + dot(f, turned)
            if not curvature > SCHEDULE.flat * (dot(p, p) + dot(f, self._scale * f)):
                break
            size = product / curvature
            bounds += np.float32(size) * p
            held += size * f
            r = np.where(self._zero, r - np.float32(size) * q, np.float32(0.0))
            e = e - size * turned
            self.steps += 1
        return bounds, held

    def _with(self, bounds: Real, held: Real) -> Real:
        """The multipliers of bounds and held margins on the inner cells."""
        if len(held) == 0:
            return bounds
        return bounds + self._held.down(held).astype(bounds.dtype)

    def _update(self) -> None:
        self.y = self._free_fit + self._inverse(self._with(self.bounds, self.multipliers))

    def _missed(self, fitted: Real) -> Real:
        """By how much held margins are missed."""
        return self._targets - fitted - self._slack * self.multipliers

    def _is_reached(self) -> bool:
        """Whether gradients and held margins are within their limits."""
        problem, x = self._problem, self.x
        goal, fitted = problem.goal, problem.design.aggregate(x)
        gradient = -self._with(problem.design.adjoint(problem.misfit(fitted)), self.multipliers)
        moving = np.where(self._outside, 0.0, np.minimum(gradient, goal.curvature * x))
        missed = self._missed(fitted[self._held.at]) / goal.margin[self._held.at]
        worst = (np.abs(moving) / goal.gradient).max(initial=0.0)
        off = np.abs(missed).max(initial=0.0)
        return bool(max(worst, off) <= SCHEDULE.safely)


class MarginSums:
    """Sums of the margins that are held, without those of all others.

    Args:
      design: A complete design.
      at: Published positions of the margins.
    """

    def __init__(self, design: ProductDesign, at: Whole) -> None:
        self.at, n = at, design.n_inner
        self._index: list[Whole] = []
        rank = np.full(design.n_published, len(at), dtype=np.int64)
        rank[at] = np.arange(len(at))
        codes = design.leaf_positions(np.arange(n)) if len(at) else []
        for k in np.unique(design.block_of_cell()[at]):
            flat, inside = (np.broadcast_to(v, n) for v in design.placed(int(k), codes))
            self._index.append(np.where(inside, rank[design.offsets[k] + flat], len(at)))

    def up(self, y: Real) -> Real:
        """The margins of a table."""
        total = np.zeros(len(self.at))
        for index in self._index:
            total += np.bincount(index, weights=y, minlength=len(self.at) + 1)[:-1]
        return total

    def down(self, multipliers: Real) -> Real:
        """For each inner cell the sum over the margins it counts in."""
        padded = np.append(multipliers, 0.0)
        found: Real = np.sum([padded[index] for index in self._index], axis=0)
        return found

    def responses(self, inverse: Operator) -> Real:
        """How a margin answers to its own multiplier, nearly: that of one cell of each block."""
        answers = np.ones(len(self.at))
        for index in self._index:
            one = np.zeros(len(self.at))
            one[first := int(index.min())] = 1.0
            response = self.up(inverse(self.down(one)))[first]
            answers[np.unique(index[index < len(self.at)])] = response
        return answers
