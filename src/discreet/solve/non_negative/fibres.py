r"""A preconditioner for the multipliers of bounds, fibre by fibre and level by level.

Let :math:`H = \bigotimes_a K_a`, where :math:`K_a = I + \sum_g w_g 1_g 1_g^\top` sums over nested
groups of one variable, and let `N` be the cells at zero. The inverse of :math:`(H^{-1})_{NN}` is
the Schur complement of `H`. Along one fibre, the cells that differ in one variable alone, it is
nearly :math:`I + \sum_g v_g 1_g 1_g^\top` on `N`, with :math:`v_g = w_g` where a group has no other
cell, and less where it has. A rank-one term has a square root of the same form,

.. math:: I + v u u^\top = (I + \sigma u u^\top)^2, \qquad
          \sigma = \frac{(1 + v u^\top u)^{1/2} - 1}{u^\top u},

so the sum over nested groups is :math:`BB^\top`, and the symmetric product of all variables,
:math:`B_1 B_2 \cdots B_2^\top B_1^\top`, is the preconditioner. It is exact if all cells are zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from discreet.arrays import Mask, Real, Whole
from discreet.design.axis import OUTSIDE, Level
from discreet.design.product import ProductDesign
from discreet.solve.least_squares.conjugate import Operator
from discreet.solve.least_squares.problem import block_means

Chain = list[tuple[Level | None, float]]

_PANEL = 256  # entries that are worked on together: short fibres alone would leave loops empty
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class _Variable:
    """The fibres of one variable in a table of shape (before, length, after).

    Attributes:
      shape: That shape.
      part: For each leaf its part: leaves of one part lie in the same groups.
      group: For each level, fine to coarse, the group of each part, if any.
      weight: Weight of each level, that of the inner cells being one.
    """

    shape: tuple[int, int, int]
    part: Whole
    group: Whole
    weight: Real


class Fibres:
    """The preconditioner of a design that publishes its inner cells, for changing cells at zero.

    Loops are long when a variable comes first, so the longest variable is dealt with in tables
    where it is the first, the others where it is the last.

    Args:
      design: The design.
      weights: Weights of its published cells; their means over blocks are used.
    """

    def __init__(self, design: ProductDesign, weights: Real) -> None:
        chains, shape = _chains(design, block_means(design, weights)), design.shape
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
        held = self._turned(zero)
        first = _Roots.of(self._longest, held)
        rest = [_Roots.of(v, held.T.copy()) for v in self._others]

        def multiply(r: Real) -> Real:
            image = self._turned(r)
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

    def _turned(self, table: Any) -> Any:
        """A copy as a matrix, a row for each category of the longest variable."""
        turned = table.reshape(self._shape).transpose(self._order)
        return turned.reshape(len(turned), -1).copy()


@dataclass(frozen=True, eq=False)
class _Roots:
    """The factor of one variable, with the cells at zero in its shape."""

    variable: _Variable
    zero: Mask
    values: Real

    @classmethod
    def of(cls, variable: _Variable, held: Mask) -> _Roots:
        zero = held.reshape(variable.shape)
        return cls(variable, zero, _roots(zero, variable).astype(np.float32))

    def multiply(self, image: Real, *, transposed: bool) -> None:
        v = self.variable
        _multiply(image.reshape(v.shape), self.zero, v.part, v.group, self.values, transposed)


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
def _multiply(
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
                    _add(total[g], sums[p], root[level, p], not transposed)
            for p in range(n_parts):
                g = group[level, p]
                if g != OUTSIDE:
                    _add(add[p], total[g], root[level, p], transposed)
        for b in range(x.shape[0]):
            for i in range(x.shape[1]):
                p = part[i]
                for c in range(x.shape[2]):
                    x[b, i, c] += add[p, b, c] if held[b, i, c] else 0.0


@njit(cache=True)
def _add(to: Real, values: Real, factors: Real, weighted: bool) -> None:
    """Add values, or their products with factors."""
    for b in range(to.shape[0]):
        for c in range(to.shape[1]):
            to[b, c] += values[b, c] * factors[b, c] if weighted else values[b, c]


def _variable(length: int, before: int, n_inner: int, chain: Chain) -> _Variable:
    total = np.zeros(length, dtype=np.int64)
    groups = [total if level is None else level.group for level, _ in chain]
    table = np.array(groups, dtype=np.int64).reshape(len(chain), length)
    group, part = np.unique(table, axis=1, return_inverse=True)
    weight = np.array([weight for _, weight in chain])
    return _Variable((before, length, n_inner // (before * length)), part.ravel(), group, weight)


def _chains(design: ProductDesign, means: Real) -> list[Chain]:
    """For each variable the levels that are published beside its finest one, fine to coarse.

    Of levels that are not nested in each other the finer one is taken.
    """
    weight_of = {b.levels: w for b, w in zip(design.blocks, means.tolist(), strict=True)}
    finest = max(design.blocks, key=lambda block: block.size).levels
    chains = []
    for a, last in enumerate(finest):
        used = {block.levels[a] for block in design.blocks} - {last}
        chain: Chain = []
        for level in sorted(used, key=lambda v: 0 if v is None else -len(v)):
            weight = weight_of.get((*finest[:a], level, *finest[a + 1 :]), 0.0) / weight_of[finest]
            finer = chain[-1][0] if chain else None
            nested = level is None or finer is None or design.lattice.step(finer, level) is not None
            if weight > 0 and nested:
                chain.append((level, weight))
        chains.append(chain)
    return chains
