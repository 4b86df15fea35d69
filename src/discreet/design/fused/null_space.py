r"""How a ridge answers where no table can: a preconditioner on the null space of :math:`X`.

For a ridge :math:`\rho V` the Hessian of a dual is :math:`\rho V + X^\top D X`. Where :math:`X`
vanishes the ridge stands alone, and conjugate gradients would crawl. `Contradictions` finds such
values in closed form: margins that disagree about an effect they share, those of coarser levels
among them. Where levels of a variable cross each other, it finds those of single categories, and
a cell of a coarser level, less the cells it is made of in the next finer margin, is answered to in
turn. What is left are margins of single categories, where the diagonal serves.

A published cell that is not used takes no part: with :math:`P` the preconditioner of all cells and
:math:`K` the unused ones, :math:`P - P_{\cdot K} P_{KK}^{-1} P_{K\cdot}` is that of the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, csr_array

from discreet.arrays import Real, Whole
from discreet.design.fused.contradictions import Contradictions
from discreet.design.product import ProductDesign
from discreet.design.support import Embedding

_SAME = 1e-10  # of the largest: answers of unused cells below this are rounding errors
# Where levels cross each other: sweeps between both kinds of values, fewer cost passes, more cost
# as much as they save; and their relaxation, below 2 so that every sweep is a preconditioner.
_SWEEPS, _STEP = 8, 1.8
_EVEN = 1.1  # below this a projection alone serves
_LEFT = 0.2  # part that an answer of the ridge may leave
MOST_UNUSED = 1_000
"""Unused cells beside used ones of their block, for which a dense matrix is inverted once."""


@dataclass(frozen=True, eq=False)
class NullSpace:
    """Preconditions a ridge plus a diagonal, nearly exact on values that no table has."""

    # From a design's published cells to those of the full crossing, whose null space this is; its
    # finest margins are those of single categories.
    embedding: Embedding[ProductDesign]
    # A weight for each block, one over what the ridge holds it with. Zero leaves a block out of a
    # design that has no coarser levels.
    weights: tuple[float, ...]
    # Other cells of the crossing that are not used.
    unused: Whole = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    _held: tuple[Real, Real] | None = field(default=None, init=False)

    @property
    def design(self) -> ProductDesign:
        """The full crossing."""
        return self.embedding.design

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
            *map(self.embedding.as_public_cells, (residual, inverse)),
            inverse,
        )
        if len(self.unused) == 0:
            return self.embedding.from_public_cells(self._answer(residual, inverse, ridge))
        among_unused = self._inverse_on_unused(diagonal, inverse, ridge)
        answer = self._answer(residual, inverse, ridge)
        residual = residual - self._on_unused(among_unused @ answer[self.unused])
        answer = self._answer(residual, inverse, ridge)
        held = self._on_unused(among_unused @ answer[self.unused])
        return self.embedding.from_public_cells(answer - self._answer(held, inverse, ridge))

    def _answer(self, residual: Real, inverse: Real, ridge: float) -> Real:
        """An approximate solution if all cells were used."""
        part = self._contradictions.part(residual)
        # Each projection costs a tenth of a pass: that of even weights may be the same one.
        is_even = self._even is self._contradictions
        even = part if is_even else self._even.part(residual)
        null = self._on_null_space(residual, part)
        return self._on_the_rest(residual - even, inverse) + null / ridge

    def _on_the_rest(self, consistent: Real, inverse: Real) -> Real:
        """The diagonal's answer to what some table has, less what no table can answer to.

        By a projection of even weights: with those of exact margins rounding errors of others grow.
        """
        metric = self._even_metric
        rest = self._is_flat * inverse * consistent
        return rest - metric * self._even.part(rest / metric)

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
            null.append(self._on_null_space(one, self._contradictions.part(one))[self.unused])
            consistent = one - self._even.part(one)
            rest.append(self._on_the_rest(consistent, np.ones_like(one))[self.unused])
        return np.array(null), np.array(rest), identity

    def _on_null_space(self, residual: Real, part: Real) -> Real:
        """The answer of the ridge alone to a residual with this part, nearly, for a ridge of one.

        The projection is that of another ridge, `uneven` as the groups of a level are; Chebyshev's
        iteration, which is the same back as forth, answers to the difference.
        """
        if self._coarse is not None:
            return self._answer_in_turn(residual, *self._coarse)
        if self._uneven <= _EVEN:
            return self._metric * part
        middle, half = (self._uneven + 1 / self._uneven) / 2, (self._uneven - 1 / self._uneven) / 2
        answer = step = self._metric * part / middle
        factor, twice = half / middle, 2 * middle / half
        for _ in range(self._sweeps):
            left = self._project(residual - self._variance * answer)
            last, factor = factor, 1 / (twice - factor)
            step = factor * last * step + (2 * factor / half) * left
            answer = answer + step
        return answer

    @property
    def _sweeps(self) -> int:
        """Steps after which what is left has fallen to its share."""
        square = self._uneven**2
        return math.ceil(math.acosh(1 / _LEFT) / math.acosh((square + 1) / (square - 1))) - 1

    def _answer_in_turn(
        self, residual: Real, differences: csr_array, sums: csr_array, scale: Real
    ) -> Real:
        """To both kinds of values where levels cross each other; the same back as forth."""
        # Begun and ended with differences, so that the sweeps are a symmetric operator, as
        # conjugate gradients need of a preconditioner.
        answer: Real = sums @ (scale * (differences @ residual))
        for _ in range(_SWEEPS):
            answer = answer + self._project(residual - self._variance * answer)
            left = residual - self._variance * answer
            answer = answer + sums @ (scale * (differences @ left))
        return answer

    def _project(self, residual: Real) -> Real:
        return self._metric * self._contradictions.part(residual)

    def on_gpu(self) -> NullSpace:
        """The same for vectors that lie on a graphics processor."""
        import cupy
        from cupyx.scipy.sparse import csr_matrix

        moved = NullSpace(self.embedding.on_gpu(cupy), self.weights, cupy.asarray(self.unused))
        if len(self.unused):
            moved.__dict__["_of_unused"] = tuple(map(cupy.asarray, self._of_unused))
        first = moved.__dict__["_contradictions"] = self._contradictions.on_gpu()
        is_even = self._even is self._contradictions
        moved.__dict__["_even"] = first if is_even else self._even.on_gpu()
        moved.__dict__["_uneven"] = self._uneven
        for name in ("_metric", "_even_metric", "_variance", "_is_flat"):
            moved.__dict__[name] = cupy.asarray(getattr(self, name))
        moved.__dict__["_coarse"] = self._coarse
        if self._coarse is not None:
            *matrices, scale = self._coarse
            moved.__dict__["_coarse"] = *map(csr_matrix, matrices), cupy.asarray(scale)
        return moved

    @cached_property
    def _contradictions(self) -> Contradictions:
        return Contradictions(self.design, self.weights)

    @cached_property
    def _even(self) -> Contradictions:
        is_even = len({weight for weight in self.weights if weight}) == 1
        even = tuple(float(weight > 0) for weight in self.weights)
        return self._contradictions if is_even else Contradictions(self.design, even)

    @cached_property
    def _even_metric(self) -> Real:
        metric: Real = self._even.metric
        return np.where(metric > 0, metric, 1.0)

    @cached_property
    def _metric(self) -> Real:
        return self._contradictions.metric

    @cached_property
    def _variance(self) -> Real:
        """The diagonal that the ridge has; zero for blocks that are left out."""
        weights = np.asarray(self.weights)[self.design.block_of_cell()]
        variance: Real = np.divide(1.0, weights, out=np.zeros_like(weights), where=weights > 0)
        return variance

    @cached_property
    def _uneven(self) -> float:
        """How many times the ridge is more, or less, than that of the projection."""
        ratio = (self._metric * self._variance)[self._metric > 0]
        return float(max(ratio.max(), 1 / ratio.min())) if len(ratio) else 1.0

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
        if self._contradictions.is_nested:
            return None
        flat = Contradictions.flat_blocks(self.design)
        pairs = [(k, s) for k, s in self.design.plan if k not in flat and s is not None]
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
        bound = abs(differences) @ (overlap * self._variance)
        return differences, differences.T.tocsr(), _STEP / bound
