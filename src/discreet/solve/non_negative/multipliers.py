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

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from discreet.arrays import Mask, Real, Whole
from discreet.design.axis import OUTSIDE, Level
from discreet.design.base import dot
from discreet.design.product import ProductDesign
from discreet.progress import report
from discreet.solve.least_squares.basis import Operator
from discreet.solve.least_squares.problem import LeastSquaresProblem, block_means

# A system may be left with this part of its residual; the next guess goes on from there.
_GAIN = 0.05
# Guesses of the cells at zero after which the method gives up; fifteen are usual.
_ROUNDS = 50
# Steps of conjugate gradients for one guess; some twenty are usual.
_STEPS = 200
# Curvature of a direction below which single precision cannot tell it from none.
_FLAT = 1e-8
# Share of cells that change below which the fit is judged, which costs two sums over the table.
_FEW = 1e-3
# Part of what a certificate allows at which the method ends; the last guesses gain more than a
# digit each, so little is spent on it.
_SAFELY = 0.2
# Entries that are worked on together: short fibres alone would leave processors idle.
_PANEL = 256
# In place of zero in denominators of groups without a cell at zero.
_TINY = 1e-300


class MultiplierFit:
    """The state of the method on a complete design, given the inverse of its sums of squares.

    Cells `outside` are zero in any case; `held` are positions of margins, `slack` their sigmas.
    """

    def __init__(
        self,
        design: ProductDesign,
        problem: LeastSquaresProblem,
        inverse: Operator,
        outside: Mask,
        held: Whole,
        slack: Real,
    ) -> None:
        self._problem, self._inverse, self._outside = problem, inverse, outside
        self._slack, self.steps = slack, 0
        self._held = HeldSums(design, held)
        self._targets = problem.z[held]
        self._fibres = Fibres(design, problem.weights)
        self._scale = self._held.responses(inverse)
        # The fit without bounds or held margins; what rounding left of it is fitted again.
        y = inverse(problem.right_hand_side)
        y += inverse(problem.design.adjoint(problem.misfit(problem.design.aggregate(y))))
        self._free_fit = y
        self.bounds, self.multipliers = np.zeros(design.n_inner), np.zeros(len(held))
        self.y = self._free_fit
        self._zero = outside | (self.y < 0)

    @property
    def x(self) -> Real:
        """The fit without its cells at zero."""
        return np.where(self._zero, 0.0, np.maximum(self.y, 0.0))

    def run(self, max_steps: int) -> bool:
        """Guess the cells at zero until the certificate would hold; whether it would."""
        for _ in range(_ROUNDS):
            self._solve()
            zero = self._outside | np.where(self._zero, self.bounds > 0, self.y < 0)
            changed = int((zero != self._zero).sum())
            if changed <= _FEW * len(zero) and self._is_reached():
                return True
            if self.steps >= max_steps:
                return False
            report("fit", 1.0 / (1.0 + np.log2(1.0 + changed)))
            self._zero = zero
        return False

    def _solve(self) -> None:
        """Conjugate gradients for the change of the multipliers, given the cells at zero."""
        self.bounds[~self._zero] = 0.0
        self._update()
        left = np.where(self._zero, -self.y, 0.0)
        missed = self._margin_deviations(self._held.up(self.y))
        unit = float(np.sqrt(dot(left, left) + dot(missed / self._scale, missed)))
        if unit > 0:
            # Single precision halves the memory that steps wait for. Its errors do no harm, because
            # every guess starts from what is truly left, in double precision.
            bounds, held = self._change((left / unit).astype(np.float32), missed / unit)
            self.bounds += unit * bounds.astype(np.float64)
            self.multipliers = self.multipliers + unit * held
            self._update()

    def _change(self, r: Real, e: Real) -> tuple[Real, Real]:
        """The change of the multipliers that takes residuals of size one to a share of that."""
        precondition = self._fibres.on(self._zero)
        bounds, p, held, f = (np.zeros_like(values) for values in (r, r, e, e))
        product = 1.0
        for step in range(_STEPS):
            if dot(r, r) + dot(e / self._scale, e) <= _GAIN**2:
                break
            s, t = precondition(r), e / self._scale
            before, product = product, dot(r, s) + dot(e, t)
            beta = product / before if step else 0.0
            p, f = s + np.float32(beta) * p, t + beta * f
            q = self._inverse(self._with(p, f))
            turned = self._held.up(q) + self._slack * f
            curvature = dot(p, q) + dot(f, turned)
            if not curvature > _FLAT * (dot(p, p) + dot(f, self._scale * f)):
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

    def _margin_deviations(self, fitted: Real) -> Real:
        """By how much held margins are off, given what their multipliers allow."""
        return self._targets - fitted - self._slack * self.multipliers

    def _is_reached(self) -> bool:
        """Whether gradients and held margins are within their limits."""
        problem, x = self._problem, self.x
        limits, fitted = problem.limits, problem.design.aggregate(x)
        gradient = -self._with(problem.design.adjoint(problem.misfit(fitted)), self.multipliers)
        moving = np.where(self._outside, 0.0, np.minimum(gradient, limits.curvature * x))
        off = self._margin_deviations(fitted[self._held.at]) / limits.margin[self._held.at]
        worst = (np.abs(moving) / limits.gradient).max(initial=0.0)
        return bool(max(worst, np.abs(off).max(initial=0.0)) <= _SAFELY)


class HeldSums:
    """Sums of the margins at some published positions, without those of all others."""

    def __init__(self, design: ProductDesign, at: Whole) -> None:
        self.at, n = at, design.n_inner
        self._index: list[Whole] = []
        rank = np.full(design.n_published, len(at), dtype=np.int64)
        rank[at] = np.arange(len(at))
        codes = design.leaf_positions(np.arange(n)) if len(at) else []
        for k in np.unique(design.block_of_cell()[at]):
            flat, inside = (np.broadcast_to(v, n) for v in design.locate(int(k), codes))
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


WeightedLevels = list[tuple[Level | None, float]]


@dataclass(frozen=True, eq=False)
class _Variable:
    """The fibres of one variable in a table of shape (before, length, after)."""

    shape: tuple[int, int, int]  # that shape
    part: Whole  # for each leaf its part: leaves of one part lie in the same groups
    group: Whole  # for each level, fine to coarse, the group of each part, if any
    weight: Real  # weight of each level, that of the inner cells being one


class Fibres:
    r"""The preconditioner of a design that publishes its inner cells, for changing cells at zero.

    Let :math:`H = \bigotimes_a K_a`, where :math:`K_a = I + \sum_g w_g 1_g 1_g^\top` sums over
    nested groups of one variable, and let `N` be the cells at zero. The inverse of
    :math:`(H^{-1})_{NN}` is the Schur complement of `H`. Along one fibre, the cells that differ in
    one variable alone, it is nearly :math:`I + \sum_g v_g 1_g 1_g^\top` on `N`, with
    :math:`v_g = w_g` where a group has no other cell, and less where it has. A rank-one term has a
    square root of the same form,

    .. math:: I + v u u^\top = (I + \sigma u u^\top)^2, \qquad
              \sigma = \frac{(1 + v u^\top u)^{1/2} - 1}{u^\top u},

    so the sum over nested groups is :math:`BB^\top`, and the symmetric product of all variables,
    :math:`B_1 B_2 \cdots B_2^\top B_1^\top`, is the preconditioner. It is exact if all cells are
    zero.

    Weights of published cells enter by their means over blocks.
    """

    def __init__(self, design: ProductDesign, weights: Real) -> None:
        chains, shape = _weighted_levels(design, block_means(design, weights)), design.shape
        # Loops are long when a variable comes first, so the longest variable is dealt with in
        # tables where it is the first, the others where it is the last.
        *others, longest = sorted(range(len(shape)), key=lambda a: shape[a])
        self._shape, self._order = shape, [longest, *others]
        self._longest = _variable(shape[longest], 1, design.n_inner, chains[longest])
        self._others, before = [], 1
        for a in others:
            self._others.append(_variable(shape[a], before, design.n_inner, chains[a]))
            before *= shape[a]

    def on(self, zero: Mask) -> Operator:
        """The operator for given cells at zero, on tables that vanish elsewhere.

        Cost: a few operations for each cell and variable, now and in each use.
        """
        held = self._as_matrix(zero)
        first = _VariableRoots.of(self._longest, held)
        rest = [_VariableRoots.of(v, held.T.copy()) for v in self._others]

        def multiply(r: Real) -> Real:
            image = self._as_matrix(r)
            first.multiply(image, transposed=True)
            image = image.T.copy()
            for root in reversed(rest):
                root.multiply(image, transposed=True)
            for root in rest:
                root.multiply(image, transposed=False)
            image = image.T.copy()
            first.multiply(image, transposed=False)
            turned = image.reshape([self._shape[a] for a in self._order])
            found: Real = turned.transpose(np.argsort(self._order)).ravel()
            return found

        return multiply

    def _as_matrix(self, table: Any) -> Any:
        """A copy as a matrix, a row for each category of the longest variable."""
        turned = table.reshape(self._shape).transpose(self._order)
        return turned.reshape(len(turned), -1).copy()


@dataclass(frozen=True, eq=False)
class _VariableRoots:
    """The factor of one variable, with the cells at zero in its shape."""

    variable: _Variable
    zero: Mask
    values: Real

    @classmethod
    def of(cls, variable: _Variable, held: Mask) -> _VariableRoots:
        zero = held.reshape(variable.shape)
        return cls(variable, zero, _roots(zero, variable).astype(np.float32))

    def multiply(self, image: Real, *, transposed: bool) -> None:
        v = self.variable
        _multiply_fibres(
            image.reshape(v.shape), self.zero, v.part, v.group, self.values, transposed
        )


@njit(cache=True)
def _sum_parts(x: Any, part: Whole, sums: Real) -> None:
    """Sums over the parts of some fibres."""
    sums[:] = 0.0
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            p = part[i]
            for c in range(x.shape[2]):
                sums[p, b, c] += x[b, i, c]


def _roots(zero: Mask, v: _Variable) -> Real:
    """For each level, part and fibre the number sigma times what finer groups leave of one."""
    n_levels, n_parts = v.group.shape
    lengths = np.bincount(v.part, minlength=n_parts)
    held, left, size, others = np.ones((4, n_parts, v.shape[0], v.shape[2]))
    found = np.zeros((n_levels, *held.shape))
    _sum_parts(zero, v.part, held)
    for level, w in enumerate(v.weight):
        inside = [(p, g) for p, g in enumerate(v.group[level]) if g != OUTSIDE]
        size[:], others[:] = 0.0, 0.0
        for p, g in inside:
            size[g] += left[p] ** 2 * held[p]
            others[g] += lengths[p] - held[p]
        root = np.sqrt(1.0 + w / (1.0 + w * others) ** 2 * size)
        sigma = (root - 1.0) / np.maximum(size, _TINY)
        for p, g in inside:
            found[level, p] = sigma[g] * left[p]
            left[p] /= root[g]
    return found


@njit(cache=True)
def _multiply_fibres(
    table: Real, zero: Mask, part: Whole, group: Whole, roots: Real, transposed: bool
) -> None:
    """Multiply by the root of one variable or its transpose, in place; some fibres at a time."""
    n_levels, n_parts = group.shape
    together = max(1, _PANEL // table.shape[2])
    space = np.empty((3, n_parts, together, table.shape[2]), dtype=table.dtype)
    for first in range(0, len(table), together):
        x, held = table[first : first + together], zero[first : first + together]
        root = roots[:, :, first : first + together]
        sums, add, total = space[:, :, : len(x)]
        _sum_parts(x, part, sums)
        add[:] = 0.0
        for level in range(n_levels):
            total[:] = 0.0
            for p in range(n_parts):
                g = group[level, p]
                if g != OUTSIDE:
                    _add_products(total[g], sums[p], root[level, p], not transposed)
            for p in range(n_parts):
                g = group[level, p]
                if g != OUTSIDE:
                    _add_products(add[p], total[g], root[level, p], transposed)
        for b in range(x.shape[0]):
            for i in range(x.shape[1]):
                p = part[i]
                for c in range(x.shape[2]):
                    x[b, i, c] += add[p, b, c] if held[b, i, c] else 0.0


@njit(cache=True)
def _add_products(to: Real, values: Real, factors: Real, weighted: bool) -> None:
    """Add values, or their products with factors."""
    for b in range(to.shape[0]):
        for c in range(to.shape[1]):
            to[b, c] += values[b, c] * factors[b, c] if weighted else values[b, c]


def _variable(length: int, before: int, n_inner: int, chain: WeightedLevels) -> _Variable:
    total = np.zeros(length, dtype=np.int64)
    groups = [total if level is None else level.group for level, _ in chain]
    table = np.array(groups, dtype=np.int64).reshape(len(chain), length)
    group, part = np.unique(table, axis=1, return_inverse=True)
    weight = np.array([weight for _, weight in chain])
    return _Variable((before, length, n_inner // (before * length)), part.ravel(), group, weight)


def _weighted_levels(design: ProductDesign, means: Real) -> list[WeightedLevels]:
    """For each variable the levels that are published beside its finest one, fine to coarse.

    Of levels that are not nested in each other the finer one is taken.
    """
    weight_of = {b.levels: w for b, w in zip(design.blocks, means.tolist(), strict=True)}
    finest = max(design.blocks, key=lambda block: block.size).levels
    chains = []
    for a, last in enumerate(finest):
        used = {block.levels[a] for block in design.blocks} - {last}
        chain: WeightedLevels = []
        for level in sorted(used, key=lambda v: 0 if v is None else -len(v)):
            weight = weight_of.get((*finest[:a], level, *finest[a + 1 :]), 0.0) / weight_of[finest]
            finer = chain[-1][0] if chain else None
            nested = level is None or finer is None or design.lattice.step(finer, level) is not None
            if weight > 0 and nested:
                chain.append((level, weight))
        chains.append(chain)
    return chains
