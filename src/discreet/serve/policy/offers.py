"""Tables near to a refused one: coarser, without a variable, without groups or filters."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from discreet.serve.data.source import Asked
from discreet.serve.query import Query
from discreet.serve.question import Question

MOST, TRIED = 3, 8
Offer = tuple[str, Query]


def offers(question: Question, is_allowed: Callable[[Query], bool]) -> list[Offer]:
    """The largest tables near to the one asked for that would be answered.

    Args:
      question: What was asked.
      is_allowed: Whether a query would be answered.
    """
    near = sorted(_near(question), key=lambda option: -option[0])
    unique = list({query: (label, query) for _, label, query in near}.values())
    found = []
    for label, query in unique[:TRIED]:
        if is_allowed(query):
            found.append((label, query))
        if len(found) == MOST:
            break
    return found


def _near(question: Question) -> Iterator[tuple[int, str, Query]]:
    """Other tables with their public numbers of cells."""
    query, cells = question.query, question.cells
    if query.groups:
        yield cells, "without own groups", query.changed(groups={})
    for asked in question.filters:
        where = {name: codes for name, codes in query.where.items() if name != asked.name}
        label = f"without the filter on {asked.label_inside}"
        yield cells // asked.detail.cells, label, query.changed(where=where)
    for asked in question.shown:
        rest = cells // asked.detail.cells
        for detail in asked.variable.details:
            if detail.cells < asked.detail.cells:
                label = Asked(asked.variable, detail).label
                yield rest * detail.cells, label, replaced(query, asked, detail.name)
        if len(question.shown) > 1:
            yield rest, f"without {asked.label_inside}", replaced(query, asked, None)


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
    layer = {v: code for v, code in query.view.layer.items() if v != asked.name}
    folded = {v: codes for v, codes in query.view.folded.items() if v != asked.name}
    near = query.changed(**lists, **kept, sort="", layer=layer, folded=folded)
    return near if near.view.show in near.shows else near.changed(show="count")
