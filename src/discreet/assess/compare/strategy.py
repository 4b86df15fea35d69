r"""Expected error of least squares on some margins, in closed form.

On a complete design whose levels have groups of equal size, all margins share eigenvectors: with
:math:`g_{bS}` the eigenvalue of block `b` on effect `S` (of rank :math:`r_S`) and precisions
:math:`w_b`, the sum of squared errors of target block `t` is

.. math:: \sum_S r_S\, g_{tS} \Big/ \sum_b w_b\, g_{bS},

effects of exact margins left out. Other designs are decomposed as dense matrices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.arrays import Array, Real, Whole
from discreet.design.formula import Term, resolve
from discreet.design.structured import StructuredDesign
from discreet.errors import DesignError
from discreet.solve.least_squares.basis import Effects

LARGEST_DENSE = 3_000
_TINY = 1e-9


@dataclass(frozen=True)
class Error:
    """Expected root mean square error of the published cells.

    Attributes:
      noise: The part that comes from noise.
      bias: The part that no chosen margin tells; 0 when all is determined, `None` when unknown.
    """

    noise: float
    bias: float | None

    @property
    def rmse(self) -> float:
        """Both parts together; the noise alone when the bias is unknown."""
        return math.hypot(self.noise, self.bias or 0.0)


class Workload:
    """The published cells of a design, and a wider design that holds all margins of all plans."""

    def __init__(self, design: StructuredDesign, terms: Sequence[Term]) -> None:
        self.wide = design.with_margins([*design.terms, *terms])
        self.target = self.columns(design.terms)

    def columns(self, terms: Sequence[Term]) -> Whole:
        """Published positions of margins in the wide design."""
        blocks = self.blocks(terms)
        parts = [np.arange(*self.wide.slice_of(k).indices(self.wide.n_published)) for k in blocks]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def blocks(self, terms: Sequence[Term]) -> list[int]:
        """Blocks of margins in the wide design."""
        wanted = {block.levels for block in resolve(self.wide.axes, terms)} if terms else set()
        return [k for k, block in enumerate(self.wide.blocks) if block.levels in wanted]

    @cached_property
    def representative(self) -> Whole:
        """For each published cell the first one with the same inner cells."""
        return self.wide.duplicates()

    @cached_property
    def effects(self) -> Effects | None:
        """The analysis of variance, where all margins share eigenvectors."""
        product = self.wide.product_form
        return None if product is None else Effects.of(product)

    @cached_property
    def matrix(self) -> Real:
        """The wide design as a dense matrix."""
        if self.wide.n_inner > LARGEST_DENSE:
            raise DesignError(
                f"the expected error of a design with declared zeros or groups of unequal size "
                f"needs at most {LARGEST_DENSE:,} inner cells, and this one has "
                f"{self.wide.n_inner:,}. Leave out levels or zeros, or compare by simulation."
            )
        return np.asarray(self.wide.matrix().toarray(), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Strategy:
    """Cells that get noise and cells that are kept exact.

    Attributes:
      workload: What is published in the end.
      noisy: Positions of the cells that get noise, each once.
      exact: Positions of the exact cells.
    """

    workload: Workload
    noisy: Whole
    exact: Whole

    @classmethod
    def of(cls, workload: Workload, perturbed: Sequence[Term], exact: Sequence[Term]) -> Strategy:
        """The cells of margins; cells that are the same count once, exact ones get no noise."""
        first = workload.representative
        kept = np.unique(first[workload.columns(exact)])
        noisy = np.setdiff1d(first[workload.columns(perturbed)], kept)
        return cls(workload, noisy, kept)

    @property
    def sensitivity(self) -> int:
        """In how many of the noisy cells one record counts."""
        return self.workload.wide.sensitivity(self.noisy)

    def error(self, variance: float, y: Real | None) -> Error:
        """Expected error with noise of this variance; the bias needs the inner counts `y`."""
        if not len(self.noisy):
            variance = 1.0  # nothing has noise, so its variance does not matter
        effects, weights = self.workload.effects, self._block_weights()
        if effects is None or weights is None:
            return self._dense_error(variance, y)
        noisy, exact = weights
        gains, ranks = effects.gains, effects.ranks.ravel()
        strength = noisy @ gains / variance
        known = exact @ gains > 0
        target = self._target_blocks @ gains
        open_ = ~known & (strength > 0)
        noise = float((ranks * target)[open_] @ (1 / strength[open_]))
        lost = ~known & (strength == 0) & (ranks * target > 0)
        return self._error(noise, bool(lost.any()), y, self._lost_part(noisy + exact, y))

    def _block_weights(self) -> tuple[Real, Real] | None:
        """For each block whether its cells are noisy and exact; `None` where only some are."""
        wide, found = self.workload.wide, []
        for cells in (self.noisy, self.exact):
            marks = np.zeros(wide.n_published)
            marks[cells] = 1.0
            sizes = np.diff(wide.offsets)
            each = np.bincount(wide.block_of_cell(), marks, minlength=len(sizes))
            if ((each > 0) & (each < sizes)).any():
                return None
            found.append(each / sizes)
        return found[0], found[1]

    @property
    def _target_blocks(self) -> Real:
        """The number of times each block is published."""
        wide = self.workload.wide
        of_cell = wide.block_of_cell()[self.workload.target]
        return np.bincount(np.unique(of_cell), minlength=len(wide.blocks)).astype(np.float64)

    def _lost_part(self, weights: Real, y: Real | None) -> Real | None:
        """What no chosen margin tells of the inner cells."""
        effects = self.workload.effects
        if y is None or effects is None:
            return None
        return effects.basis(weights).function(lambda v: (v <= 0).astype(np.float64))(y)

    def _dense_error(self, variance: float, y: Real | None) -> Error:
        X = self.workload.matrix
        free = _null_space(X[:, self.exact])
        noisy = free.T @ X[:, self.noisy]
        eigenvalues, vectors = np.linalg.eigh(noisy @ noisy.T / variance)
        some = eigenvalues > _TINY * max(1.0, float(eigenvalues.max(initial=0.0)))
        seen, unseen = free @ vectors[:, some], free @ vectors[:, ~some]
        targets = X[:, self.workload.target].T
        noise = float((((targets @ seen) ** 2) / eigenvalues[some]).sum())
        lost = bool(np.abs(targets @ unseen).max(initial=0.0) > _TINY * len(X))
        return self._error(noise, lost, y, None if y is None else unseen @ (unseen.T @ y))

    def _error(self, noise: float, lost: bool, y: Real | None, part: Real | None) -> Error:
        cells = len(self.workload.target)
        bias: float | None = 0.0
        if lost:
            bias = None if y is None or part is None else self._bias(part)
        return Error(math.sqrt(noise / cells), bias)

    def _bias(self, part: Real) -> float:
        missed: Array = self.workload.wide.aggregate(part)[self.workload.target]
        return float(np.sqrt((missed**2).mean()))


def _null_space(columns: Real) -> Real:
    """An orthonormal basis of the tables that have zeros in all these cells."""
    if not columns.shape[1]:
        return np.eye(len(columns))
    eigenvalues, vectors = np.linalg.eigh(columns @ columns.T)
    return np.asarray(vectors[:, eigenvalues <= _TINY * max(1.0, float(eigenvalues.max()))])
