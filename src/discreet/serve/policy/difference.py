"""How far a visitor's population must lie from every other, by protected figures.

Two tables of populations that differ by few people tell about those few, whatever the noise. The
rule is one of presentation where a visitor can add up categories by hand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from discreet.release.cube import Cube
from discreet.serve.data.source import Asked
from discreet.serve.policy.rule import Figures, Judged, Limit
from discreet.serve.query import Codes
from discreet.serve.question import Question


@dataclass(frozen=True)
class MinDifference(Limit):
    """A filter or group differs from every category that holds it, or lies in it, by so many.

    Attributes:
      max_cells: Most cells of a crossing in which categories are compared.
    """

    max_cells: int = 10_000

    def judge(self, question: Question, judged: Judged, figures: Figures) -> Judged:
        """Refuse populations that lie too near to another one."""
        for asked, sets in _chosen(question):
            sizes = self._sizes(question, asked, {*chain.from_iterable(sets)}, figures)
            if _smallest_gap(asked, sets, sizes) < self.limit:
                message = f"The chosen part of {asked.label_inside} is nearly the same as another."
                allowed = "Populations that differ from every category by at least {} people."
                raise self.refusal("small_difference", message, allowed)
        return judged

    def _sizes(self, question: Question, asked: Asked, codes: set[str], figures: Figures) -> Cube:
        """The protected people in every category of a variable, within the other filters."""
        where = {name: codes for name, codes in question.query.where.items() if name != asked.name}
        filters = [question.asked(name) for name in where]
        room = self.max_cells // math.prod(other.detail.cells for other in filters)
        crossed = [_most_detailed(asked, codes, room), *filters]
        order = [v.name for v in question.on_offer]
        crossed.sort(key=lambda a: order.index(a.name))
        cube = figures(tuple(a.detail.name for a in crossed))
        for name, within in where.items():
            cube = cube.summed(name, within)
        return cube


def _chosen(question: Question) -> Iterator[tuple[Asked, list[Codes]]]:
    """For each variable the sets of codes that a visitor added up."""
    query = question.query
    for asked in question.in_public_order:
        sets = [*query.groups.get(asked.name, {}).values()]
        sets += [query.where[asked.name]] if asked.name in query.where else []
        if sets:
            yield asked, sets


def _most_detailed(asked: Asked, codes: set[str], room: int) -> Asked:
    """The variable in the largest detail that has the codes and that there is room for."""
    options = [Asked(asked.variable, d) for d in asked.variable.details if d.cells <= room]
    having = [option for option in options if option.has(codes)]
    return max(having, key=lambda option: option.detail.cells, default=asked)


def _smallest_gap(asked: Asked, sets: Sequence[Codes], sizes: Cube) -> float:
    """The smallest difference of a set to a category that holds it, or lies within it."""
    value = dict(zip(sizes.axis(asked.name).codes, sizes.values.tolist(), strict=True))
    members = {code: asked.leaves([code]) for code in value}
    gaps = [math.inf]
    for codes in sets:
        mine, size = asked.leaves(codes), sum(value[code] for code in codes)
        near = [code for code, other in members.items() if other < mine or mine < other]
        gaps += [abs(value[code] - size) for code in near]
    return min(gaps)
