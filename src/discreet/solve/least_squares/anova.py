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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.design.axis import Axis, Level
from discreet.design.base import Vector
from discreet.design.blocks import Block, Lattice
from discreet.design.product import ProductDesign

Spectrum = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Index = tuple[int, ...]
Chain = Sequence[Level | None]

MOST_EFFECTS = 4_096


@dataclass(frozen=True, eq=False)
class Chains:
    """For each axis the levels in use, coarse to fine, beginning with `None`, the total."""

    of_axis: tuple[Chain, ...]

    @property
    def shape(self) -> Index:
        """Number of levels in use along each axis, the total included."""
        return tuple(len(chain) for chain in self.of_axis)

    @property
    def equal_groups(self) -> bool:
        """Whether the groups of each level are equally large."""
        used = (level for chain in self.of_axis for level in chain if level is not None)
        return all(len(set(np.bincount(level.group).tolist())) == 1 for level in used)

    def index(self, block: Block) -> Index:
        """A block by the places of its levels."""
        pairs = zip(self.of_axis, block.levels, strict=True)
        return tuple(chain.index(level) for chain, level in pairs)

    def levels(self, index: Index) -> tuple[Level | None, ...]:
        """The levels at an index."""
        return tuple(chain[i] for chain, i in zip(self.of_axis, index, strict=True))


def chains_of(design: ProductDesign) -> Chains | None:
    """The levels in use of a complete design, if they are nested on every axis."""
    found = []
    for a, axis in enumerate(design.axes):
        used = {level for block in design.blocks if (level := block.levels[a]) is not None}
        chain = sorted(used, key=len)
        if not _nested(chain, design.lattice) or not all(_has_name(axis, level) for level in chain):
            return None
        found.append((None, *chain))
    chains = Chains(tuple(found))
    return chains if math.prod(chains.shape) <= MOST_EFFECTS else None


def _nested(chain: Sequence[Level], lattice: Lattice) -> bool:
    if not all(level.covers_all for level in chain):
        return False
    steps = itertools.pairwise(chain)
    return all(lattice.step(fine, coarse) is not None for coarse, fine in steps)


def _name(axis: Axis, level: Level) -> str:
    return f"{axis.name}[{axis.short_name(level)}]"


def _has_name(axis: Axis, level: Level) -> bool:
    """Whether the level is the one its name stands for; hierarchies may share names."""
    return axis.level(axis.short_name(level)) is level


class AnovaBasis:
    """Effects of a complete design and their eigenvalues.

    Args:
      design: A complete design.
      chains: Its nested levels.
      block_weights: The weight of each block.
    """

    def __init__(
        self, design: ProductDesign, chains: Chains, block_weights: NDArray[np.float64]
    ) -> None:
        self.is_exact = chains.equal_groups
        blocks = [chains.index(block) for block in design.blocks]
        self._means = _publishing(design, chains, _down_set(blocks))
        self._effects = [chains.index(block) for block in self._means.blocks]
        gains = [_gains(axis, c) for axis, c in zip(design.axes, chains.of_axis, strict=True)]
        self.eigenvalues = _eigenvalues(chains.shape, blocks, block_weights, gains)
        self._ranks = _outer([_steps(chain) for chain in chains.of_axis])
        self._sizes = self._means.column_sizes.astype(np.float64)

    @property
    def smallest(self) -> float:
        """Smallest eigenvalue; zero when the published cells do not determine the inner ones."""
        finest = tuple(n - 1 for n in self.eigenvalues.shape)
        determined = finest in self._effects and self._ranks.sum() == self._means.n_inner
        return float(self.eigenvalues[self._ranks > 0].min()) if determined else 0.0

    def function(self, f: Spectrum) -> Callable[[Vector], Vector]:
        r"""The operator :math:`f(XWX^\top)`; each use costs an `aggregate` and an `adjoint`."""
        rest = float(f(np.zeros(1))[0])
        factors = self._factors(f(self.eigenvalues) - rest)

        def apply(r: Vector) -> Vector:
            smooth = self._means.adjoint(factors * self._means.aggregate(r))
            return smooth if rest == 0.0 else smooth + rest * r

        return apply

    def inverse(self) -> Callable[[Vector], Vector]:
        """The inverse, where there is one; in the precision of what it is applied to."""
        apply = self.function(pseudo_inverse)
        return lambda r: apply(r.astype(np.float64)).astype(r.dtype)

    def _factors(self, c: NDArray[np.float64]) -> NDArray[np.float64]:
        r"""Factors of the sums in :math:`\sum_S c_S E_S = \sum_T q_T \Pi_T`, cell by cell."""
        q = np.zeros_like(c)
        for effect in self._effects:
            q[effect] = c[effect]
        for a in range(q.ndim):
            finer = np.roll(q, -1, axis=a)
            finer[(slice(None),) * a + (-1,)] = 0.0
            q = q - finer
        of_block = np.array([q[effect] for effect in self._effects])
        return of_block[self._means.block_of_cell()] / self._sizes


def pseudo_inverse(eigenvalues: Vector) -> Vector:
    """One over what is not zero."""
    return np.divide(1.0, eigenvalues, out=np.zeros_like(eigenvalues), where=eigenvalues > 0)


def _down_set(blocks: Sequence[Index]) -> list[Index]:
    """The blocks and all that are sums of one of them."""
    found: set[Index] = set()
    for index in blocks:
        found.update(itertools.product(*(range(i + 1) for i in index)))
    return sorted(found)


def _publishing(design: ProductDesign, chains: Chains, indices: Sequence[Index]) -> ProductDesign:
    """A design on the same axes that publishes the given blocks."""
    terms = []
    for index in indices:
        pairs = zip(design.axes, chains.levels(index), strict=True)
        terms.append(tuple(_name(axis, level) for axis, level in pairs if level is not None))
    return ProductDesign(design.axes, terms)


def _length(level: Level | None) -> int:
    return 1 if level is None else len(level)


def _steps(chain: Chain) -> NDArray[np.float64]:
    """Dimensions that each level of a chain adds to the one before it."""
    return np.diff([float(_length(level)) for level in chain], prepend=0.0)


def _outer(factors: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    product: NDArray[np.float64] = np.ones(())
    for factor in factors:
        product = np.multiply.outer(product, factor)
    return product


def _group_sizes(axis: Axis, level: Level | None) -> NDArray[np.int64]:
    return np.array([len(axis)]) if level is None else np.bincount(level.group)


def _gains(axis: Axis, chain: Chain) -> NDArray[np.float64]:
    r"""Mean eigenvalue of :math:`G_l`, the sum over groups of level l, on each step of the chain.

    Entry (s, l) is :math:`\mathrm{tr}(E_s G_l) / \mathrm{rank}(E_s)`, zero when s is finer than l.
    """
    n = len(chain)
    traces = np.zeros((n + 1, n))
    for s, l in itertools.combinations_with_replacement(range(n), 2):
        traces[s + 1, l] = _trace(axis, chain[s], chain[l])
    return np.triu(np.diff(traces, axis=0) / np.maximum(_steps(chain), 1.0)[:, None])


def _trace(axis: Axis, coarse: Level | None, fine: Level | None) -> float:
    r""":math:`\mathrm{tr}(\Pi_s G_l) = \sum_g \sum_{h \subset g} |h|^2 / |g|`."""
    sizes = _group_sizes(axis, fine).astype(np.float64)
    host = np.zeros(len(sizes), dtype=np.int64)
    if fine is not None and coarse is not None:
        host[fine.group] = coarse.group
    squares = np.bincount(host, weights=sizes**2)
    return float((squares / _group_sizes(axis, coarse)).sum())


def _eigenvalues(
    shape: Index,
    blocks: Sequence[Index],
    block_weights: NDArray[np.float64],
    gains: Sequence[NDArray[np.float64]],
) -> NDArray[np.float64]:
    total = np.zeros(shape)
    for index, w in zip(blocks, block_weights, strict=True):
        total += w * _outer([gain[:, l] for gain, l in zip(gains, index, strict=True)])
    return total
