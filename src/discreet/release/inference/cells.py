"""One published table of a release, found by the formula that names it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Array
from discreet.design.axis import Level
from discreet.design.blocks import Block, resolve
from discreet.design.formula import Margins, parse, shown
from discreet.design.structured import StructuredDesign
from discreet.errors import DesignError, ParameterError
from discreet.tables.protected import CellStatus, Protected


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of one published table.

    Attributes:
      protected: Where they come from.
      number: The number of their block in the design.
      levels: What they are crossed by.
    """

    protected: Protected
    number: int
    levels: tuple[Level, ...]

    @classmethod
    def of(cls, protected: Protected, table: Margins) -> Cells:
        """The largest margin that a formula names; all its cells must be shown.

        Args:
          protected: The release.
          table: Its name: `"region*sex"`, `"region:sex"` or `[("region", "sex")]`.
        """
        design = protected.design
        design = design.structured("tables to choose")
        block, number = _place(design, table)
        found = cls(protected, number, tuple(lev for lev in block.levels if lev is not None))
        if protected.hidden[found.where].any():
            raise DesignError(
                f"some cells of {block.name} are not shown, so the table is incomplete. "
                "Choose one that is shown in full."
            )
        return found

    @property
    def where(self) -> slice:
        """Positions among the published cells."""
        return self._design.slice_of(self.number)

    @property
    def values(self) -> Array:
        """Released values of the cells that can occur."""
        z = np.asarray(self.protected.z[self.where])
        status = self.protected.status
        return z if status is None else z[status[self.where] != CellStatus.structural_zero]

    def crossing(self) -> Array:
        """Released values, an axis for each variable; every combination must be possible."""
        size = self._design.blocks[self.number].size
        if len(self.values) < size:
            raise DesignError(
                f"{size - len(self.values)} of {size} combinations cannot occur, and that alone is "
                "an association. Choose a table without structural zeros."
            )
        return block_array(self._design, self.number, np.asarray(self.protected.z))

    @property
    def are_inner(self) -> bool:
        """Whether each of them holds a single inner cell."""
        return bool((self.protected.design.column_sizes[self.where] <= 1).all())

    @property
    def _design(self) -> StructuredDesign:
        design = self.protected.design
        return design.structured("tables")


def block_array(design: StructuredDesign, k: int, values: Array) -> Array:
    """A block with an axis for each of its variables; cells outside the support are zero."""
    block = design.blocks[k]
    flat = np.zeros(block.size, dtype=values.dtype)
    flat[design.block_cells(k)] = values[design.slice_of(k)]
    return flat.reshape([len(level) for level in block.levels if level is not None])


def _place(design: StructuredDesign, table: Margins) -> tuple[Block, int]:
    """The block that a formula names, and its number among the published ones."""
    term = max(parse(table), key=len)
    blocks = resolve(design.axes, [term])
    if len(blocks) > 1:
        names = ", ".join(block.name for block in blocks)
        raise ParameterError(
            f"{shown(term)} stands for several tables ({names}). Name the level of each variable, "
            "as in 'region[county]*sex'."
        )
    published = [block.levels for block in design.blocks]
    if blocks[0].levels not in published:
        names = ", ".join(block.name for block in design.blocks)
        raise DesignError(f"{shown(term)} is not published. Published tables are: {names}.")
    return blocks[0], published.index(blocks[0].levels)
