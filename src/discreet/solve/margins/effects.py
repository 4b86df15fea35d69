r"""Margins by their effects: the crossing of the variables is never formed.

A table's margin over the variables :math:`A`, with :math:`d_i` categories each, is a sum of
effects, one for each set :math:`S \subseteq A`,

.. math:: M_A = \sum_{S \subseteq A} c_S \prod_{i \in A \setminus S} 1/d_i,

where :math:`c_S` sums to zero along each of its variables. Margins that share variables share
effects, so any choice of effects gives margins that agree with each other. Where published cells
are leaves and all cells of a margin weigh the same, effects are estimated one by one: in a margin
:math:`A` with precision :math:`w_A`, effect :math:`S` has the precision
:math:`w_A \prod_{i \in A \setminus S} 1/d_i`. Levels of hierarchies and uneven weights couple
effects; conjugate gradients, preconditioned by these precisions, then need some steps.

Cost: a pass over the published cells and their effects for each product; memory likewise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.arrays import Real
from discreet.design.axis import OUTSIDE, Level
from discreet.design.formula import Block
from discreet.design.product import ProductDesign
from discreet.solve.least_squares.basis import pseudo_inverse
from discreet.solve.least_squares.conjugate import conjugate_gradients
from discreet.solve.margins.dense import DenseMargins, few_effects

Axes = tuple[int, ...]


class EffectSpace:
    """The effects behind some margins, and the way from one to the other.

    Effects are held in one vector; `slice_of[S]` is the part of the effect over the axes `S`.

    Args:
      design: A full crossing of any size; only its published side is used.
    """

    def __init__(self, design: ProductDesign) -> None:
        self.design = design
        self.sizes = design.shape
        by_axes: dict[Axes, list[int]] = {}
        for k, block in enumerate(design.blocks):
            by_axes.setdefault(axes_of(block), []).append(k)
        self.margins_with_blocks = by_axes
        subsets = {s for axes in by_axes for s in subsets_of(axes)}
        self.effects: list[Axes] = sorted(subsets, key=lambda s: (len(s), s))
        self.slice_of: dict[Axes, slice] = {}
        start = 0
        for effect in self.effects:
            self.slice_of[effect] = slice(start, start + math.prod(self._shape(effect)))
            start = self.slice_of[effect].stop
        self.length = start
        self._last: DenseMargins | None = None

    def _shape(self, axes: Axes) -> tuple[int, ...]:
        return tuple(self.sizes[a] for a in axes)

    def effect(self, c: Real, axes: Axes) -> Real:
        """The part of a vector that is the effect over some axes, as an array over them."""
        return c[self.slice_of[axes]].reshape(self._shape(axes))

    def margin(self, c: Real, axes: Axes) -> Real:
        """The margin over some axes at their leaves, as an array over them."""
        total = np.zeros(self._shape(axes))
        for s in subsets_of(axes):
            share = 1 / math.prod(self.sizes[a] for a in axes if a not in s)
            index = tuple(slice(None) if a in s else None for a in axes)
            total += self.effect(c, s)[index] * share
        return total

    def effects_of(self, margins: dict[Axes, Real]) -> Real:
        """The adjoint of `margin`, summed over margins; the result is centred."""
        c = np.zeros(self.length)
        for axes, values in margins.items():
            for s in subsets_of(axes):
                gone = tuple(i for i, a in enumerate(axes) if a not in s)
                share = 1 / math.prod(self.sizes[axes[i]] for i in gone)
                self.effect(c, s)[...] += values.sum(axis=gone) * share
        return self.centre(c)

    def centre(self, c: Real) -> Real:
        """Subtract from each effect its means along each axis, in place."""
        for s in self.effects:
            part = self.effect(c, s)
            for i in range(len(s)):
                part -= part.mean(axis=i, keepdims=True)
        return c

    def aggregate(self, c: Real) -> Real:
        """The published cells of the margins with these effects."""
        z = np.empty(self.design.n_published)
        for axes, blocks in self.margins_with_blocks.items():
            leaf = self._full(self.margin(c, axes), axes)
            for k in blocks:
                block = self.design.blocks[k]
                summed = self.design.sum_into(leaf, self._leaf_block(axes), block)
                z[self.design.slice_of(k)] = summed.ravel()
        return z

    def adjoint(self, z: Real) -> Real:
        """The adjoint of `aggregate`; the result is centred."""
        return self.effects_of(self.spread(z))

    def spread(self, z: Real) -> dict[Axes, Real]:
        """For each margin and each of its leaf cells the sum of the published cells around it."""
        found = {}
        for axes, blocks in self.margins_with_blocks.items():
            total = np.zeros(self._shape(axes))
            for k in blocks:
                block = self.design.blocks[k]
                values = z[self.design.slice_of(k)].reshape(block.shape)
                wide = self.design.spread_into(values, block, self._leaf_block(axes))
                total += wide.reshape(total.shape)
            found[axes] = total
        return found

    def precisions(self, w: Real) -> Real:
        """A precision for each entry of a vector of effects, exact where effects are uncoupled."""
        found = dict.fromkeys(self.effects, 0.0)
        for axes, blocks in self.margins_with_blocks.items():
            for k in blocks:
                weight = float(w[self.design.slice_of(k)].mean())
                shares = [self._shares(a, self.design.blocks[k].levels[a]) for a in axes]
                for s in subsets_of(axes):
                    pairs = zip(axes, shares, strict=True)
                    found[s] += weight * math.prod(
                        own if a in s else rest for a, (own, rest) in pairs
                    )
        out = np.empty(self.length)
        for s, value in found.items():
            out[self.slice_of[s]] = value
        return out

    def _shares(self, a: int, level: Level | None) -> tuple[float, float]:
        """Mean square of a contrast, and of the constant, along an axis after summing into groups.

        With groups of sizes g out of d leaves these are (d - Σg²/d)/(d - 1) and Σ(g/d)².
        """
        assert level is not None
        d = self.sizes[a]
        groups = np.bincount(level.group[level.group != OUTSIDE], minlength=len(level))
        rest = float((groups.astype(float) ** 2).sum()) / d**2
        own = (float(groups.sum()) - d * rest) / (d - 1) if d > 1 else 0.0
        return own, rest

    @cached_property
    def is_flat(self) -> bool:
        """Whether all published cells are leaves of their variables."""
        return all(leaf_axes(block) is not None for block in self.design.blocks)

    def margin_matrix(self, axes: Axes) -> Real:
        """The cells of a margin over leaves as a matrix of effects."""
        return np.stack([self.margin(c, axes).ravel() for c in np.eye(self.length)], axis=1)

    def dense(self, w: Real) -> DenseMargins | None:
        """The published cells with precisions as a matrix, where it is small."""
        if self._few is None:
            return None
        if self._last is None or not np.array_equal(self._last.given, w):
            self._last = DenseMargins(*self._few, w)
        return self._last

    @cached_property
    def _few(self) -> tuple[Real, Real] | None:
        return few_effects(self)

    def is_diagonal(self, w: Real) -> bool:
        """Whether effects are estimated one by one under these weights."""
        parts = (w[self.design.slice_of(k)] for k in range(len(self.design.blocks)))
        return self.is_flat and all(float(part.min()) == float(part.max()) for part in parts)

    def distance(self, gradient: Real, w: Real) -> float:
        r"""By how many standard errors a cell is off at most where this gradient is left.

        With gradient `r` and matrix `A` effects are off by `e`, :math:`Ae = r`, and a cell by at
        most :math:`\sqrt{r^\top A^{-1} r}` standard errors of its own. The precisions `M` of mean
        weights bound that: where no weight is below a share `s` of its mean, :math:`A \ge sM`.
        """
        if not self.is_diagonal(w) and (dense := self.dense(w)) is not None:
            return dense.distance(gradient)
        scale = self.precisions(w)
        bound = float(gradient @ (pseudo_inverse(scale) * gradient))
        return math.sqrt(bound / _least_share(self, w))

    def _full(self, values: Real, axes: Axes) -> Real:
        return values.reshape([self.sizes[a] if a in axes else 1 for a in range(len(self.sizes))])

    def _leaf_block(self, axes: Axes) -> Block:
        pairs = enumerate(self.design.axes)
        return Block(tuple(axis.finest if a in axes else None for a, axis in pairs))


def axes_of(block: Block) -> Axes:
    """The axes that a block does not sum over."""
    return tuple(a for a, level in enumerate(block.levels) if level is not None)


def leaf_axes(block: Block) -> Axes | None:
    """The axes of a block over leaves; `None` where it is over a coarser level."""
    is_over_leaves = all(level is None or level.is_identity for level in block.levels)
    return axes_of(block) if is_over_leaves else None


def subsets_of(axes: Axes) -> list[Axes]:
    """All subsets, the empty one first."""
    return [s for n in range(len(axes) + 1) for s in itertools.combinations(axes, n)]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Effects that fit published cells best."""

    space: EffectSpace  # what the effects are of
    effects: Real  # their vector
    # For each entry one over the variance of its estimate, before centring, where effects are
    # uncoupled; none from dense factors.
    precisions: Real
    steps: int  # steps of conjugate gradients; zero where the estimate needs none
    # By how many standard errors a cell of the estimate can be off, under noise with these
    # precisions.
    off: float

    def fitted_cells(self) -> Real:
        """The published cells of the estimate."""
        return self.space.aggregate(self.effects)


_MOST_STEPS = 20_000


def estimate(space: EffectSpace, z: Real, w: Real, *, tolerance: float = 1e-7) -> Estimate:
    r"""Effects that minimise :math:`\sum_k w_k (z_k - \hat z_k)^2`.

    Promise: under noise with precisions `w` no other linear unbiased estimate of the published
    cells has a smaller variance. A cell may be off by `tolerance` standard errors. Precision zero
    leaves a cell out; infinite ones, of cells that are zero, are for spaces of few effects alone.
    """
    if not space.is_diagonal(w) and (dense := space.dense(w)) is not None:
        c = dense.nearest(z)
        gradient_left = space.adjoint(finite(w) * (z - space.aggregate(c)))
        return Estimate(space, c, np.zeros(0), 0, dense.distance(gradient_left))
    scale = space.precisions(w)
    inverse = pseudo_inverse(scale)
    right = space.adjoint(w * z)
    if space.is_diagonal(w):
        return Estimate(space, inverse * right, scale, 0, 0.0)

    def gradient(c: Real) -> Real:
        return right - space.adjoint(w * space.aggregate(c))

    least, c = math.sqrt(_least_share(space, w)), np.zeros(space.length)
    steps = conjugate_gradients(
        gradient,
        lambda p: space.adjoint(w * space.aggregate(p)),
        lambda r: inverse * r,
        c,
        tolerance * least * np.sqrt(np.maximum(scale, np.finfo(float).tiny) / space.length),
        _MOST_STEPS,
    )
    return Estimate(space, c, scale, steps, space.distance(gradient(c), w))


def finite(w: Real) -> Real:
    """Precisions without the infinite ones of cells that are zero."""
    return np.where(np.isinf(w), 0.0, w)


_EXACT_RATIO = 1e5  # gap between the weights of noisy values and of known ones


def known_from(w: Real) -> float:
    """Weights above this are those of values without noise, however many they are."""
    found = np.unique(w[w > 0])
    gaps = np.flatnonzero(found[1:] >= _EXACT_RATIO * found[:-1])
    return float(found[gaps[-1]]) if len(gaps) else math.inf


def _least_share(space: EffectSpace, w: Real) -> float:
    """The smallest weight of a block, relative to their mean; others are not in use."""
    parts = [w[space.design.slice_of(k)] for k in range(len(space.design.blocks))]
    return min((float(p[p > 0].min() / p.mean()) for p in parts if p.any()), default=1.0)


def variances(space: EffectSpace, precisions: Real) -> Real:
    """Variance of each published cell of an estimate with uncoupled effects.

    An effect S with precision p has the covariance 1/p times the product over its axes of
    I - 11'/d; a cell of margin A sees it divided by the categories of the axes outside S.
    """
    found = np.empty(space.design.n_published)
    for axes, blocks in space.margins_with_blocks.items():
        total = 0.0
        for s in subsets_of(axes):
            p = float(precisions[space.slice_of[s].start])
            share = math.prod(
                1 - 1 / space.sizes[a] if a in s else 1 / space.sizes[a] ** 2 for a in axes
            )
            total += share / p if share else 0.0
        for k in blocks:
            found[space.design.slice_of(k)] = total
    return found


def maximal(margins: Sequence[Axes]) -> list[Axes]:
    """Margins that lie in no other one."""
    sets = [set(axes) for axes in margins]
    return [axes for axes in margins if not any(set(axes) < other for other in sets)]
