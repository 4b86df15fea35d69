r"""The part of published values that no table can answer.

Margins that share variables share effects: the mean of `a` in `a×b` is that in `a×c`. Where values
disagree about an effect, no table has them all; these disagreements are the null space of
:math:`X`. On flat axes it has a closed form by the analysis of variance of each margin: with
:math:`f_m` the effect in margin :math:`m` and :math:`w_m` the number of cells of :math:`m` that one
value of the effect is the mean of, the disagreement is

.. math:: f_m - \frac{1}{w_m} \frac{\sum_j u_j f_j}{\sum_j u_j / w_j},

where :math:`u_m` is the weight of the margin.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, csr_array

from discreet.arrays import Real, Whole
from discreet.design.product import ProductDesign

Effect = tuple[int, ...]
Slot = tuple[int, Effect]


@dataclass(frozen=True, eq=False)
class Contradictions:
    """The orthogonal projection onto published values that no table has.

    Cost: three sparse products, of two nonzeros for each published cell and shared effect.

    Attributes:
      design: A complete design; blocks at coarser levels are left out.
      weights: A weight for each block: the projection is orthogonal with these. Blocks of weight
        zero are left out: what the others disagree about does not depend on them.
    """

    design: ProductDesign
    weights: tuple[float, ...] = ()

    @staticmethod
    def flat_blocks(design: ProductDesign) -> set[int]:
        """The blocks at the level of single categories; others are left out."""
        return {
            k
            for k, block in enumerate(design.blocks)
            if all(level is None or level.is_identity for level in block.levels)
        }

    def part(self, values: Real) -> Real:
        """The contradictory part; values less this part are the margins of some table."""
        found: Real = self._members @ (self._disagreement @ (self._means @ values))
        return found

    def on_gpu(self) -> Contradictions:
        """The same projection of vectors that lie on a graphics processor."""
        from cupyx.scipy.sparse import csr_matrix

        moved = Contradictions(self.design, self.weights)
        for name in ("_members", "_disagreement", "_means"):
            moved.__dict__[name] = csr_matrix(getattr(self, name))
        return moved

    @cached_property
    def _means(self) -> csr_array:
        """Means × published cells."""
        return csr_array(self._members.T.multiply(1.0 / self._spreads[:, None]))

    @cached_property
    def _axes(self) -> list[Effect]:
        return [
            tuple(a for a, level in enumerate(block.levels) if level is not None)
            for block in self.design.blocks
        ]

    @cached_property
    def _holders(self) -> dict[Effect, list[int]]:
        """Effects that several margins hold, with these margins."""
        holders: dict[Effect, list[int]] = {}
        for k in sorted(self.flat_blocks(self.design)):
            for effect in _subsets(self._axes[k]):
                holders.setdefault(effect, []).append(k)
        return {effect: ks for effect, ks in holders.items() if len(ks) > 1}

    @cached_property
    def _starts(self) -> dict[Slot, int]:
        """Where the means for a shared effect in a margin start in the vector of all of them."""
        starts, place = {}, 0
        for effect, holders in self._holders.items():
            for k in holders:
                starts[k, effect] = place
                place += self._size(effect)
        return starts

    @cached_property
    def _spreads(self) -> Real:
        """For each mean the number of cells it is taken over."""
        return np.concatenate(
            [np.full(self._size(effect), self._spread(k, effect)) for k, effect in self._starts]
            or [np.zeros(0)]
        )

    @cached_property
    def _members(self) -> csr_array:
        """Published cells × means: which cell counts in which mean."""
        rows, columns = [], []
        for (k, effect), start in self._starts.items():
            place = self.design.slice_of(k)
            rows.append(np.arange(place.start, place.stop))
            columns.append(start + _positions(self._shape(self._axes[k]), self._axes[k], effect))
        return _sparse(rows, columns, None, (self.design.n_published, len(self._spreads)))

    @cached_property
    def _disagreement(self) -> csr_array:
        """Means × means: each effect less what the margins that hold it agree on.

        An effect is the alternating sum of the means over its subsets.
        """
        rows, columns, entries = [], [], []
        for effect, holders in self._holders.items():
            precision = sum(self._weight(k) / self._spread(k, effect) for k in holders)
            if precision == 0:
                continue
            for k, j in itertools.product(holders, holders):
                share = (k == j) - self._weight(j) / (self._spread(k, effect) * precision)
                for lower in _subsets(effect):
                    rows.append(self._starts[k, effect] + np.arange(self._size(effect)))
                    within = _positions(self._shape(effect), effect, lower)
                    columns.append(self._starts[j, lower] + within)
                    sign = (-1) ** (len(effect) - len(lower))
                    entries.append(np.full(len(within), sign * share))
        n = len(self._spreads)
        return _sparse(rows, columns, entries, (n, n))

    def _weight(self, k: int) -> float:
        return self.weights[k] if self.weights else 1.0

    def _shape(self, axes: Effect) -> tuple[int, ...]:
        return tuple(self.design.shape[a] for a in axes)

    def _size(self, effect: Effect) -> int:
        return math.prod(self._shape(effect))

    def _spread(self, k: int, effect: Effect) -> int:
        return self._size(tuple(a for a in self._axes[k] if a not in effect))


def _subsets(axes: Effect) -> list[Effect]:
    return [s for size in range(len(axes) + 1) for s in itertools.combinations(axes, size)]


def _positions(shape: tuple[int, ...], axes: Effect, effect: Effect) -> Whole:
    """For each cell over some axes the position of its cell over fewer of them."""
    index = np.indices(shape, sparse=True) if shape else ()
    place: Whole = np.zeros((1,) * len(shape), dtype=np.int64)
    for a, size, codes in zip(axes, shape, index, strict=True):
        if a in effect:
            place = place * size + codes
    return np.broadcast_to(place, shape).ravel()


def _sparse(
    rows: Sequence[Whole],
    columns: Sequence[Whole],
    entries: Sequence[Real] | None,
    shape: tuple[int, int],
) -> csr_array:
    if not rows:
        return csr_array(shape)
    at = (np.concatenate(rows), np.concatenate(columns))
    values = np.ones(len(at[0])) if entries is None else np.concatenate(entries)
    return coo_array((values, at), shape=shape).tocsr()
