"""Controlled rounding: every cell a multiple of a base, and the table still adds up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from discreet.errors import whole
from discreet.protect.options import BASES, OptionLists
from discreet.protect.sentences import (
    claim_sentences,
    groups_not_hidden,
    multiples_of,
    process,
    statement_of,
)
from discreet.solve.integer.problem import FoundTable
from discreet.solve.integer.rounding import round_to_multiples
from discreet.tables.protected import Claims, Draws, Protected
from discreet.tables.statement import Statement
from discreet.tables.truth import TrueTable


@dataclass(frozen=True)
class ControlledRounding:
    r"""Zero-restricted controlled rounding of a whole table.

    Every inner cell becomes a multiple of the base next to it,
    :math:`\tilde y_j \in \{b\lfloor y_j/b\rfloor,\, b\lceil y_j/b\rceil\}`, so that sums do too:

    .. math:: b\lfloor z_k/b\rfloor \le x_k^\top \tilde y \le b\lceil z_k/b\rceil .

    Promise: the table adds up; every cell is a multiple of the base, so nothing between the
    multiples is published; multiples, zeros among them, stay wherever sums are next to theirs:
    inner cells always, all cells of two-way tables (a hierarchy on one variable included), and in
    other tables wherever programs find it possible; `search` tells the custodian how often.
    Cells that are zero stay zero. Single cells are nearly, not exactly, unbiased.
    Cost: a linear program for two-way tables, otherwise some of them: seconds for 10⁴ cells, up to
    a minute for linked tables in which not every sum can be kept.

    Args:
      base: The rounding base, at least 2.

    See Cox (1987), Willenborg & De Waal (2001).
    """

    name: ClassVar[str] = "controlled-rounding"
    source: ClassVar[str] = "table"
    option_lists: ClassVar[OptionLists] = {"base": BASES}

    base: int = 3

    def __post_init__(self) -> None:
        whole("base", self.base, 2)

    @property
    def claims(self) -> Claims:
        """What every release of this method keeps."""
        blocked = tuple(range(1, self.base))
        return Claims(additive=True, unbiased=False, keeps_zeros=True, blocked=blocked)

    def __call__(self, table: TrueTable, *, draws: Draws) -> Protected:
        """Round the table."""
        found = self.search(table, rng=draws.generator(self, table))
        y = found.y if table.design.shows_inner_cells else None
        return Protected.of(table.design, found.z, self._statement(), y=y)

    def search(self, table: TrueTable, *, rng: np.random.Generator) -> FoundTable:
        """The rounding behind the release; its deviations are in steps of the base.

        **Confidential**: it tells how many published cells left the multiples next to them.
        """
        return round_to_multiples(table.design, table.y, self.base, rng=rng)

    def _statement(self) -> Statement:
        said = [
            process(
                "controlled-rounding",
                f"Counts were rounded to multiples of {self.base} so that the table adds up. Inner "
                f"cells moved by less than {self.base}; sums moved by less than {self.base} "
                "wherever that was found possible.",
                f"Figures were rounded to multiples of {self.base}.",
            ),
            multiples_of(self.base),
            *claim_sentences(self.claims, "count"),
            groups_not_hidden(),
        ]
        return statement_of(self.name, {"base": self.base}, said)
