r"""What kind of design this is, found once and handed to the fitters.

The fitters need functions of :math:`XWX^\top`. On complete designs these are cheap in a basis that
follows the axes; which basis there is depends on the levels that are published, and is decided
here.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design, Vector
from discreet.design.product import LARGEST_DENSE, ProductDesign
from discreet.solve.least_squares.anova import AnovaBasis, Chains, Spectrum, chains_of
from discreet.solve.least_squares.completion import Completion, block_means
from discreet.solve.least_squares.crossing import CrossingBasis, level_weights_of


class Kind(enum.Enum):
    """The structure of a design; the value says what it is good for."""

    anova = "complete, levels of equal groups: solved by axis means"
    crossing = "complete, every combination of levels published: solved axis by axis"
    nested = "complete, nested levels: axis means as a preconditioner"
    complete = "complete, levels that are not nested: conjugate gradients on axis sums"
    sparse = "chosen inner cells: conjugate gradients on index arrays"
    general = "a general matrix: conjugate gradients on its rows"


class Basis(Protocol):
    r"""A basis in which :math:`XWX^\top` is diagonal, or nearly so."""

    is_exact: bool

    @property
    def smallest(self) -> float:
        """Smallest eigenvalue."""

    def function(self, f: Spectrum) -> Callable[[Vector], Vector]:
        r"""The operator :math:`f(XWX^\top)`."""

    def inverse(self) -> Callable[[Vector], Vector]:
        r"""The inverse of :math:`XWX^\top` where it has one, in the precision of its argument."""


@dataclass(frozen=True, eq=False)
class Structure:
    """A design with what is known about it.

    Attributes:
      design: The design.
      kind: What it is.
      chains: Nested levels of each axis, coarse to fine, where the design is complete and has them.
    """

    design: Design
    kind: Kind
    chains: Chains | None = None
    _bases: dict[bytes, Basis | None] = field(default_factory=dict, repr=False)

    def basis(self, weights: NDArray[np.float64]) -> Basis | None:
        r"""The basis for :math:`XWX^\top`; where weights vary within blocks, for their means.

        The last one is kept, so many right-hand sides with the same weights share it.
        """
        product = self.design.product_form
        if product is None or self.kind is Kind.complete:
            return None
        of_block = block_means(product, weights)
        key = of_block.tobytes()
        if key not in self._bases:
            self._bases.clear()
            self._bases[key] = self._make_basis(product, of_block)
        return self._bases[key]

    def _make_basis(self, design: ProductDesign, of_block: NDArray[np.float64]) -> Basis | None:
        if self.kind is Kind.crossing:
            level_weights = level_weights_of(design, of_block)
            if level_weights is not None:
                return CrossingBasis(design, level_weights)
        return None if self.chains is None else AnovaBasis(design, self.chains, of_block)

    def is_exact_for(self, weights: NDArray[np.float64]) -> bool:
        r"""Whether the basis diagonalises :math:`XWX^\top` itself."""
        basis = self.basis(weights)
        return basis is not None and basis.is_exact and self.constant_within_blocks(weights)

    def constant_within_blocks(self, weights: NDArray[np.float64]) -> bool:
        """Whether every block has one weight."""
        design = self.design.over_variables
        if design is None:
            return False
        return bool((weights == weights[design.offsets[:-1]][design.block_of_cell()]).all())

    @cached_property
    def completed(self) -> tuple[Completion, Structure] | None:
        """The complete design around chosen inner cells, and its structure."""
        completion = Completion.of(self.design)
        return None if completion is None else (completion, analyse(completion.full))

    def sees_every_cell(self, weights: NDArray[np.float64]) -> bool:
        """Whether every inner cell is published, so that a fit is unique."""
        seen = np.where(self.single, weights, 0.0)
        return bool(self.design.adjoint(seen).min(initial=1.0) > 0)

    @cached_property
    def single(self) -> NDArray[np.bool_]:
        """Which published cells consist of one inner cell."""
        single: NDArray[np.bool_] = self.design.column_sizes == 1
        return single


def analyse(design: Design) -> Structure:
    """Find the structure of a design.

    Cost: a few operations for each block and level; nothing that grows with the inner cells.
    """
    product = design.product_form
    if product is None:
        return Structure(design, Kind.sparse if design.axes else Kind.general)
    if design.n_inner > LARGEST_DENSE:
        return Structure(design, Kind.complete)
    chains = chains_of(product)
    if chains is not None and chains.equal_groups:
        return Structure(design, Kind.anova, chains)
    if level_weights_of(product, np.ones(len(design.blocks))) is not None:
        return Structure(design, Kind.crossing, chains)
    return Structure(design, Kind.complete if chains is None else Kind.nested, chains)
