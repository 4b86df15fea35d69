"""Rules on protected figures: enough people in tables, groups and areas, and between populations.

Tables are judged before groups and choices of categories, on the crossing that has the variables
of all filters: what the whole does not satisfy, no part of it is shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from discreet.arrays import Mask, Real
from discreet.release.cube import Cube, CubeAxis
from discreet.serve.data.source import DetailedVariable
from discreet.serve.policy.rules import (
    Figures,
    JudgedTable,
    LimitRule,
    PolicyRule,
    finest_cells,
    has_few,
    total_people,
    whole_crossing,
)
from discreet.serve.query import Codes
from discreet.serve.question import Question
from discreet.serve.refusals import Refusal


@dataclass(frozen=True)
class MinPopulationRule(LimitRule):
    """At least so many people in every population that a table breaks down, or none.

    Each variable may be read as the one that is broken down, within the categories of all others:
    a choice of categories or a layer is about the same people as a filter.
    """

    def judge(self, question: Question, judged: JudgedTable, figures: Figures) -> JudgedTable:
        """Refuse a table about too few people."""
        full = whole_crossing(question, figures)
        populations = [full.at(axis.name, axis.entries[0].code) for axis in full.axes]
        is_small = total_people(judged.cube) < self.limit
        if is_small or any(has_few(population, self.limit) for population in populations):
            message = "The table, or a part of it, is about too few people."
            raise self.refusal("small_population", message, "Tables about at least {} people.")
        return judged


@dataclass(frozen=True)
class MinMeanCellRule(LimitRule):
    """At least so many people in a cell, on average over the cells that can occur.

    Filters do not help: the cells are those of the crossing with the variables of all filters.
    """

    def judge(self, question: Question, judged: JudgedTable, figures: Figures) -> JudgedTable:
        """Refuse a table whose cells are too small on average."""
        values, possible = finest_cells(whole_crossing(question, figures))
        if values.sum() < self.limit * possible.sum():
            message = "The table has too few people for its number of cells."
            raise self.refusal("small_cells", message, "At least {} people in a cell, on average.")
        return judged


@dataclass(frozen=True)
class KAnonymityRule(LimitRule):
    """No combination of the variables has fewer people than k, but for none at all."""

    def judge(self, question: Question, judged: JudgedTable, figures: Figures) -> JudgedTable:
        """Refuse a table with a combination of too few."""
        if has_few(whole_crossing(question, figures), self.limit):
            message = "Some combinations of these variables have very few people."
            raise self.refusal("k_anonymity", message, "At least {} people, or none, in a cell.")
        return judged


@dataclass(frozen=True)
class _SensitiveRule(LimitRule):
    """A rule about the sensitive variables of a table, one after the other."""

    sensitive: tuple[str, ...] = ()

    def judge(self, question: Question, judged: JudgedTable, figures: Figures) -> JudgedTable:
        """Refuse a table in which some group tells too much about a sensitive variable."""
        full = whole_crossing(question, figures)
        for name in self.sensitive:
            if name in full.names and len(full.names) > 1:
                self._judge_one(_by_group(full, name), name)
        return judged

    def _judge_one(self, groups: Real, name: str) -> None:
        raise NotImplementedError


@dataclass(frozen=True)
class LDiversityRule(_SensitiveRule):
    """Every group that is not empty has people in so many categories of a sensitive variable."""

    def _judge_one(self, groups: Real, name: str) -> None:
        if ((groups > 0).sum(axis=1) < self.limit).any():
            message = f"In some groups nearly everybody has the same {name!r}."
            raise self.refusal("l_diversity", message, "At least {} categories in every group.")


@dataclass(frozen=True)
class TClosenessRule(_SensitiveRule):
    """No group's shares of a sensitive variable lie further from those of everybody."""

    def _judge_one(self, groups: Real, name: str) -> None:
        if not groups.size:
            return
        everybody = groups.sum(axis=0) / groups.sum()
        shares = groups / groups.sum(axis=1, keepdims=True)
        if (0.5 * np.abs(shares - everybody).sum(axis=1) > self.limit).any():
            message = f"In some groups {name!r} differs very much from everybody's."
            allowed = "Tables in which no group lies further than {} from everybody."
            raise self.refusal("t_closeness", message, allowed)


def _by_group(cube: Cube, sensitive: str) -> Real:
    """A row for each group of people that look alike, a column for each sensitive category.

    Negative figures, which noise can make, count as none; groups without people are left out.
    """
    others = [name for name in cube.names if name != sensitive]
    values, _ = finest_cells(cube.arranged([*others, sensitive]))
    rows = np.maximum(values, 0.0).reshape(-1, values.shape[-1])
    return np.asarray(rows[rows.sum(axis=1) > 0])


@dataclass(frozen=True)
class MinDifferenceRule(LimitRule):
    """A filter or group differs from every category that holds it, or lies in it, by so many.

    Attributes:
      max_cells: Most cells of a crossing in which categories are compared.
    """

    max_cells: int = 10_000

    def judge(self, question: Question, judged: JudgedTable, figures: Figures) -> JudgedTable:
        """Refuse populations that lie too near to another one."""
        for asked, sets in _chosen_sets(question):
            sizes = self._sizes(question, asked, {*chain.from_iterable(sets)}, figures)
            if _smallest_gap(asked, sets, sizes) < self.limit:
                message = f"The chosen part of {asked.label_inside} is nearly the same as another."
                allowed = "Populations that differ from every category by at least {} people."
                raise self.refusal("small_difference", message, allowed)
        return judged

    def _sizes(
        self, question: Question, asked: DetailedVariable, codes: set[str], figures: Figures
    ) -> Cube:
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


def _chosen_sets(question: Question) -> Iterator[tuple[DetailedVariable, list[Codes]]]:
    """For each variable the sets of codes that a visitor added up."""
    query = question.query
    for asked in question.in_public_order:
        sets = [*query.groups.get(asked.name, {}).values()]
        sets += [query.where[asked.name]] if asked.name in query.where else []
        if sets:
            yield asked, sets


def _most_detailed(asked: DetailedVariable, codes: set[str], room: int) -> DetailedVariable:
    """The variable in the largest detail that has the codes and that there is room for."""
    options = [
        DetailedVariable(asked.variable, d) for d in asked.variable.details if d.cells <= room
    ]
    having = [option for option in options if option.has(codes)]
    return max(having, key=lambda option: option.detail.cells, default=asked)


def _smallest_gap(asked: DetailedVariable, sets: Sequence[Codes], sizes: Cube) -> float:
    """The smallest difference of a set to a category that holds it, or lies within it."""
    value = dict(zip(sizes.axis(asked.name).codes, sizes.values.tolist(), strict=True))
    members = {code: asked.leaves([code]) for code in value}
    gaps = [math.inf]
    for codes in sets:
        mine, size = asked.leaves(codes), sum(value[code] for code in codes)
        near = [code for code, other in members.items() if other < mine or mine < other]
        gaps += [abs(value[code] - size) for code in near]
    return min(gaps)


@dataclass(frozen=True)
class SparsityRule(PolicyRule):
    """Areas in which too many cells are nearly empty are not shown; the others are.

    The cells are those of the crossing with the variables of all filters, whatever part of them is
    asked for. A filter or a group with such an area is refused.

    Attributes:
      area: The variable of areas.
      most: Largest share of an area's cells that may be nearly empty.
      below: What nearly empty means: protected counts below this.
    """

    area: str
    most: float
    below: float = 1.0

    def judge(self, question: Question, judged: JudgedTable, figures: Figures) -> JudgedTable:
        """Refuse sums over areas that are too sparse, or hide these and say how many are left."""
        full = whole_crossing(question, figures)
        if self.area not in full.names or len(full.names) < 2:
            return judged
        sparse = dict(zip(full.axis(self.area).codes, self._sparse(full).tolist(), strict=True))
        self._check_sums(question, full.axis(self.area), sparse)
        if self.area not in judged.cube.names or self.area in question.query.groups:
            return judged
        return self._without(judged, sparse)

    def _check_sums(self, question: Question, axis: CubeAxis, sparse: Mapping[str, bool]) -> None:
        """Refuse filters and groups with an area that is too sparse."""
        query = question.query
        sums = [query.where.get(self.area, ()), *query.groups.get(self.area, {}).values()]
        added = {code for codes in sums for code in codes}
        for entry in axis.entries:
            if entry.code in added and not entry.is_total and sparse[entry.code]:
                message = f"There are too few people in {entry.label} for this detail."
                raise Refusal("sparse", message, "Fewer or coarser variables, or larger areas.")

    def _without(self, judged: JudgedTable, of_all: Mapping[str, bool]) -> JudgedTable:
        """The table without the areas that are too sparse."""
        cube, axis = judged.cube, judged.cube.axis(self.area)
        sparse = np.array([of_all[code] for code in axis.codes])
        areas = np.array([not e.is_total for e in axis.entries])
        left, asked = int((areas & ~sparse).sum()), int(areas.sum())
        if asked and not left:
            message = f"In none of the {asked} areas are there enough people for this detail."
            raise Refusal("sparse", message, "Fewer or coarser variables, or larger areas.")
        if left == asked:
            return judged
        shape = [1] * len(cube.axes)
        shape[cube.names.index(self.area)] = len(axis)
        hidden = np.broadcast_to((sparse & areas).reshape(shape), cube.values.shape)
        note = f"{left:,} of {asked:,} areas available: the others have too few people for this "
        return judged.noting(note + "detail.").hiding(hidden)

    def _sparse(self, cube: Cube) -> Mask:
        """For each area whether too many of its cells are nearly empty."""
        moved = cube.arranged([self.area, *(n for n in cube.names if n != self.area)])
        values, possible = finest_cells(moved, self.area)
        others = tuple(range(1, values.ndim))
        empty = (possible & (values < self.below)).sum(axis=others)
        return np.asarray(empty > self.most * np.maximum(possible.sum(axis=others), 1))
