"""How large a table may be, by the public code lists alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from discreet.serve.policy.rule import Rule
from discreet.serve.query import Query
from discreet.serve.question import Asked, Question
from discreet.serve.refusals import Refusal

Offers = list[tuple[str, Query]]


@dataclass(frozen=True)
class MaxVariables(Rule):
    """At most so many variables, filters included."""

    most: int

    def check(self, question: Question) -> None:
        """Refuse a table of too many variables."""
        used = question.in_public_order
        if len(used) > self.most:
            message = f"The table asks for {len(used)} variables."
            allowed = f"Between 1 and {self.most} variables in one table, filters included."
            offers = _without_one(question) if len(used) == self.most + 1 else []
            raise Refusal("too_many_variables", message, allowed, offers=offers)


@dataclass(frozen=True)
class MaxCells(Rule):
    """At most so many cells, counted on the full crossing before any record is."""

    most: int

    def check(self, question: Question) -> None:
        """Refuse a table of too many cells."""
        if question.cells <= self.most:
            return
        message = f"The table would have {question.cells:,} cells, subtotals and totals included."
        allowed = f"At most {self.most:,} cells."
        raise Refusal("too_many_cells", message, allowed, offers=self._smaller(question))

    def _smaller(self, question: Question) -> Offers:
        """The largest tables within the limit that differ in one detail, or lack a variable."""
        options = [(cells, offer) for cells, offer in _coarser(question) if cells <= self.most]
        found = [offer for _, offer in sorted(options, key=lambda option: -option[0])[:3]]
        return (
            found
            or [
                (label, query)
                for (label, query), asked in zip(
                    _without_one(question), question.shown, strict=False
                )
                if question.cells // asked.detail.cells <= self.most
            ][:3]
        )


def _coarser(question: Question) -> Iterator[tuple[int, tuple[str, Query]]]:
    for asked in question.shown:
        for detail in asked.variable.details:
            if detail.cells < asked.detail.cells:
                cells = question.cells // asked.detail.cells * detail.cells
                label = Asked(asked.variable, detail).label
                yield cells, (label, replaced(question.query, asked, detail.name))


def _without_one(question: Question) -> Offers:
    """The table without each of its variables in turn."""
    return [
        (f"without {asked.label_inside}", replaced(question.query, asked, None))
        for asked in question.shown
        if len(question.shown) > 1
    ]


def replaced(query: Query, asked: Asked, other: str | None) -> Query:
    """The query with another detail in place of one, or with none; codes chosen of it are gone."""
    lists = {
        part: tuple(
            n for n in (other if n == asked.detail.name else n for n in getattr(query, part)) if n
        )
        for part in ("rows", "columns", "layers")
    }
    kept = {
        part: {v: codes for v, codes in getattr(query, part).items() if v != asked.name}
        for part in ("picked", "groups", "where")
    }
    return query.changed(**lists, **kept, sort="")
