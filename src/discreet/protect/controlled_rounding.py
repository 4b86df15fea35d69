"""Controlled rounding: every cell a multiple of a base, and the table still adds up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.design.release import Release, Statement
from discreet.design.table import Table
from discreet.errors import ParameterError
from discreet.noise.checks import whole
from discreet.protect.claims import Claims
from discreet.protect.margins import shows_inner_cells
from discreet.protect.statements import statement_of

if TYPE_CHECKING:
    from discreet.solve.integer.found import Found


@dataclass(frozen=True)
class ControlledRounding:
    r"""Zero-restricted controlled rounding of a whole table.

    Every inner cell becomes a multiple of the base next to it,
    :math:`\tilde y_j \in \{b\lfloor y_j/b\rfloor,\, b\lceil y_j/b\rceil\}`, so that sums do too:

    .. math:: b\lfloor z_k/b\rfloor \le x_k^\top \tilde y \le b\lceil z_k/b\rceil .

    Promise: the table adds up; every cell is a multiple of the base, so nothing between the
    multiples is published; multiples, zeros among them, stay wherever sums are next to theirs:
    inner cells always, all cells of two-way tables (a hierarchy on one variable included), and in
    other tables wherever the search finds it possible; the statement counts the exceptions.
    Cells that are zero stay zero. Single cells are nearly, not exactly, unbiased.
    Cost: a linear program for two-way tables, otherwise a search of seconds for 10⁵ cells.

    Args:
      base: The rounding base, at least 2.

    See Cox (1987), Willenborg & De Waal (2001).
    """

    name: ClassVar[str] = "controlled-rounding"
    source: ClassVar[str] = "seed"

    base: int = 3

    def __post_init__(self) -> None:
        whole("base", self.base, 2)

    @property
    def claims(self) -> Claims:
        """What every release of this method keeps."""
        blocked = tuple(range(1, self.base))
        return Claims(additive=True, unbiased=False, keeps_zeros=True, blocked=blocked)

    def __call__(self, table: Table, *, rng: np.random.Generator | None = None) -> Release:
        """Round the table with draws from the generator."""
        from discreet.solve.integer.rounding import controlled

        if rng is None:
            raise ParameterError("controlled rounding draws at random: give it rng= or a seed.")
        found = controlled(table.design, table.y / self.base, rng=rng)
        y = self.base * found.y
        return Release.of(
            table.design,
            self.base * found.z,
            self._statement(found),
            y=y if shows_inner_cells(table.design) else None,
        )

    def _statement(self, found: Found) -> Statement:
        sentences = [
            f"Counts were rounded to multiples of {self.base} so that the table adds up. "
            "Zeros stay zero.",
            f"Every cell moved by less than {self.base}."
            if not found.violations
            else f"Inner cells moved by less than {self.base}; published cells that moved by more "
            f"or left their multiple: {found.violations:,}.",
        ]
        return statement_of(self.name, {"base": self.base}, sentences)
