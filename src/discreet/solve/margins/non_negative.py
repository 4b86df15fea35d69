r"""Margins that agree with each other and have no negative cell.

They solve

.. math:: \min_c \sum_k w_k (z_k - \hat z_k(c))^2 \quad\text{subject to}\quad M_A(c) \ge 0

over the effects `c`, for every margin `A` that lies in no other one. Dense factors do it where
weights are uneven and effects few, else the method of multipliers: it splits off one copy of each
such margin; its quadratic step is an estimate of effects from published cells and copies together,
in closed form wherever `estimate` has one. The forces on cells at zero tell how far either is from
the solution. Margins without negative cells that agree pair by pair need not belong to a table;
those of records do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Real
from discreet.progress import report
from discreet.solve.least_squares.conjugate import conjugate_gradients
from discreet.solve.margins.effects import Axes, EffectSpace, Estimate, finite, known_from, maximal

# Steps of conjugate gradients at most from where the last ones ended, and the gradient, in standard
# errors, below which they stop.
_STEPS_WITHIN, _WITHIN = 8, 1e-7
_ROUNDING = 1e-13  # share of the largest cell below which others are zero
_RELAX = 1.7  # over-relaxation; between 1.5 and 1.8 the steps are fewest, at 1 about a half more
_ALMOST_ZERO = 1e6  # weight of cells that are zero where dense factors failed
_NEARER = 0.3  # factor by which steps go on where the margins that they lead to are not near enough


@dataclass(frozen=True, eq=False)
class NonNegativeMargins:
    """Margins without negative cells."""

    effects: Real  # their effects
    negative: float  # the most negative cell, which rounding leaves, as a positive number
    # By how many standard errors a cell can be off, under noise with the given precisions.
    off: float
    steps: int  # steps taken


def fit_non_negative(
    start: Estimate, z: Real, w: Real, *, tolerance: float, most_steps: int = 5_000
) -> NonNegativeMargins:
    """Effects of the nearest margins without negative cells, from an estimate without bounds.

    A cell may be off by `tolerance` standard errors.
    """
    space = start.space
    margins = maximal(list(space.margins_with_blocks))
    dense = None if space.is_diagonal(w) else space.dense(w)
    if dense is not None:
        rows = [space.margin_matrix(axes) for axes in margins]
        if (found := dense.non_negative(z, np.vstack(rows))) is not None:
            parts = np.split(found[1], np.cumsum([len(row) for row in rows])[:-1])
            forces = dict(zip(margins, parts, strict=True))
            off = _how_far(space, z, w, found[0], forces)
            return NonNegativeMargins(found[0], -_lowest(space, found[0], margins), off, 1)
        w = np.where(np.isinf(w), _ALMOST_ZERO * finite(w).max(), w)
    return _by_copies(start, margins, z, w, tolerance, most_steps)


def _how_far(space: EffectSpace, z: Real, w: Real, c: Real, forces: dict[Axes, Real]) -> float:
    r"""By how many standard errors margins without negative cells can be off.

    Forces :math:`f \ge 0` bound the loss from below; it exceeds the bound by
    :math:`f^\top Mc + \tfrac12 r^\top A^{-1} r` with the gradient `r` that they leave, and half the
    squared distance to the best effects is no more than that.
    """
    forces = {axes: f.reshape([space.sizes[a] for a in axes]) for axes, f in forces.items()}
    gradient = space.adjoint(finite(w) * (z - space.aggregate(c))) + space.effects_of(forces)
    cells = {axes: space.margin(c, axes) for axes in forces}
    zero = _ROUNDING * max((float(np.abs(own).max()) for own in cells.values()), default=0.0)
    pressed = sum(
        float((f * np.where(cells[a] > zero, cells[a], 0.0)).sum()) for a, f in forces.items()
    )
    return math.hypot(math.sqrt(2 * max(pressed, 0.0)), space.distance(gradient, w))


def _by_copies(
    start: Estimate, margins: list[Axes], z: Real, w: Real, tolerance: float, most_steps: int
) -> NonNegativeMargins:
    space = start.space
    copies = {axes: np.maximum(space.margin(start.effects, axes), 0.0) for axes in margins}
    slack = {axes: np.zeros_like(copy) for axes, copy in copies.items()}
    # Copies weigh as much as the noisy cells do: more or less makes either residual shrink slowly.
    noisy = w[(w > 0) & (w <= known_from(w))]
    weight = float(np.median(noisy)) if len(noisy) else 1.0
    step = _QuadraticStep(space, z, w, dict.fromkeys(margins, weight))
    aim, c, off, steps = tolerance / math.sqrt(weight), start.effects, math.inf, 0
    while off > tolerance and steps < most_steps:
        c = step({axes: copies[axes] - slack[axes] for axes in margins}, c)
        change = 0.0
        for axes in margins:
            margin = space.margin(c, axes)
            mixed = _RELAX * margin + (1 - _RELAX) * copies[axes]
            now = np.maximum(mixed + slack[axes], 0.0)
            slack[axes] += mixed - now
            moved = max(np.abs(now - copies[axes]).max(), np.abs(margin - now).max())
            change = max(change, float(moved))
            copies[axes] = now
        steps += 1
        report("non-negative margins", steps / most_steps)
        if change <= aim or steps == most_steps:
            best, forces = _lift(space, c, margins), {a: -weight * slack[a] for a in margins}
            off, aim = _how_far(space, z, w, best, forces), _NEARER * aim
    best = _lift(space, c, margins)
    return NonNegativeMargins(best, -_lowest(space, best, margins), off, steps)


class _QuadraticStep:
    """Effects nearest to published cells and to copies of margins."""

    def __init__(self, space: EffectSpace, z: Real, w: Real, weights: dict[Axes, float]) -> None:
        self.space, self.w, self.weights = space, w, weights
        self.right = space.adjoint(w * z)
        scale = space.precisions(w) + self._copy_precisions()
        self.inverse = 1 / scale
        self.limits = _WITHIN * np.sqrt(scale / space.length)
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
        c = start.copy()
        conjugate_gradients(
            lambda c: right - self._apply(c),
            self._apply,
            lambda r: self.inverse * r,
            c,
            self.limits,
            _STEPS_WITHIN,
        )
        return c

    def _apply(self, c: Real) -> Real:
        own = self.space.adjoint(self.w * self.space.aggregate(c))
        margins = {axes: m * self.space.margin(c, axes) for axes, m in self.weights.items()}
        return own + self.space.effects_of(margins)


def _lowest(space: EffectSpace, c: Real, margins: list[Axes]) -> float:
    """The most negative cell, or zero."""
    lows = (float(space.margin(c, axes).min()) for axes in margins)
    return min(lows, default=0.0)


def _lift(space: EffectSpace, c: Real, margins: list[Axes]) -> Real:
    """Mix in just enough of the uniform table that the smallest cell is zero.

    The result agrees with itself to rounding errors and has no negative cell at the same time; a
    negative total leaves nothing.
    """
    total = float(c[0])
    if total <= 0:
        return np.zeros_like(c)
    cells = [np.prod([space.sizes[a] for a in axes]) for axes in margins]
    low = min(
        (float(space.margin(c, axes).min()) * n for axes, n in zip(margins, cells, strict=True)),
        default=0.0,
    )
    share = -low / (total - low) if low < 0 else 0.0
    lifted = (1 - share) * c
    lifted[0] = total
    return lifted
