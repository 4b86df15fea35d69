"""How many people a table must be about, by protected figures."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.serve.policy.rule import Figures, Judged, Limit, finest, has_few, total, whole
from discreet.serve.question import Question


@dataclass(frozen=True)
class MinPopulation(Limit):
    """At least so many people in every population that a table breaks down, or none.

    Each variable may be read as the one that is broken down, within the categories of all others:
    a choice of categories or a layer is about the same people as a filter.
    """

    def judge(self, question: Question, judged: Judged, figures: Figures) -> Judged:
        """Refuse a table about too few people."""
        full = whole(question, figures)
        populations = [full.at(axis.name, axis.entries[0].code) for axis in full.axes]
        is_small = total(judged.cube) < self.limit
        if is_small or any(has_few(population, self.limit) for population in populations):
            message = "The table, or a part of it, is about too few people."
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
