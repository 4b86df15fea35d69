r"""A preconditioner for the multipliers of bounds, fibre by fibre and level by level.

Let :math:`H = \bigotimes_a K_a`, where :math:`K_a = I + \sum_g w_g 1_g 1_g^\top` sums over nested
groups of one variable, and let `N` be the cells at zero. The inverse of :math:`(H^{-1})_{NN}` is
the Schur complement of `H`. Along one fibre, the cells that differ in one variable alone, it is
nearly :math:`I + \sum_g v_g 1_g 1_g^\top` on `N`, with :math:`v_g = w_g` where a group has no other
cell, and less where it has. A rank-one term has a square root of the same form,

.. math:: I + v u u^\top = (I + \sigma u u^\top)^2, \qquad
          \sigma = \frac{(1 + v u^\top u)^{1/2} - 1}{u^\top u},

so the sum over nested groups is :math:`BB^\top`, and the symmetric product of all variables,
:math:`B_1 B_2 \cdots B_2^\top B_1^\top`, is the preconditioner. It is exact when all cells are zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.design.axis import OUTSIDE, Level
from discreet.design.product import ProductDesign
from discreet.solve.least_squares.completion import block_means

Vector = NDArray[np.float64]
Marks = NDArray[np.bool_]
Whole = NDArray[np.int64]

_PANEL = 256  # entries that are worked on together: short fibres alone would leave loops empty


@dataclass(frozen=True, eq=False)
class _Variable:
    """The fibres of one variable in a table of shape (before, length, after).

    Attributes:
      shape: That shape.
      part: For each leaf its part: leaves of one part lie in the same groups.
      group: For each level, fine to coarse, the group of each part, or -1.
      weight: Weight of each level, that of the inner cells being one.
    """

    shape: tuple[int, int, int]
    part: Whole
    group: Whole
    weight: Vector


class Fibres:
    """The preconditioner of a design that publishes its inner cells, for changing cells at zero.

    Args:
      design: The design.
      weights: Weights of its published cells; their means over blocks are used.
    """

    def __init__(self, design: ProductDesign, weights: Vector) -> None:
        self._variables = [
            _variable(design, a, chain)
            for a, chain in enumerate(_chains(design, block_means(design, weights)))
            if chain
        ]

    def on(self, zero: Marks) -> FibreRoots:
        """The preconditioner for given cells at zero; costs a pass over the table per variable."""
        return FibreRoots(
            zero, [(v, _roots(zero.reshape(v.shape), *_tree(v))) for v in self._variables]
        )


class FibreRoots:
    """The preconditioner for given cells at zero; see the module."""

    def __init__(self, zero: Marks, roots: list[tuple[_Variable, Vector]]) -> None:
        self._zero, self._roots = zero, roots

    def __call__(self, r: Vector) -> Vector:
        """The image of a residual that vanishes on other cells."""
        image = r.copy()
        for v, root in self._roots:
            _multiply(image.reshape(v.shape), self._zero.reshape(v.shape), *_tree(v)[:2], root, True)
        for v, root in reversed(self._roots):
            _multiply(
                image.reshape(v.shape), self._zero.reshape(v.shape), *_tree(v)[:2], root, False
            )
        return image


def _tree(v: _Variable) -> tuple[Whole, Whole, Vector]:
    return v.part, v.group, v.weight


@njit(cache=True)
def _sum_parts(x: Vector, part: Whole, first: int, last: int, sums: Vector) -> None:
    """Sums over the parts of the fibres from one to another."""
    sums[:] = 0.0
    after = x.shape[2]
    for b in range(first, last):
        at = (b - first) * after
        for i in range(len(part)):
            for c in range(after):
                sums[part[i], at + c] += x[b, i, c]


@njit(cache=True)
def _roots(zero: Marks, part: Whole, group: Whole, weight: Vector) -> Vector:
    """For each level, part and fibre the number sigma times what finer groups leave of one."""
    before, length, after = zero.shape
    n_levels, n_parts = group.shape
    found = np.zeros((n_levels, n_parts, before * after))
    together = max(1, _PANEL // after)
    width = together * after
    held, left, size, others = np.empty((4, n_parts, width))
    lengths = np.bincount(part, minlength=n_parts)
    for first in range(0, before, together):
        last, at = min(first + together, before), first * after
        _sum_parts(zero, part, first, last, held)
        left[:] = 1.0
        for level in range(n_levels):
            size[:], others[:] = 0.0, 0.0
            for p in range(n_parts):
                g = group[level, p]
                for k in range(width if g >= 0 else 0):
                    size[g, k] += left[p, k] ** 2 * held[p, k]
                    others[g, k] += lengths[p] - held[p, k]
            for p in range(n_parts):
                g = group[level, p]
                for k in range((last - first) * after if g >= 0 else 0):
                    v = weight[level] / (1.0 + weight[level] * others[g, k]) ** 2
                    root = np.sqrt(1.0 + v * size[g, k])
                    if size[g, k] > 0.0:
                        found[level, p, at + k] = (root - 1.0) / size[g, k] * left[p, k]
                    left[p, k] /= root
    return found


@njit(cache=True)
def _multiply(
    x: Vector, zero: Marks, part: Whole, group: Whole, root: Vector, transposed: bool
) -> None:
    """Multiply by the root of one variable or its transpose, in place; a panel at a time."""
    before, length, after = x.shape
    n_levels, n_parts = group.shape
    together = max(1, _PANEL // after)
    sums, add, total = np.empty((3, n_parts, together * after))
    for first in range(0, before, together):
        last, at = min(first + together, before), first * after
        width = (last - first) * after
        _sum_parts(x, part, first, last, sums)
        add[:] = 0.0
        for level in range(n_levels):
            total[:] = 0.0
            for p in range(n_parts):
                g = group[level, p]
                for k in range(width if g >= 0 else 0):
                    factor = 1.0 if transposed else root[level, p, at + k]
                    total[g, k] += factor * sums[p, k]
            for p in range(n_parts):
                g = group[level, p]
                for k in range(width if g >= 0 else 0):
                    factor = root[level, p, at + k] if transposed else 1.0
                    add[p, k] += factor * total[g, k]
        for b in range(first, last):
            for i in range(length):
                for c in range(after):
                    x[b, i, c] += zero[b, i, c] * add[part[i], (b - first) * after + c]


def _variable(design: ProductDesign, a: int, chain: list[tuple[Level | None, float]]) -> _Variable:
    shape = design.shape
    none = np.zeros(shape[a], dtype=np.int64)
    groups = np.array([none if level is None else level.group for level, _ in chain])
    parts, part = np.unique(groups, axis=1, return_inverse=True)
    outside = parts == OUTSIDE
    return _Variable(
        (math.prod(shape[:a]), shape[a], math.prod(shape[a + 1 :])),
        part.reshape(-1).astype(np.int64),
        np.where(outside, -1, parts).astype(np.int64),
        np.array([weight for _, weight in chain]),
    )


def _chains(design: ProductDesign, means: Vector) -> list[list[tuple[Level | None, float]]]:
    """For each variable the levels that are published beside its finest one, fine to coarse.

    Of levels that are not nested in each other the finer one is taken.
    """
    weight_of = {b.levels: w for b, w in zip(design.blocks, means.tolist(), strict=True)}
    finest = max(design.blocks, key=lambda block: block.size).levels
    chains = []
    for a, last in enumerate(finest):
        used = {block.levels[a] for block in design.blocks} - {last}
        chain: list[tuple[Level | None, float]] = []
        for level in sorted(used, key=lambda v: 0 if v is None else -len(v)):
            weight = weight_of.get((*finest[:a], level, *finest[a + 1 :]), 0.0) / weight_of[finest]
            finer = chain[-1][0] if chain else None
            nested = level is None or finer is None or design.lattice.step(finer, level) is not None
            if weight > 0 and nested:
                chain.append((level, weight))
        chains.append(chain)
    return chains
