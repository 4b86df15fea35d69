r"""How a ridge answers where no table can: a preconditioner on the null space of :math:`X`.

For a ridge :math:`\rho V` the Hessian of a dual is :math:`\rho V + X^\top D X`. Where :math:`X`
vanishes the ridge stands alone, and conjugate gradients would crawl. Two kinds of values have no
table: margins of single categories that disagree about an effect they share, which `Contradictions`
finds in closed form; and a cell of a coarser level, less the cells it is made of in the next finer
margin. With levels a sparse factor, made once, answers to both kinds together; where it would be
large, both are answered to in turn. What is left are margins of single categories, where the
diagonal serves.

A published cell that is not used takes no part: with :math:`P` the preconditioner of all cells and
:math:`K` the unused ones, :math:`P - P_{\cdot K} P_{KK}^{-1} P_{K\cdot}` is that of the others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array, vstack
from scipy.sparse.linalg import splu

from discreet.arrays import Real, Whole
from discreet.design.product import ProductDesign
from discreet.design.support import Lift

_SAME = 1e-10  # of the largest: answers of unused cells below this are rounding errors
_SWEEPS = 8  # between both kinds of values; fewer cost passes, more cost as much as they save
_STEP = 1.8  # relaxation; below 2 every sweep stays a preconditioner
# Published cells up to which a factor is made. At 300,000 it has 2.4 million entries and takes
# 0.7 s, at 1.5 million 16 million entries, 20 s and more than a gigabyte.
_MOST_FACTORED = 500_000
# Lift of the diagonal of differences, relative to it: some follow from others.
_LIFT = 1e-10
MOST_UNUSED = 1_000
"""Unused cells beside used ones of their block, for which a dense matrix is inverted once."""


@dataclass(frozen=True, eq=False)
class NullSpace:
    """Preconditions a ridge plus a diagonal, nearly exact on values that no table has."""

    # From a design's published cells to those of the full crossing, whose null space this is; its
    # finest margins are those of single categories.
    lift: Lift[ProductDesign]
    # A weight for each block, one over what the ridge holds it with. Zero leaves a block out of a
    # design that has no coarser levels.
    weights: tuple[float, ...]
    # Other cells of the crossing that are not used.
    unused: Whole = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    _held: tuple[Real, Real] | None = field(default=None, init=False)

    @property
    def design(self) -> ProductDesign:
        """The full crossing."""
        return self.lift.design

    @staticmethod
    def is_known(design: ProductDesign) -> bool:
        """Whether every block is one of single categories or summed from such a block."""
        flat, used = Contradictions.flat_blocks(design), (block.levels for block in design.blocks)
        whole = all(level is None or level.covers_all for levels in used for level in levels)
        return whole and all(k in flat for k in design.root_blocks)

    def precondition(self, residual: Real, inverse: Real, ridge: float) -> Real:
        """An approximate solution.

        Unused cells are held on both sides: so it stays positive though their hold is not exact.

        Args:
          residual: The right-hand side.
          inverse: One over the diagonal of the Hessian.
          ridge: Factor of the ridge.
        """
        residual, inverse, diagonal = (
            *map(self.lift.as_public_cells, (residual, inverse)),
            inverse,
        )
        if len(self.unused) == 0:
            return self.lift.from_public_cells(self._answer(residual, inverse, ridge))
        among_unused = self._inverse_on_unused(diagonal, inverse, ridge)
        answer = self._answer(residual, inverse, ridge)
        residual = residual - self._on_unused(among_unused @ answer[self.unused])
        answer = self._answer(residual, inverse, ridge)
        held = self._on_unused(among_unused @ answer[self.unused])
        return self.lift.from_public_cells(answer - self._answer(held, inverse, ridge))

    def _answer(self, residual: Real, inverse: Real, ridge: float) -> Real:
        """An approximate solution if all cells were used."""
        null = self._on_null_space(residual)
        return self._on_the_rest(residual, null, inverse) + null / ridge

    def _on_the_rest(self, residual: Real, null: Real, inverse: Real) -> Real:
        """The diagonal's answer, less what the ridge alone answers to."""
        if self._factor is None:
            rest = self._is_flat * inverse * (residual - self._plain_projection.part(residual))
            return rest - self._plain_projection.part(rest)
        # Orthogonal to the null space in the metric of the ridge, which then couples them nowhere:
        # by the plain projection conjugate gradients took a third more steps.
        rest = self._is_flat * inverse * (residual - null / self._weight_of_cell)
        return rest - self._on_null_space(rest / self._weight_of_cell)

    def _on_unused(self, values: Real) -> Real:
        found = np.zeros_like(values, shape=self.design.n_published)
        found[self.unused] = values
        return found

    def _inverse_on_unused(self, diagonal: Real, inverse: Real, ridge: float) -> Real:
        r"""The inverse :math:`P_{KK}^{-1}` of the answers of unused cells, nearly.

        Kept for one diagonal; a factor on both sides stands in for the diagonal inside.
        """
        if self._held is None or self._held[0] is not diagonal:
            null, rest, identity = self._of_unused
            scale = np.sqrt(self._is_flat * inverse)[self.unused]
            answers = null / ridge + scale[:, None] * rest * scale[None, :]
            answers = answers + _SAME * answers.max() * identity
            self.__dict__["_held"] = diagonal, np.linalg.inv(answers)
        found: Real = self.__dict__["_held"][1]
        return found

    @cached_property
    def _of_unused(self) -> tuple[Real, Real, Real]:
        """Answers of unused cells to a one in each: by the ridge, of the rest; and the identity."""
        null, rest, identity = [], [], np.eye(len(self.unused))
        for row in identity:
            one = self._on_unused(row)
            of_one = self._on_null_space(one)
            null.append(of_one[self.unused])
            rest.append(self._on_the_rest(one, of_one, np.ones_like(one))[self.unused])
        return np.array(null), np.array(rest), identity

    def _on_null_space(self, residual: Real) -> Real:
        """The answer of the ridge alone, for a ridge of one; in turns the same back as forth."""
        if self._coarse is None:
            return self._answer_to_contradictions(residual)
        if self._factor is not None:
            rows, columns, factor = self._factor
            return np.asarray(columns @ factor.solve(rows @ residual))
        differences, sums, scale = self._coarse
        # Begun and ended with differences, so that the sweeps are a symmetric operator, as
        # conjugate gradients need of a preconditioner.
        answer: Real = sums @ (scale * (differences @ residual))
        for _ in range(_SWEEPS):
            left = residual - answer / self._weight_of_cell
            answer = answer + self._answer_to_contradictions(left)
            left = residual - answer / self._weight_of_cell
            answer = answer + sums @ (scale * (differences @ left))
        return answer

    def _answer_to_contradictions(self, residual: Real) -> Real:
        return self._weight_of_cell * self._weighted_projection.part(residual)

    def on_gpu(self) -> NullSpace:
        """The same for vectors that lie on a graphics processor."""
        import cupy
        from cupyx.scipy.sparse import csr_matrix

        # A factor on the processor takes 50 ms for 1.5 million published cells, a step on the card
        # a fifth of that: there both kinds of values are answered to in turn.
        in_turn = NullSpace(self.lift, self.weights, self.unused)
        moved = NullSpace(self.lift.on_gpu(cupy), self.weights, cupy.asarray(self.unused))
        in_turn.__dict__["_factor"] = moved.__dict__["_factor"] = None
        if len(self.unused):
            moved.__dict__["_of_unused"] = tuple(map(cupy.asarray, in_turn._of_unused))
        for name in ("_plain_projection", "_weighted_projection"):
            moved.__dict__[name] = getattr(self, name).on_gpu()
        for name in ("_weight_of_cell", "_is_flat"):
            moved.__dict__[name] = cupy.asarray(getattr(self, name))
        moved.__dict__["_coarse"] = self._coarse
        if self._coarse is not None:
            *matrices, scale = self._coarse
            moved.__dict__["_coarse"] = *map(csr_matrix, matrices), cupy.asarray(scale)
        return moved

    @cached_property
    def _plain_projection(self) -> Contradictions:
        return Contradictions(self.design, tuple(float(weight > 0) for weight in self.weights))

    @cached_property
    def _weighted_projection(self) -> Contradictions:
        is_even = len({weight for weight in self.weights if weight}) == 1
        return self._plain_projection if is_even else Contradictions(self.design, self.weights)

    @cached_property
    def _weight_of_cell(self) -> Real:
        return np.asarray(self.weights)[self.design.block_of_cell()]

    @cached_property
    def _is_flat(self) -> Real:
        """One for the cells of blocks of single categories, zero for others."""
        flat = list(Contradictions.flat_blocks(self.design))
        return np.isin(self.design.block_of_cell(), flat).astype(np.float64)

    @cached_property
    def _coarse(self) -> tuple[csr_array, csr_array, Real] | None:
        """Coarser cells × published cells: a cell less its parts; the transpose; step lengths.

        With row sums of what the ridge makes of these differences no step is too long.
        """
        flat = Contradictions.flat_blocks(self.design)
        pairs = [(k, s) for k, s in self.design.plan if k not in flat and s is not None]
        if not pairs:
            return None
        rows, columns, entries, start = [], [], [], 0
        for k, source in pairs:
            size = self.design.blocks[k].size
            parts, above = self.design.block_coarsening(source, k)
            rows += [start + np.arange(size), start + above - self.design.offsets[k]]
            columns += [int(self.design.offsets[k]) + np.arange(size), parts]
            entries += [np.ones(size), -np.ones(len(parts))]
            start += size
        at = (np.concatenate(rows), np.concatenate(columns))
        shape = (start, self.design.n_published)
        differences = coo_array((np.concatenate(entries), at), shape=shape).tocsr()
        overlap = abs(differences).T @ np.ones(start)
        bound = abs(differences) @ (overlap / self._weight_of_cell)
        return differences, differences.T.tocsr(), _STEP / bound

    @cached_property
    def _factor(self) -> tuple[csr_array, csr_array, Any] | None:
        r"""Differences that no table has × published cells, `E`; the transpose; a factor.

        The ridge alone answers to a residual `r` by :math:`E^\top(EVE^\top)^{-1}Er`. Absent where
        no block is of a coarser level, or the factor would be large.
        """
        if self._coarse is None or self.design.n_published > _MOST_FACTORED:
            return None
        rows, columns, entries, start = list[Whole](), list[Whole](), list[Real](), 0
        for effect, a, b in self._plain_projection.shared_sums():
            for k, sign in ((a, 1.0), (b, -1.0)):
                place = self.design.slice_of(k)
                rows.append(start + self._plain_projection.positions(k, effect))
                columns.append(np.arange(place.start, place.stop))
                entries.append(np.full(len(columns[-1]), sign))
            start = int(rows[-1].max()) + 1
        shared = _sparse(rows, columns, entries, (start, self.design.n_published))
        differences = vstack([self._coarse[0], shared]).tocsr()
        products = differences @ diags_array(1.0 / self._weight_of_cell) @ differences.T
        lifted = (products + diags_array(_LIFT * products.diagonal())).tocsc()
        # A symmetric matrix without pivots: its order by minimum degree keeps the factor sparse.
        factor = splu(
            lifted,
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        return differences, differences.T.tocsr(), factor


Effect = tuple[int, ...]
Slot = tuple[int, Effect]


@dataclass(frozen=True, eq=False)
class Contradictions:
    """The orthogonal projection onto published values that no table has.

    Cost: three sparse products, of two nonzeros for each published cell and shared effect.
    """

    design: ProductDesign  # A complete design; blocks at coarser levels are left out
    # A weight for each block: the projection is orthogonal with these. Blocks of weight zero are
    # left out: what the others disagree about does not depend on them.
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

    def shared_sums(self) -> Iterator[tuple[Effect, int, int]]:
        """Sums over an effect in two margins that must be the same; all others follow from them."""
        between = itertools.combinations(sorted(self.flat_blocks(self.design)), 2)
        shared = {tuple(a for a in self._axes[k] if a in self._axes[j]) for k, j in between}
        found: list[tuple[Effect, int, int]] = []
        # Larger effects first: margins that agree about one agree about its parts. Sums over a
        # whole margin, which fill the factor, are so rarely needed.
        for effect in sorted(shared, key=lambda e: (-len(e), e)):
            tied = {k: k for k in self._holders[effect]}
            for larger, a, b in found:
                if set(effect) < set(larger):
                    _tie(tied, a, b)
            for a, b in itertools.pairwise(self._holders[effect]):
                if _tie(tied, a, b):
                    found.append((effect, a, b))
        return iter(found)

    def positions(self, k: int, effect: Effect) -> Whole:
        """For each cell of a margin the position of its sum over an effect."""
        return _positions(self._shape(self._axes[k]), self._axes[k], effect)

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
            columns.append(start + self.positions(k, effect))
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


def _tie(tied: dict[int, int], a: int, b: int) -> bool:
    """Join the parts of two; false where they are one already."""
    one, other = tied[a], tied[b]
    tied.update({k: one for k, part in tied.items() if part == other})
    return one != other


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
