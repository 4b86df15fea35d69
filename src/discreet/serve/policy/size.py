"""How large a table may be, by the public code lists alone."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.serve.policy.rule import Limit
from discreet.serve.question import Question


@dataclass(frozen=True)
class MaxVariables(Limit):
    """At most so many variables, filters included."""

    def check(self, question: Question) -> None:
        """Refuse a table of too many variables."""
        used = len(question.in_public_order)
        if used > self.limit:
            message = f"The table asks for {used} variables."
            allowed = "At most {} variables in one table, filters included."
            raise self.refusal("too_many_variables", message, allowed)


@dataclass(frozen=True)
class MaxCells(Limit):
    """At most so many cells, counted on the full crossing before any record is."""

    def check(self, question: Question) -> None:
        """Refuse a table of too many cells."""
        if question.cells > self.limit:
            message = f"The table would have {question.cells:,} cells, totals included."
            raise self.refusal("too_many_cells", message, "At most {} cells.")
