r"""Margins that agree with each other and have no negative cell.

.. math:: \min_c \sum_k w_k (z_k - \hat z_k(c))^2 \quad\text{subject to}\quad M_A(c) \ge 0

over the effects `c`, for every margin `A` that lies in no other one. The method of multipliers
splits off one copy of each such margin; its quadratic step is an estimate of effects from
published cells and copies together, in closed form wherever `estimate` has one. Margins without
negative cells that agree pair by pair need not belong to a table; those of records do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Real
from discreet.progress import report
from discreet.solve.margins.effects import (
    Axes,
    EffectSpace,
    Estimate,
    conjugate_gradients,
    maximal,
)

_RELAX = 1.7  # over-relaxation; between 1.5 and 1.8 the steps are fewest, at 1 about a half more


@dataclass(frozen=True, eq=False)
class NonNegativeMargins:
    """Margins without negative cells.

    Attributes:
      effects: Their effects.
      negative: The most negative cell, in counts, as a positive number.
      change: By how much the last step moved a cell, in counts.
      steps: Steps taken.
    """

    effects: Real
    negative: float
    change: float
    steps: int


def fit_non_negative(
    start: Estimate, z: Real, w: Real, *, tolerance: float, most_steps: int = 5_000
) -> NonNegativeMargins:
    """Effects of the nearest margins without negative cells.

    Args:
      start: The estimate without bounds.
      z: Published values.
      w: Their precisions.
      tolerance: Largest negative cell and largest last change, in counts.
      most_steps: Steps at most.
    """
    space = start.space
    margins = maximal(list(space.margins_with_blocks))
    copies = {axes: np.maximum(space.margin(start.effects, axes), 0.0) for axes in margins}
    slack = {axes: np.zeros_like(copy) for axes, copy in copies.items()}
    # Copies weigh as much as the noisy cells do: more or less makes either residual shrink slowly.
    weight = float(np.median(w[w > 0])) if (w > 0).any() else 1.0
    step = _QuadraticStep(space, z, w, dict.fromkeys(margins, weight))
    c, negative, change, steps = start.effects, np.inf, np.inf, 0
    while max(negative, change) > tolerance and steps < most_steps:
        c = step({axes: copies[axes] - slack[axes] for axes in margins}, c)
        negative = change = 0.0
        for axes in margins:
            margin = space.margin(c, axes)
            mixed = _RELAX * margin + (1 - _RELAX) * copies[axes]
            now = np.maximum(mixed + slack[axes], 0.0)
            slack[axes] += mixed - now
            change = max(change, float(np.abs(now - copies[axes]).max()))
            negative = max(negative, float(np.abs(margin - now).max()))
            copies[axes] = now
        steps += 1
        report("non-negative margins", steps / most_steps)
    return NonNegativeMargins(_lift(space, c, margins), negative, change, steps)


class _QuadraticStep:
    """Effects nearest to published cells and to copies of margins."""

    def __init__(self, space: EffectSpace, z: Real, w: Real, weights: dict[Axes, float]) -> None:
        self.space, self.w, self.weights = space, w, weights
        self.right = space.adjoint(w * z)
        scale = space.precisions(w) + self._copy_precisions()
        self.inverse = 1 / scale
        self.is_diagonal = space.is_diagonal(w)

    def _copy_precisions(self) -> Real:
        found = np.zeros(self.space.length)
        for axes, weight in self.weights.items():
            for s in self.space.effects:
                if set(s) <= set(axes):
                    rest = np.prod([self.space.sizes[a] for a in axes if a not in s])
                    found[self.space.slice_of[s]] += weight / rest
        return found

    def __call__(self, copies: dict[Axes, Real], start: Real) -> Real:
        weighted = {axes: self.weights[axes] * copy for axes, copy in copies.items()}
        right = self.right + self.space.effects_of(weighted)
        if self.is_diagonal:
            return self.inverse * right
        return conjugate_gradients(self._apply, right, self.inverse, start, 1e-9, 8)[
            0
        ]  # from the last step on, a few are enough

    def _apply(self, c: Real) -> Real:
        own = self.space.adjoint(self.w * self.space.published(c))
        margins = {axes: m * self.space.margin(c, axes) for axes, m in self.weights.items()}
        return own + self.space.effects_of(margins)


def _lift(space: EffectSpace, c: Real, margins: list[Axes]) -> Real:
    """Mix in just enough of the uniform table that the smallest cell is zero.

    The result agrees with itself to rounding errors and has no negative cell at the same time.
    """
    total = float(c[0])
    if total <= 0:
        return c
    cells = [np.prod([space.sizes[a] for a in axes]) for axes in margins]
    low = min(
        (float(space.margin(c, axes).min()) * n for axes, n in zip(margins, cells, strict=True)),
        default=0.0,
    )
    share = -low / (total - low) if low < 0 else 0.0
    lifted = (1 - share) * c
    lifted[0] = total
    return lifted
