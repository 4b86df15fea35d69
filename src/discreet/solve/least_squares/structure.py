r"""What kind of design this is, found once and handed to the fitters.

The fitters need functions of :math:`XWX^\top`. On complete designs these are cheap in a basis that
follows the axes; which one there is depends on the levels that are published.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from discreet.arrays import Real
from discreet.design.base import Design
from discreet.design.product import ProductDesign
from discreet.design.support import LARGEST_DENSE, Lift
from discreet.solve.least_squares.basis import Basis, Effects, crossing_basis, is_crossing
from discreet.solve.least_squares.problem import block_means
from discreet.solve.least_squares.schedule import LEAST_SQUARES


class Kind(enum.Enum):
    """The structure of a design; the value says what it is good for."""

    anova = "complete, levels of equal groups: solved by axis means"
    crossing = "complete, every combination of levels published: solved axis by axis"
    complete = "complete, other levels: conjugate gradients on index arrays"
    sparse = "chosen inner cells: conjugate gradients on index arrays"
    general = "a general matrix: conjugate gradients on its rows"


@dataclass(frozen=True, eq=False)
class Structure:
    """A design with what is known about it.

    Attributes:
      design: The design.
      kind: What it is.
      effects: Its analysis of variance, where it has one.
    """

    design: Design
    kind: Kind
    effects: Effects | None = None
    _bases: dict[bytes, Basis | None] = field(default_factory=dict, repr=False)

    def basis(self, weights: Real) -> Basis | None:
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
            self._bases[key] = (
                crossing_basis(product, of_block)
                if self.effects is None
                else self.effects.basis(of_block)
            )
        return self._bases[key]

    def is_exact_for(self, weights: Real) -> bool:
        r"""Whether the basis diagonalises :math:`XWX^\top` itself; blocks have one weight then."""
        basis, design = self.basis(weights), self.design.over_variables
        if basis is None or design is None or not basis.is_exact:
            return False
        return bool((weights == weights[design.offsets[:-1]][design.block_of_cell()]).all())

    @cached_property
    def completed(self) -> tuple[Lift[ProductDesign], Structure] | None:
        """The full crossing around chosen cells that are a good part of it, and its structure.

        Structural zeros leave most of a table in place, and held against the basis of the full
        crossing they are only bounds.
        """
        design = self.design.over_variables
        if design is None or design.product_form is not None:
            return None
        n = math.prod(design.shape)
        if n > LARGEST_DENSE or design.n_inner < LEAST_SQUARES.chosen * n:
            return None
        lift = design.completed()
        return lift, analyse(lift.design)

    def sees_every_cell(self, weights: Real) -> bool:
        """Whether every inner cell is published, so that a fit is unique."""
        seen = np.where(self.design.column_sizes == 1, weights, 0.0)
        return bool(self.design.adjoint(seen).min(initial=1.0) > 0)


def analyse(design: Design) -> Structure:
    """Find the structure of a design.

    Cost: a few operations for each block and level; nothing that grows with the inner cells.
    """
    product = design.product_form
    if product is None:
        return Structure(design, Kind.sparse if design.axes else Kind.general)
    if design.n_inner > LARGEST_DENSE:
        return Structure(design, Kind.complete)
    effects = Effects.of(product)
    if effects is not None:
        return Structure(design, Kind.anova, effects)
    return Structure(design, Kind.crossing if is_crossing(product) else Kind.complete)
