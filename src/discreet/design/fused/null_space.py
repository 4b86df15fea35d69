r"""How a ridge answers where no table can: a preconditioner on the null space of :math:`X`.

For a ridge :math:`\rho V` the Hessian of a dual is :math:`\rho V + X^\top D X`. Where :math:`X`
vanishes the ridge stands alone, and conjugate gradients would crawl. Two kinds of values have no
table: margins of single categories that disagree about an effect they share, which `Contradictions`
finds in closed form; and a cell of a coarser level, less the cells it is made of in the next finer
margin. What is left are margins of single categories, where the diagonal serves.

A published cell that is not used takes no part: with :math:`P` the preconditioner of all cells and
:math:`K` the unused ones, :math:`P - P_{\cdot K} P_{KK}^{-1} P_{K\cdot}` is that of the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, csr_array

from discreet.arrays import Real, Whole
from discreet.design.fused.contradictions import Contradictions
from discreet.design.product import ProductDesign
from discreet.design.support import Lift

_SAME = 1e-10  # of the largest: answers of unused cells below this are rounding errors
_SWEEPS = 8  # between both kinds of values; fewer cost passes, more cost as much as they save
_STEP = 1.8  # relaxation; below 2 every sweep stays a preconditioner
MOST_UNUSED = 1_000
"""Unused cells beside used ones of their block, for which a dense matrix is inverted once."""


@dataclass(frozen=True, eq=False)
class NullSpace:
    """Preconditions a ridge plus a diagonal, nearly exact on values that no table has.

    Attributes:
      lift: From a design's published cells to those of the full crossing, whose null space this
        is; its finest margins are those of single categories.
      weights: A weight for each block, one over what the ridge holds it with. Zero leaves a block
        out of a design that has no coarser levels.
      unused: Other cells of the crossing that are not used.
    """

    lift: Lift[ProductDesign]
    weights: tuple[float, ...]
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

    def preconditioned(self, residual: Real, inverse: Real, ridge: float) -> Real:
        """An approximate solution.

        Unused cells are held on both sides: so it stays positive though their hold is not exact.

        Args:
          residual: The right-hand side.
          inverse: One over the diagonal of the Hessian.
          ridge: Factor of the ridge.
        """
        residual, inverse, diagonal = (*map(self.lift.widened, (residual, inverse)), inverse)
        if len(self.unused) == 0:
            return self.lift.taken(self._answer(residual, inverse, ridge))
        among_unused = self._inverse_on_unused(diagonal, inverse, ridge)
        answer = self._answer(residual, inverse, ridge)
        residual = residual - self._on_unused(among_unused @ answer[self.unused])
        answer = self._answer(residual, inverse, ridge)
        held = self._on_unused(among_unused @ answer[self.unused])
        return self.lift.taken(answer - self._answer(held, inverse, ridge))

    def _answer(self, residual: Real, inverse: Real, ridge: float) -> Real:
        """An approximate solution if all cells were used."""
        rest = self._is_flat * inverse * (residual - self._plain.part(residual))
        return rest - self._plain.part(rest) + self._on_null_space(residual) / ridge

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
            null.append(self._on_null_space(one)[self.unused])
            rest.append((one - self._plain.part(one))[self.unused])
        return np.array(null), np.array(rest), identity

    def _on_null_space(self, residual: Real) -> Real:
        """The answer of the ridge alone: both kinds of values in turn, the same back as forth."""
        if self._coarse is None:
            return self._answer_to_contradictions(residual)
        answer = self._answer_to_differences(residual)
        for _ in range(_SWEEPS):
            left = residual - answer / self._weight_of_cell
            answer = answer + self._answer_to_contradictions(left)
            left = residual - answer / self._weight_of_cell
            answer = answer + self._answer_to_differences(left)
        return answer

    def _answer_to_contradictions(self, residual: Real) -> Real:
        return self._weight_of_cell * self._weighted.part(residual)

    def _answer_to_differences(self, residual: Real) -> Real:
        if self._coarse is None:
            return np.zeros_like(residual)
        differences, sums, scale = self._coarse
        answer: Real = sums @ (scale * (differences @ residual))
        return answer

    def on_gpu(self) -> NullSpace:
        """The same for vectors that lie on a graphics processor."""
        import cupy
        from cupyx.scipy.sparse import csr_matrix

        moved = NullSpace(self.lift.on_gpu(cupy), self.weights, cupy.asarray(self.unused))
        if len(self.unused):
            moved.__dict__["_of_unused"] = tuple(map(cupy.asarray, self._of_unused))
        moved.__dict__["_plain"] = self._plain.on_gpu()
        moved.__dict__["_weighted"] = self._weighted.on_gpu()
        for name in ("_weight_of_cell", "_is_flat"):
            moved.__dict__[name] = cupy.asarray(getattr(self, name))
        if self._coarse is not None:
            differences, sums, scale = self._coarse
            matrices = csr_matrix(differences), csr_matrix(sums)
            moved.__dict__["_coarse"] = *matrices, cupy.asarray(scale)
        else:
            moved.__dict__["_coarse"] = None
        return moved

    @cached_property
    def _plain(self) -> Contradictions:
        return Contradictions(self.design, tuple(float(weight > 0) for weight in self.weights))

    @cached_property
    def _weighted(self) -> Contradictions:
        is_even = len({weight for weight in self.weights if weight}) == 1
        return self._plain if is_even else Contradictions(self.design, self.weights)

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
            parts, above = self.design.coarsened(source, k)
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
