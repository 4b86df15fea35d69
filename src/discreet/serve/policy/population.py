"""How many people a table must be about, by protected figures."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.serve.policy.rule import Figures, Judged, Limit, finest, total, whole
from discreet.serve.question import Question


@dataclass(frozen=True)
class MinPopulation(Limit):
    """At least so many people in the population of a table."""

    def judge(self, question: Question, judged: Judged, figures: Figures) -> Judged:
        """Refuse a table about too few people."""
        if total(judged.cube) < self.limit:
            message = "The table is about too few people."
            raise self.refusal("small_population", message, "Tables about at least {} people.")
        return judged


@dataclass(frozen=True)
class MinMeanCell(Limit):
    """At least so many people in a cell, on average over the cells that can occur.

    Filters do not help: the cells are those of the crossing with the variables of all filters.
    """

    def judge(self, question: Question, judged: Judged, figures: Figures) -> Judged:
        """Refuse a table whose cells are too small on average."""
        values, possible = finest(whole(question, figures))
        if values.sum() < self.limit * possible.sum():
            message = "The table has too few people for its number of cells."
            raise self.refusal("small_cells", message, "At least {} people in a cell, on average.")
        return judged
