r"""The least squares problem all fitters of this family share.

.. math:: \min_y \tfrac12 \sum_k w_k (x_k^\top y - z_k)^2
          + \tfrac{\lambda}{2} \sum_i \frac{(y_i - s_i)^2}{q_i}

The second sum chooses among tables that fit equally well, as :math:`\lambda \to 0`: by default the
one of smallest norm (:math:`s = 0`, :math:`q = 1`); with a starting table the one nearest to it,
which is linear calibration when :math:`q = s`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Mask, Real, Whole
from discreet.design.base import Design
from discreet.design.formula import TOTAL, parse, resolve
from discreet.design.product import ProductDesign
from discreet.design.support import Lift
from discreet.errors import ParameterError
from discreet.solve.inputs import checked_start, checked_values, checked_weights
from discreet.solve.least_squares.goal import Accuracy, Goal
from discreet.solve.least_squares.schedule import LEAST_SQUARES

Exact = str | int | Sequence[str | int | Sequence[str]]

_NOTHING = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Prior:
    """What the inner cells are drawn to where the published cells leave a choice.

    Attributes:
      start: The table s; zeros when absent.
      variance: How far each cell may move, q; ones when absent.
      given: Values of the cells that may not move at all, zero elsewhere; absent when all are zero.
    """

    start: Real | None = None
    variance: Real | None = None
    given: Real | None = None

    @classmethod
    def of(cls, design: Design, start: ArrayLike | None, variance: ArrayLike | None) -> Prior:
        """Checked; the variance of a starting table is the table itself unless it is given."""
        s = None if start is None else checked_start(design, start)
        q = s if variance is None else checked_start(design, variance)
        if s is None or q is None or not (given := np.where(q > 0, 0.0, s)).any():
            return cls(s, q)
        return cls(s - given, q, given)

    @property
    def is_plain(self) -> bool:
        """Whether this is the smallest norm."""
        return self.start is None and self.variance is None

    def starts(self, cells: Whole) -> Real:
        """The starting values of some cells."""
        return np.zeros(len(cells)) if self.start is None else self.start[cells]

    def deviations(self, cells: Whole) -> Real:
        """The square roots of some cells' variances."""
        return np.ones(len(cells)) if self.variance is None else np.sqrt(self.variance[cells])

    def moved(self, step: Real) -> Real:
        """The table after a step, in units of the variance, from the starting table."""
        scaled = step if self.variance is None else self.variance * step
        return scaled if self.start is None else self.start + scaled

    def steps(self, y: Real) -> Real:
        """The inverse of `moved`; zero where nothing can move."""
        return self.per_variance(y if self.start is None else y - self.start)

    def per_variance(self, values: Real) -> Real:
        """Values divided by the variance; zero where nothing can move."""
        if self.variance is None:
            return values
        return np.divide(values, self.variance, out=np.zeros_like(values), where=self.variance > 0)

    def movable(self, n: int) -> Mask:
        """Which of the inner cells may move."""
        return np.ones(n, dtype=bool) if self.variance is None else self.variance > 0


@dataclass(frozen=True, eq=False)
class Targets:
    """Checked published values and weights; nothing here has the size of the table.

    Attributes:
      z: Values; zero where the weight is.
      weights: Precisions.
      held: Published positions of exact margins and of those whose weight exceeds others by far.
      slack: Deviation for each unit of their multipliers: one over the weight, zero if exact.
    """

    z: Real
    weights: Real
    held: Whole
    slack: Real

    @staticmethod
    def checked(
        design: Design,
        z: ArrayLike,
        weights: ArrayLike | None,
        exact: Whole | None,
    ) -> Targets:
        """Checked; without `exact`, not even an empty one, no margin is held."""
        w = checked_weights(design, weights).copy()
        own = w if exact is None else _with_exact(w, exact)
        held = _NOTHING if exact is None else np.flatnonzero(own >= _first_stiff(own))
        return Targets(checked_values(design, z, w > 0), w, held, 1.0 / own[held])

    @property
    def exact(self) -> Whole:
        """The margins that must be met."""
        return np.asarray(self.held[self.slack == 0])


@dataclass(frozen=True, eq=False)
class Problem(Targets):
    r"""Targets with a design and a prior; what cells that may not move contribute is taken out.

    Attributes:
      design: The design.
      prior: Where the inner cells are drawn to.
      goal: What is asked for, on the scale of each cell.
    """

    design: Design
    prior: Prior
    goal: Goal

    @classmethod
    def of(
        cls,
        design: Design,
        z: ArrayLike,
        weights: ArrayLike | None,
        prior: Prior,
        accuracy: Accuracy,
        exact: Whole | None = None,
    ) -> Problem:
        """Checked; targets of cells with weight zero are not looked at, unless they are exact.

        Without `exact`, not even an empty one, no margin is held.
        """
        given = Targets.checked(design, z, weights, exact)
        values, w = given.z, given.weights
        if prior.given is not None:
            values = np.where(w > 0, values - design.aggregate(prior.given), 0.0)
        goal = Goal.of(design, values, w, given.held, accuracy)
        return cls(values, w, given.held, given.slack, design, prior, goal)

    def among(self, chosen: Whole, weights: Real | float, tolerance: float) -> Problem:
        """The same problem with some of the published cells alone, none of them held."""
        w = np.zeros(len(self.z))
        w[chosen] = weights
        accuracy = replace(self.goal.accuracy, tolerance=tolerance)
        goal = Goal.of(self.design, self.z, w, _NOTHING, accuracy)
        return replace(self, weights=w, held=_NOTHING, slack=np.zeros(0), goal=goal)

    def lifted(self, lift: Lift[ProductDesign]) -> Problem:
        """The same problem on the full crossing; cells out of reach are zero in any case."""
        means = block_means(self.design, self.weights)
        weights = np.repeat(means, np.diff(lift.design.offsets))
        weights[lift.published] = self.weights
        z, held = lift.publish(self.z), lift.published[self.held]
        goal = Goal.of(lift.design, z, weights, held, self.goal.accuracy)
        return replace(self, design=lift.design, z=z, weights=weights, goal=goal)

    def aiming(self, z: Real) -> Problem:
        """The same problem with other targets, judged on the same scales."""
        return replace(self, z=z)

    @property
    def right_hand_side(self) -> Real:
        r"""The right-hand side of the normal equations, :math:`XWz`."""
        return self.design.adjoint(self.weights * self.z)

    def misfit(self, fitted: Real) -> Real:
        r"""Weighted residuals :math:`W(z - \hat z)` of fitted published cells."""
        return self.weights * (self.z - fitted)

    def complete(self, y: Real) -> Real:
        """The table with the cells that may not move put back."""
        return y if self.prior.given is None else y + self.prior.given


def _with_exact(weights: Real, exact: Whole) -> Real:
    """Infinite weights for exact margins; among the others these get one where they had none."""
    weights[exact] = np.where(weights[exact] > 0, weights[exact], 1.0)
    own = weights.copy()
    own[exact] = np.inf
    return own


def _first_stiff(weights: Real) -> float:
    """The smallest weight above the widest gap between weights."""
    different = np.unique(weights[(weights > 0) & np.isfinite(weights)])
    ratios = different[1:] / different[:-1]
    if len(ratios) and ratios.max() >= LEAST_SQUARES.gap:
        return float(different[ratios.argmax() + 1])
    return np.inf


def block_means(design: Design, weights: Real) -> Real:
    """Mean weight of each block; one for a block without cells."""
    design = design.structured("blocks")
    n, block = len(design.blocks), design.block_of_cell()
    size = np.bincount(block, minlength=n)
    sums = np.bincount(block, weights=weights, minlength=n)
    return np.divide(sums, size, out=np.ones(n), where=size > 0)


def positions_of(design: Design, margins: Exact) -> Whole:
    """Published positions of margins named as in a design, or given by number."""
    if isinstance(margins, (str, int)):
        return _named(design, str(margins))
    numbers = [m for m in margins if isinstance(m, (int, np.integer))]
    names = [m for m in margins if not isinstance(m, (int, np.integer))]
    if any(not 0 <= k < design.n_published for k in numbers):
        raise ParameterError(
            f"published cells are numbered 0 to {design.n_published - 1}, got {numbers}."
        )
    found = _named(design, names) if names else _NOTHING
    return np.unique(np.concatenate([np.array(numbers, dtype=np.int64), found]))


def _named(design: Design, margins: str | Sequence[str | Sequence[str]]) -> Whole:
    design = design.structured("margins by name; give published positions")
    of_levels = {block.levels: k for k, block in enumerate(design.blocks)}
    wanted = resolve(design.axes, parse(margins))
    missing = [block for block in wanted if block.levels not in of_levels]
    if missing:
        names = [level.name for level in missing[0].levels if level is not None]
        raise ParameterError(
            f"margin {tuple(names)} is not published by this design, so it has no value to meet. "
            "Name margins of the design."
        )
    every = np.arange(design.n_published)
    return np.concatenate([every[design.slice_of(of_levels[block.levels])] for block in wanted])


def frozen_margins(exact: Exact) -> str | tuple[str | int | tuple[str, ...], ...]:
    """Margins as a value that does not change; checked for shape, not yet against a design."""
    if isinstance(exact, str):
        return exact
    if isinstance(exact, int) and exact == 1:
        return TOTAL
    if not isinstance(exact, Iterable):
        raise ParameterError(f"exact needs a formula or a list of margins, got {exact!r}.")
    return tuple(m if isinstance(m, (str, int, np.integer)) else tuple(m) for m in exact)
