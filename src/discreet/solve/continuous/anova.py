r"""The analysis-of-variance basis: functions of :math:`XWX^\top` by axis means.

On a complete design with nested levels the averages :math:`\Pi_T` over the cells of a block
:math:`T` commute, and their differences :math:`E_S = \bigotimes_a (\Pi_{a,S_a} - \Pi_{a,S_a-1})`
split the inner table into orthogonal effects. When the groups of every level are equally large
(flat variables always are), :math:`XWX^\top = \sum_S \lambda_S E_S` for weights that are constant
within blocks, with :math:`\lambda_S = \sum_{b \ge S} w_b N_b` and :math:`N_b` the inner cells in a
cell of block :math:`b`. With groups of unequal size the sum is the nearest operator of this form,
which is a good preconditioner.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.design.axis import Axis, Level
from discreet.design.base import Vector
from discreet.design.blocks import Block, Lattice
from discreet.design.product import ProductDesign

Spectrum = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Index = tuple[int, ...]


class AnovaBasis:
    r"""Effects of a complete design and their eigenvalues.

    Args:
      design: A complete design.
      chains: For each axis the levels in use, coarse to fine, beginning with `None`, the total.
      block_weights: The weight of each block.
    """

    def __init__(
        self,
        design: ProductDesign,
        chains: Sequence[Sequence[Level | None]],
        block_weights: NDArray[np.float64],
    ) -> None:
        self._chains = chains
        self._means = _lower_design(design, chains, _down_set(design.blocks, chains))
        self._sizes = self._means.column_sizes.astype(np.float64)
        blocks = [_index_of(block, chains) for block in design.blocks]
        gains = [_gains(axis, chain) for axis, chain in zip(design.axes, chains, strict=True)]
        shape = tuple(len(chain) for chain in chains)
        self.eigenvalues = _eigenvalues(shape, blocks, block_weights, gains)
        self._effects = [_index_of(block, chains) for block in self._means.blocks]
        self.is_exact = all(_equal_groups(chain) for chain in chains)

    @cached_property
    def ranks(self) -> NDArray[np.float64]:
        """Number of dimensions of each effect."""
        sizes = [np.array([_length(level) for level in chain]) for chain in self._chains]
        each = [np.diff(size, prepend=0) for size in sizes]
        ranks = each[0].astype(np.float64) if each else np.ones(())
        for more in each[1:]:
            ranks = np.multiply.outer(ranks, more)
        return ranks

    @property
    def smallest(self) -> float:
        """Smallest eigenvalue; zero when the published cells do not determine the inner ones."""
        return float(self.eigenvalues[self.ranks > 0].min())

    def function(self, f: Spectrum) -> Callable[[Vector], Vector]:
        r"""The operator :math:`f(XWX^\top)`, one `aggregate` and one `adjoint` for each use."""
        rest = float(f(np.zeros(1))[0])
        coefficients = self._coefficients(f(self.eigenvalues) - rest)

        def apply(r: Vector) -> Vector:
            smooth = self._means.adjoint(coefficients * self._means.aggregate(r))
            return smooth if rest == 0.0 else smooth + rest * r

        return apply

    def _coefficients(self, c: NDArray[np.float64]) -> NDArray[np.float64]:
        r"""Factors of the sums in :math:`\sum_S c_S E_S = \sum_T q_T \Pi_T`, cell by cell."""
        chosen = np.zeros_like(c)
        for effect in self._effects:
            chosen[effect] = c[effect]
        q = chosen
        for a in range(c.ndim):
            finer = np.roll(q, -1, axis=a)
            finer[(slice(None),) * a + (-1,)] = 0.0
            q = q - finer
        of_block = np.array([q[effect] for effect in self._effects])
        return of_block[self._means.block_of_cell()] / self._sizes


def chains_of(design: ProductDesign) -> list[list[Level | None]] | None:
    """For each axis its levels in use from the total to the finest, if they are nested."""
    chains = []
    for a in range(len(design.axes)):
        used = {level for block in design.blocks if (level := block.levels[a]) is not None}
        chain = sorted(used, key=len)
        if not _nested(chain, design.lattice):
            return None
        chains.append([None, *chain])
    return chains


def _nested(chain: Sequence[Level], lattice: Lattice) -> bool:
    if not all(level.covers_all for level in chain):
        return False
    return all(
        lattice.step(fine, coarse) is not None for coarse, fine in itertools.pairwise(chain)
    )


def _length(level: Level | None) -> int:
    return 1 if level is None else len(level)


def _index_of(block: Block, chains: Sequence[Sequence[Level | None]]) -> Index:
    return tuple(chain.index(level) for level, chain in zip(block.levels, chains, strict=True))


def _down_set(blocks: Sequence[Block], chains: Sequence[Sequence[Level | None]]) -> set[Index]:
    """The indices of all blocks that are sums of a published one."""
    found: set[Index] = set()
    for block in blocks:
        found.update(itertools.product(*(range(i + 1) for i in _index_of(block, chains))))
    return found


def _lower_design(
    design: ProductDesign, chains: Sequence[Sequence[Level | None]], indices: set[Index]
) -> ProductDesign:
    """A design that publishes the given blocks."""
    terms = []
    for index in sorted(indices):
        levels = [chain[i] for chain, i in zip(chains, index, strict=True)]
        terms.append(
            tuple(_name(axis, level) for axis, level in zip(design.axes, levels, strict=True) if level)
        )
    return ProductDesign(design.axes, terms)


def _name(axis: Axis, level: Level) -> str:
    return f"{axis.name}[{axis.short_name(level)}]"


def _group_sizes(axis: Axis, level: Level | None) -> NDArray[np.int64]:
    return np.array([len(axis)]) if level is None else np.bincount(level.group)


def _equal_groups(chain: Sequence[Level | None]) -> bool:
    return all(level is None or len(set(np.bincount(level.group).tolist())) == 1 for level in chain)


def _gains(axis: Axis, chain: Sequence[Level | None]) -> NDArray[np.float64]:
    r"""Mean eigenvalue of :math:`G_l`, the sum over groups of level l, on each step of the chain.

    Entry (s, l) is :math:`\mathrm{tr}(E_s G_l) / \mathrm{rank}(E_s)`, zero when s is finer than l.
    """
    n = len(chain)
    traces = np.zeros((n + 1, n))
    for s, l in itertools.product(range(n), range(n)):
        if s <= l:
            traces[s + 1, l] = _trace(axis, chain[s], chain[l])
    ranks = np.diff([_length(level) for level in chain], prepend=0)
    gains = np.diff(traces, axis=0) / np.maximum(ranks, 1)[:, None]
    return np.triu(gains)


def _trace(axis: Axis, coarse: Level | None, fine: Level | None) -> float:
    r""":math:`\mathrm{tr}(\Pi_s G_l) = \sum_g \sum_{h \subset g} |h|^2 / |g|`."""
    sizes = _group_sizes(axis, fine).astype(np.float64)
    of_leaf = np.zeros(len(axis), dtype=np.int64) if fine is None else fine.group
    host = np.zeros(len(sizes), dtype=np.int64)
    if coarse is not None:
        host[of_leaf] = coarse.group
    squares = np.bincount(host, weights=sizes**2)
    return float((squares / _group_sizes(axis, coarse)).sum())


def _eigenvalues(
    shape: tuple[int, ...],
    blocks: Sequence[Index],
    block_weights: NDArray[np.float64],
    gains: Sequence[NDArray[np.float64]],
) -> NDArray[np.float64]:
    total = np.zeros(shape)
    for index, w in zip(blocks, block_weights, strict=True):
        term: NDArray[np.float64] = np.full((), w)
        for gain, l in zip(gains, index, strict=True):
            term = np.multiply.outer(term, gain[:, l])
        total += term
    return total


def effects(design: ProductDesign) -> int:
    """How many effects a basis of this design would have at most."""
    return math.prod(1 + len({b.levels[a] for b in design.blocks}) for a in range(len(design.axes)))
