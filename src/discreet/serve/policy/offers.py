"""Tables near to a refused one: coarser, without a variable, without groups or filters."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from discreet.serve.data.source import Asked
from discreet.serve.moves import at_level, counting_only, placed, removed
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
        label = f"without the filter on {asked.label_inside}"
        yield cells // asked.detail.cells, label, counting_only(query, asked.name, ())
    for one in placed(query, question.on_offer):
        rest = cells // one.detail.cells
        for detail in one.variable.details:
            if detail.cells < one.detail.cells:
                label = Asked(one.variable, detail).label
                yield rest * detail.cells, label, at_level(query, one, detail)
        if len(question.shown) > 1:
            without = counting_only(removed(query, one), one.name, ())
            yield rest, f"without {one.label_inside}", without
