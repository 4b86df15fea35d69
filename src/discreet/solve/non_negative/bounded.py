"""Non-negative least squares that minds the bounds, by conjugate gradients.

Where few of many cells are positive, these are gathered, and conjugate gradients run on them until
a step would make cells negative: then it is cut off at zero and the directions start afresh. After
some hundred steps the cells are gathered anew. The method needs no ridge, so its equations are only
as ill-conditioned as the problem.

Margins that are held are met by shifting their targets. A shift is made as soon as the gradient is
as small as the deviation of these margins, so that no fit is more accurate than its targets. Where
a run of steps costs less than to look at all cells once, heavier margins save runs. Cells
in an exact margin of zero are zero; they are left out, and any large multiplier holds them there.

The fit starts at the table of smallest norm for some ridge. Among tables that fit equally well it
ends near the smallest, and the dual vector of that ridge proves how near (`smallest_norm`).

See Moré & Toraldo (1991); Dostál (2009), also for held margins.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.arrays import Real
from discreet.design.incidence import Incidence, SumArrays, hand_down, sum_up
from discreet.progress import report
from discreet.solve.non_negative.held import HeldMargins

# A run of steps may leave this part of the largest gradient; the next run gathers its cells anew.
_SHARE = 0.1
# Steps of one run at most; then cells that became zero are left out.
_STEPS = 1000
# The method ends at this part of what the certificate allows, which computes everything anew.
_SAFELY = 0.8
# A shift had no effect where this share of the deviation is left after it;
_UNANSWERED = 0.8
# the next shift is then doubled, up to this multiple of the deviation.
_MOST_TIMES = 64.0
# Held margins weigh so much more after a run that was cheap,
_HEAVIER = 2.0
# up to this multiple of the weight of others, beyond which steps become many.
_HEAVIEST = 20.0
# Runs without a gain before the method gives up, and the factor that counts as a gain.
_PATIENCE = 40
_GAIN = 0.9
# SumArrays of compiled loops may be reordered, which lets processors add several terms at a time.
_REORDER = {"reassoc", "contract", "nsz"}


class BoundedFit:
    """The state of the method: it starts at `y`, which it changes in place."""

    def __init__(self, held: HeldMargins, y: Real, ridge: float) -> None:
        self.held, self.y, self.ridge, self.steps = held, y, ridge, 0
        self._is_cheap = False
        self._missing, self._times = np.zeros(len(held.at)), np.ones(len(held.at))
        self._is_zero, self._blocked = held.zeros()
        y[self._blocked] = 0.0
        self.fitted = held.problem.design.aggregate(y)

    def run(self, max_steps: int) -> None:
        """Go on until the certificate would hold, or in vain."""
        best, in_vain = np.inf, 0
        while self.steps < max_steps and in_vain < _PATIENCE:
            gradient = self._gradient()
            violation, off = self._violation(gradient), self.held.deviation(self.fitted)
            worst = max(violation, off) / _SAFELY
            if worst <= 1.0:
                return
            in_vain += 1
            if worst < _GAIN * best:
                best, in_vain = worst, 0
            # No fit need be more accurate than its targets: they are shifted as soon as gradients
            # are as small as the deviations of held margins.
            if self.held and violation <= max(_SAFELY, off):
                # Heavier margins need fewer shifts but more steps: it pays where steps are cheap.
                if self._is_cheap:
                    self.held.weigh_more(_HEAVIER, _HEAVIEST, self.fitted)
                self._shift()
                gradient = self._gradient()
                violation = self._violation(gradient)
            allowed = min(violation, off) if off > 1.0 else violation
            self._improve(gradient, max(_SHARE * allowed, _SAFELY / 2))
            report("fit", 1.0 / (1.0 + np.log10(max(worst, 1.0))))

    @property
    def multipliers(self) -> Real:
        """Of held margins; those of zero margins are large enough for all of their cells."""
        found = self.held.multipliers(self.fitted) + self.held.constant
        found[self._is_zero] += self._full_gradient()[self._blocked].min(initial=0.0)
        return found

    def _full_gradient(self) -> Real:
        problem = self.held.problem
        return np.asarray(self.ridge * self.y - problem.design.adjoint(problem.misfit(self.fitted)))

    def _gradient(self) -> Real:
        """The gradient, but for cells that are zero in any case."""
        return np.where(self._blocked, 0.0, self._full_gradient())

    def _violation(self, gradient: Real) -> float:
        """The largest gradient that would still move a cell, in units of its limit."""
        limits = self.held.problem.limits
        moving = np.minimum(gradient, limits.curvature * self.y)
        return float((np.abs(moving) / limits.gradient).max(initial=0.0))

    def _shift(self) -> None:
        """Shift the targets of held margins, by more where the last shift had no answer."""
        missing = self.held.missing_in(self.fitted)
        # Cells at zero answer to a multiplier only when it exceeds what keeps them there; shifts of
        # one deviation each would take very many to get there.
        same = missing * self._missing > _UNANSWERED * self._missing**2
        self._times = np.where(same, np.minimum(2 * self._times, _MOST_TIMES), 1.0)
        self._missing = missing
        self.held.shift(self._times * missing)

    def _improve(self, gradient: Real, share: float) -> None:
        """A run of steps on cells that are positive or have a gradient below what it may leave."""
        problem = self.held.problem
        cells = np.flatnonzero((self.y > 0) | (-gradient > share * problem.limits.gradient))
        incidence = Incidence.of(problem.design, cells)
        at, x = incidence.position, self.y[cells]
        taken = bounded_steps(
            incidence.sums,
            problem.weights[at],
            problem.z[at],
            self.ridge,
            x,
            problem.limits.curvature[cells],
            share * problem.limits.gradient[cells],
            _STEPS,
        )
        self.steps += taken
        # Cheaper than to look at all cells once, as the next round of this loop will.
        self._is_cheap = taken * len(cells) < len(self.y)
        self.y[:] = 0.0
        self.y[cells] = x
        self.fitted = problem.design.aggregate(self.y)


@njit(cache=True)
def _write_gradient(
    sums: SumArrays, weights: Real, targets: Real, ridge: float, x: Real, g: Real
) -> None:
    """Write the gradient at a point; what is left of the targets is rounded as they are."""
    nodes = np.empty_like(weights)
    sum_up(sums, x, nodes)
    for k in range(len(nodes)):
        nodes[k] = weights[k] * (nodes[k] - targets[k])
    hand_down(sums, nodes, g)
    for i in range(len(x)):
        g[i] += ridge * x[i]


@njit(cache=True, fastmath=_REORDER)
def _projected_gradient(
    x: Real, g: Real, curvature: Real, limits: Real
) -> tuple[float, float, int]:
    """Squares of what still moves positive cells and cells at zero, and how many cells it moves."""
    free, bound, moved = 0.0, 0.0, 0
    for i in range(len(x)):
        r = min(g[i], curvature[i] * x[i])
        free += g[i] * r if x[i] > 0.0 else 0.0
        bound += r * r if x[i] <= 0.0 else 0.0
        moved += abs(r) > limits[i]
    return free, bound, moved


@njit(cache=True, fastmath=_REORDER)
def _multiply_hessian(
    sums: SumArrays, weights: Real, ridge: float, g: Real, p: Real, q: Real, nodes: Real
) -> tuple[float, float]:
    """Write the Hessian times a direction; returns slope and curvature along the direction."""
    sum_up(sums, p, nodes)
    for k in range(len(nodes)):
        nodes[k] *= weights[k]
    hand_down(sums, nodes, q)
    slope, curvature = 0.0, 0.0
    for i in range(len(p)):
        q[i] += ridge * p[i]
        slope += p[i] * g[i]
        curvature += p[i] * q[i]
    return slope, curvature


@njit(cache=True, fastmath=_REORDER)
def _leaves_bounds(x: Real, p: Real, size: float) -> bool:
    """Whether a step makes a cell negative."""
    below = 0
    for i in range(len(x)):
        below += size * p[i] > x[i]
    return below > 0


@njit(cache=True, fastmath=_REORDER)
def _advance(x: Real, g: Real, p: Real, q: Real, size: float, curvature: float) -> None:
    """A step that stays in bounds, and the next conjugate direction."""
    product = 0.0
    for i in range(len(x)):
        x[i] = max(x[i] - size * p[i], 0.0)
        g[i] -= size * q[i]
        product += g[i] * q[i] if x[i] > 0.0 else 0.0
    for i in range(len(x)):
        p[i] = g[i] - product / curvature * p[i] if x[i] > 0.0 else 0.0


@njit(cache=True)
def bounded_steps(
    sums: SumArrays,
    weights: Real,
    targets: Real,
    ridge: float,
    x: Real,
    curvature: Real,
    limits: Real,
    most: int,
) -> int:
    r"""Improve :math:`x \ge 0` in place until no cell is moved by more than its limit.

    Conjugate gradients run on the cells that are positive. A step beyond a bound is cut off cell by
    cell, and the directions start afresh. Cells at zero are set free when their gradients exceed
    those of positive cells. Returns the products with the Hessian that were taken.
    """
    g, p, q = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    nodes = np.empty_like(weights)
    _write_gradient(sums, weights, targets, ridge, x, g)
    is_fresh, taken = True, 1
    while taken < most:
        free, bound, moved = _projected_gradient(x, g, curvature, limits)
        if moved == 0:
            break
        # Cells at zero are freed only when they pull harder than positive cells (Dostál's
        # proportioning): freed early they would be cut off again, and each cut ends a run.
        is_release = bound > free
        if is_release or is_fresh:
            for i in range(len(x)):
                p[i] = min(g[i], 0.0) if x[i] <= 0.0 else g[i]
                if (x[i] <= 0.0) != is_release:
                    p[i] = 0.0
        slope, curved = _multiply_hessian(sums, weights, ridge, g, p, q, nodes)
        taken += 1
        if not curved > 0.0:
            break
        size = slope / curved
        is_fresh = is_release
        if _leaves_bounds(x, p, size):
            for i in range(len(x)):
                x[i] = max(x[i] - size * p[i], 0.0)
            # The cut step leaves the line, so the gradient cannot be updated along it, and old
            # directions are no longer conjugate to what is left.
            _write_gradient(sums, weights, targets, ridge, x, g)
            is_fresh, taken = True, taken + 1
        else:
            _advance(x, g, p, q, size, curved)
    return taken
