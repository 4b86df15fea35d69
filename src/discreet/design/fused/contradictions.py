r"""The part of published values that no table has, in closed form.

The mean over a group of a coarser level is a mean of means of the finer one, so every margin is a
sum of effects: one for each choice of a level of each variable, what its means add to those of all
coarser choices. Margins that hold the same effect must agree about it, and that is all that a table
asks of them. Means are taken by masses of the groups; where these are as even as the groups' sizes
are, the projection is orthogonal, else it is in a metric near by.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, csr_array

from discreet.arrays import Real, Whole
from discreet.design.axis import Level
from discreet.design.product import ProductDesign

# A place among the levels of each axis, from the finest to the total.
Effect = tuple[int, ...]
# A margin and an effect in it.
Slot = tuple[int, Effect]


class LevelChain:
    """The levels at which a variable is published, from the finest to the total, with masses.

    A category's mass is the geometric mean of its share among all and of its share in a tree whose
    branches are alike, so that groups of unequal size unbalance neither fine levels nor coarse ones
    as much as they could.
    """

    def __init__(self, levels: Sequence[Level], n: int) -> None:
        ordered = sorted(levels, key=len, reverse=True)
        self.is_nested = all(
            len(np.unique(fine.group.astype(np.int64) * n + coarse.group)) == len(fine)
            for fine, coarse in itertools.pairwise(ordered)
        )
        self.levels = [*(ordered if self.is_nested else ordered[:1]), None]
        self.groups = [np.zeros(n, dtype=np.int32) if v is None else v.group for v in self.levels]
        self.sizes = [1 if level is None else len(level) for level in self.levels]

    def above(self, fine: int, coarse: int) -> Whole:
        """For each group of a level its group in a coarser one."""
        found = np.zeros(self.sizes[fine], dtype=np.int64)
        found[self.groups[fine]] = self.groups[coarse]
        return found

    @cached_property
    def masses(self) -> list[Real]:
        """The masses of the groups of each level; they sum to one."""
        share = np.ones(1)
        for a in range(len(self.groups) - 1, 0, -1):
            above = self.above(a - 1, a)
            share = (share / np.bincount(above))[above]
        within = np.bincount(self.groups[0])
        root = np.sqrt(share / within)[self.groups[0]]
        mass = root / root.sum()
        return [np.bincount(group, mass).astype(np.float64) for group in self.groups]


@dataclass(frozen=True, eq=False)
class Contradictions:
    """A projection onto published values that no table has.

    Cost: sparse products of some nonzeros for each published cell and variable.
    """

    # A complete design. Where levels of a variable cross each other, blocks at coarser levels are
    # left out.
    design: ProductDesign
    # A weight for each block: in the metric of these and of masses the projection is orthogonal.
    # Blocks of weight zero are left out: what others disagree about does not depend on them.
    weights: tuple[float, ...] = ()

    @staticmethod
    def flat_blocks(design: ProductDesign) -> set[int]:
        """The blocks at the level of single categories."""
        return {
            k
            for k, block in enumerate(design.blocks)
            if all(level is None or level.is_identity for level in block.levels)
        }

    @cached_property
    def is_nested(self) -> bool:
        """Whether each level of a variable lies within the next coarser one."""
        return all(chain.is_nested for chain in self._chains)

    @cached_property
    def metric(self) -> Real:
        """The weight that each published cell has in the projection."""
        found = np.zeros(self.design.n_published)
        for k, precision in self._precisions.items():
            found[self.design.slice_of(k)] = precision / self._mass(self._place(k))
        return found

    def part(self, values: Real) -> Real:
        """The contradictory part; values less this part are the margins of some table."""
        matrices, mass = self._steps
        for matrix in matrices:
            values = matrix @ values
        found: Real = mass * values
        return found

    def on_gpu(self) -> Contradictions:
        """The same projection of vectors that lie on a graphics processor."""
        import cupy
        from cupyx.scipy.sparse import csr_matrix

        moved, (matrices, mass) = Contradictions(self.design, self.weights), self._steps
        moved.__dict__["_steps"] = [csr_matrix(matrix) for matrix in matrices], cupy.asarray(mass)
        return moved

    @cached_property
    def _chains(self) -> list[LevelChain]:
        """For each axis the levels in use."""
        chains = []
        for a, n in enumerate(self.design.shape):
            used = dict.fromkeys(block.levels[a] for block in self.design.blocks)
            chains.append(LevelChain([level for level in used if level is not None], n))
        return chains

    @cached_property
    def _precisions(self) -> dict[int, float]:
        """The blocks that are looked at; what the square of an even margin's means weighs."""
        known = list(range(len(self.design.blocks)))
        if not self.is_nested:
            known = sorted(self.flat_blocks(self.design))
        weights = {k: self.weights[k] if self.weights else 1.0 for k in known}
        return {k: w * _middle(self._mass(self._place(k))) for k, w in weights.items() if w}

    def _place(self, k: int) -> Effect:
        """A margin's own levels."""
        levels = zip(self._chains, self.design.blocks[k].levels, strict=True)
        return tuple(chain.levels.index(level) for chain, level in levels)

    def _mass(self, effect: Effect) -> Real:
        """The masses of the cells of some levels."""
        mass = np.ones(1)
        for chain, place in zip(self._chains, effect, strict=True):
            mass = np.multiply.outer(mass, chain.masses[place]).ravel()
        return mass

    def _size(self, effect: Effect) -> int:
        return math.prod(c.sizes[v] for c, v in zip(self._chains, effect, strict=True))

    def _above(self, fine: Effect, coarse: Effect) -> Whole:
        """For each cell of some levels the position of its cell at coarser ones."""
        place = np.zeros(1, dtype=np.int64)
        for chain, a, b in zip(self._chains, fine, coarse, strict=True):
            place = np.add.outer(place * chain.sizes[b], chain.above(a, b)).ravel()
        return place

    @cached_property
    def _holders(self) -> dict[Effect, list[int]]:
        """Effects that several margins hold, with these margins."""
        holders: dict[Effect, list[int]] = {}
        for k in self._precisions:
            coarser = zip(self._place(k), self._chains, strict=True)
            for effect in itertools.product(*(range(v, len(c.sizes)) for v, c in coarser)):
                holders.setdefault(effect, []).append(k)
        return {effect: ks for effect, ks in holders.items() if len(ks) > 1}

    @cached_property
    def _steps(self) -> tuple[list[csr_array], Real]:
        """Matrices to apply in turn, and the masses of the published cells.

        Values are summed along one variable first, and these few sums further: so a large margin is
        read once for each of its variables, however many levels these have.
        """
        first, shared = _Places(self._size), _Places(self._size)
        into, among = _Entries(), _Entries()
        for effect, holders in self._holders.items():
            for k in holders:
                middle, own = self._halfway(self._place(k), effect), self._place(k)
                if (k, middle) not in first:
                    cells = np.arange(self.design.offsets[k], self.design.offsets[k + 1])
                    into.add(first[k, middle] + self._above(own, middle), cells)
                below = self._above(middle, effect)
                among.add(shared[k, effect] + below, first[k, middle] + np.arange(len(below)))
        sums = into.matrix(first.size, self.design.n_published)
        more = among.matrix(shared.size, first.size)
        back = [more.T.tocsr(), sums.T.tocsr()]
        mass = np.zeros(self.design.n_published)
        for k in self._precisions:
            mass[self.design.slice_of(k)] = self._mass(self._place(k))
        return [sums, more, self._disagreement(shared), *back], mass

    def _halfway(self, own: Effect, effect: Effect) -> Effect:
        """The smallest sums of a margin along one variable, one level up, that hold an effect."""
        raised = (
            (*own[:a], own[a] + 1, *own[a + 1 :]) for a in range(len(own)) if own[a] < effect[a]
        )
        return min(raised, key=self._size, default=own)

    def _disagreement(self, shared: _Places) -> csr_array:
        """Sums × sums: each effect less what the margins that hold it agree on.

        An effect is the alternating sum of means at its levels and the next coarser ones.
        """
        entries, last = _Entries(), [len(chain.sizes) - 1 for chain in self._chains]
        for effect, holders in self._holders.items():
            total = sum(self._precisions[k] for k in holders)
            steps = [(v,) if v == end else (v, v + 1) for v, end in zip(effect, last, strict=True)]
            for lower in itertools.product(*steps):
                above, mass = self._above(effect, lower), self._mass(lower)
                sign = (-1) ** (sum(lower) - sum(effect))
                for k, j in itertools.product(holders, holders):
                    share = (k == j) - self._precisions[j] / total
                    rows = shared[k, effect] + np.arange(len(above))
                    entries.add(rows, shared[j, lower] + above, sign * share / mass[above])
        return entries.matrix(shared.size, shared.size)


class _Places(dict[Slot, int]):
    """Where the sums of a margin for an effect begin in the vector of all of them."""

    def __init__(self, size_of: Callable[[Effect], int]) -> None:
        self.size, self._size_of = 0, size_of

    def __missing__(self, slot: Slot) -> int:
        self[slot], self.size = self.size, self.size + self._size_of(slot[1])
        return self[slot]


class _Entries:
    """Entries of a sparse matrix, ones unless given."""

    def __init__(self) -> None:
        self._parts: list[tuple[Whole, Whole, Real]] = []

    def add(self, rows: Whole, columns: Whole, values: Real | None = None) -> None:
        """Add entries."""
        self._parts.append((rows, columns, np.ones(len(rows)) if values is None else values))

    def matrix(self, n: int, m: int) -> csr_array:
        """The matrix; entries of one place are summed."""
        if not self._parts:
            return csr_array((n, m))
        rows, columns, values = map(np.concatenate, zip(*self._parts, strict=True))
        return coo_array((values, (rows, columns)), shape=(n, m)).tocsr()


def _middle(mass: Real) -> float:
    return math.sqrt(float(mass.min()) * float(mass.max()))
