"""The rules of a policy: each looks at a question, or at protected figures, never at records.

Rules on figures judge the crossing that has the variables of all filters, before groups and choices
of categories: what the whole does not satisfy, no part of it is shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from discreet.arrays import Mask, Real
from discreet.release.cube import ABSENT, Cube, CubeEntry
from discreet.serve.answer import Question
from discreet.serve.data.price import Price
from discreet.serve.data.source import DetailedVariable
from discreet.serve.query import Codes
from discreet.serve.refusals import Refusal
from discreet.tables.protected import CellStatus

if TYPE_CHECKING:
    from discreet.serve.policy.policy import Policy

Groups = Literal["own", "fixed", "none"]
Figures = Callable[[tuple[str, ...]], Cube]
"""Gives the protected crossing of some details, in public order."""


@dataclass(frozen=True, eq=False)
class JudgedTable:
    """A protected cube as far as rules have judged it, with notes for the reader."""

    cube: Cube
    notes: tuple[str, ...] = ()

    def with_note(self, text: str) -> JudgedTable:
        """The same with one more note, each once."""
        return replace(self, notes=tuple(dict.fromkeys((*self.notes, text))))

    def with_hidden(self, where: Mask) -> JudgedTable:
        """The same with some cells hidden, and a note that totals may tell what they held."""
        cube = self.cube
        values = np.where(where, np.zeros((), cube.values.dtype), cube.values)
        status = np.where(where, np.int8(CellStatus.below_threshold), cube.status)
        hidden = replace(cube, values=values, status=status.astype(np.int8))
        return replace(self, cube=hidden).with_note(
            "Figures are left out to keep the table readable. They are protected like all others, "
            "and some can be worked out from totals."
        )


@dataclass(frozen=True, eq=False)
class Case:
    """What the rules on figures look at: a question, and the protected figures around it."""

    policy: Policy
    question: Question
    figures: Figures

    @property
    def whole(self) -> Cube:
        """The crossing that a table is cut from, before filters, groups and choices of categories.

        A rule that looks at it says the same of a table and of all its slices, so that what is
        refused cannot be put together from slices. Where a level leaves categories out, they make
        one more entry together: everybody can subtract the level from the total.
        """
        cube = self.figures(self.question.details)
        for name in [asked.name for asked in self.question.in_public_order if asked.leaves_out]:
            axis, dimension = cube.axis(name), cube.names.index(name)
            total = cube.at(name, axis.entries[0].code)
            # The sum over the axis has the total too, hence twice: rest = total - (sum - total).
            rest = replace(total, values=2 * total.values - cube.values.sum(axis=dimension))
            entry = CubeEntry("", "", 1, is_sum=False)  # no category has an empty code
            cube = cube.with_slice(name, len(axis), entry, rest)
        return cube


# Rules on a question: names and sizes of public code lists, counted before any record is.


def check_size(policy: Policy, question: Question) -> None:
    """Refuse a table of too many variables, filters included, or of too many cells."""
    # Every period is a table of its own: it takes no variable's place.
    used = sum(not asked.variable.is_time for asked in question.in_public_order)
    cells = question.cells
    if used > policy.max_variables:
        raise policy.refusal(
            "too_many_variables",
            f"The table asks for {used} variables.",
            "At most {} variables in one table, filters included.",
            "max_variables",
        )
    if cells > policy.max_cells:
        message = f"The table would have {cells:,} cells, totals included."
        raise policy.refusal("too_many_cells", message, "At most {} cells.", "max_cells")


def check_price(policy: Policy, price: Price) -> None:
    """Refuse a table that costs too much time or memory, by its price."""
    megabytes = price.bytes / 1e6
    if price.seconds > policy.max_seconds or megabytes > policy.max_megabytes:
        message = (
            f"The table would take about {price.seconds:,.1f} seconds and {megabytes:,.0f} "
            "megabytes to make."
        )
        allowed = "At most {} seconds."
        if price.seconds <= policy.max_seconds:
            raise policy.refusal("too_expensive", message, "At most {} megabytes.", "max_megabytes")
        raise policy.refusal("too_expensive", message, allowed, "max_seconds")


def check_combinations(policy: Policy, question: Question) -> None:
    """Refuse a table that brings all variables of a forbidden set together, filters included."""
    used = {asked.name: asked.variable.label_inside for asked in question.in_public_order}
    for together in policy.forbidden:
        if {*together} <= {*used}:
            named = " and ".join(used[name] for name in together)
            message = f"{named} must not be combined in one table."
            raise Refusal("forbidden_combination", message, "Tables without one of them.")


def check_groups(policy: Policy, question: Question) -> None:
    """Refuse groups that are not the visitor's to form; a filter of several categories is one.

    The rule is one of presentation where a visitor can add up categories by hand.
    """
    if policy.groups == "own":
        return
    for variable, groups in question.query.groups.items():
        allowed = _fixed_groups(policy, variable)
        if any({*codes} != allowed.get(label) for label, codes in groups.items()):
            raise _own_groups_refusal(policy, variable)
    for variable, codes in question.query.where.items():
        if len(codes) != 1 and {*codes} not in _fixed_groups(policy, variable).values():
            raise _own_groups_refusal(policy, variable)


def _fixed_groups(policy: Policy, variable: str) -> dict[str, set[str]]:
    fixed = policy.fixed_groups.get(variable, {}) if policy.groups == "fixed" else {}
    return {label: {*codes} for label, codes in fixed.items()}


def _own_groups_refusal(policy: Policy, variable: str) -> Refusal:
    if policy.groups == "none":
        message = "Categories cannot be added up to own groups or populations in this data set."
        return Refusal("own_groups", message, "The categories and levels on offer.")
    listed = ", ".join(_fixed_groups(policy, variable)) or "none"
    message = f"Groups of {variable!r} are fixed in this data set, in filters too."
    return Refusal("own_groups", message, f"Groups: {listed}.")


# Rules on the protected figures that would be shown.


def judge_population(case: Case, judged: JudgedTable) -> JudgedTable:
    """Refuse a table of which a population, broken down by it, is too small but not empty.

    Each variable may be read as the one that is broken down, within the categories of all others:
    a choice of categories or a layer is about the same people as a filter.
    """
    full, fewest = case.whole, case.policy.min_population
    populations = [full.at(a.name, a.entries[0].code) for a in full.axes if a.total is not None]
    is_small = total_people(judged.cube) < fewest
    if is_small or any(_has_few(population, fewest) for population in populations):
        message = "The table, or a part of it, is about too few people."
        allowed = "Tables about at least {} people."
        raise case.policy.refusal("small_population", message, allowed, "min_population")
    return judged


def judge_mean_cell(case: Case, judged: JudgedTable) -> JudgedTable:
    """Refuse a table with too few people in a cell, on average over the cells that can occur.

    Filters do not help: the cells are those of the crossing with the variables of all filters.
    """
    values, possible = finest_cells(case.whole)
    if values.sum() < case.policy.min_mean_cell * possible.sum():
        message = "The table has too few people for its number of cells."
        allowed = "At least {} people in a cell, on average."
        raise case.policy.refusal("small_cells", message, allowed, "min_mean_cell")
    return judged


def judge_anonymity(case: Case, judged: JudgedTable) -> JudgedTable:
    """Refuse a table in which a combination has fewer people than k, but for none at all."""
    if _has_few(case.whole, case.policy.k_anonymity):
        message = "Some combinations of these variables have very few people."
        allowed = "At least {} people, or none, in a cell."
        raise case.policy.refusal("k_anonymity", message, allowed, "k_anonymity")
    return judged


def judge_diversity(case: Case, judged: JudgedTable) -> JudgedTable:
    """Refuse a table with a group of people in too few categories of a sensitive variable."""
    for name, groups in _sensitive_groups(case):
        if ((groups > 0).sum(axis=1) < case.policy.l_diversity).any():
            message = f"In some groups nearly everybody has the same {name!r}."
            allowed = "At least {} categories in every group."
            raise case.policy.refusal("l_diversity", message, allowed, "l_diversity")
    return judged


def judge_closeness(case: Case, judged: JudgedTable) -> JudgedTable:
    """Refuse a table with a group whose shares of a sensitive variable lie far from everybody's."""
    for name, groups in _sensitive_groups(case):
        if not groups.size:
            continue
        everybody = groups.sum(axis=0) / groups.sum()
        shares = groups / groups.sum(axis=1, keepdims=True)
        if (0.5 * np.abs(shares - everybody).sum(axis=1) > case.policy.t_closeness).any():
            message = f"In some groups {name!r} differs very much from everybody's."
            allowed = "Tables in which no group lies further than {} from everybody."
            raise case.policy.refusal("t_closeness", message, allowed, "t_closeness")
    return judged


def _sensitive_groups(case: Case) -> Iterator[tuple[str, Real]]:
    """For each sensitive variable a row for each group that looks alike, a column for each code.

    Negative figures, which noise can make, count as none; groups without people are left out.
    """
    full = case.whole
    for name in case.policy.sensitive:
        if name in full.names and len(full.names) > 1:
            others = [other for other in full.names if other != name]
            values, _ = finest_cells(full.reorder([*others, name]))
            rows = np.maximum(values, 0.0).reshape(-1, values.shape[-1])
            yield name, np.asarray(rows[rows.sum(axis=1) > 0])


def judge_difference(case: Case, judged: JudgedTable) -> JudgedTable:
    """Refuse a filter or group that lies too near to a category that holds it, or lies in it.

    Two tables of populations that differ by few people tell about those few, whatever the noise.
    The rule is one of presentation where a visitor can add up categories by hand.
    """
    query = case.question.query
    for asked in case.question.in_public_order:
        sets = [*query.groups.get(asked.name, {}).values()]
        sets += [query.where[asked.name]] if asked.name in query.where else []
        if not sets:
            continue
        sizes = _category_sizes(case, asked, {code for codes in sets for code in codes})
        gaps = [_smallest_gap(asked, sets, of_period) for of_period in _by_period(sizes, asked)]
        if min(gaps) < case.policy.min_difference:
            message = f"The chosen part of {asked.label_inside} is nearly the same as another."
            allowed = "Populations that differ from every category by at least {} people."
            raise case.policy.refusal("small_difference", message, allowed, "min_difference")
    return judged


def _category_sizes(case: Case, asked: DetailedVariable, codes: set[str]) -> Cube:
    """The protected people in every category of a variable, within the other filters."""
    question = case.question
    where = {name: codes for name, codes in question.query.where.items() if name != asked.name}
    filters = [question.asked(name) for name in where]
    filters += [a for a in question.shown if a.variable.is_time and a.name not in where]
    filters = [other for other in filters if other.name != asked.name]
    # Categories are compared in the largest detail that has the codes and that there is room for.
    room = case.policy.max_cells // math.prod(other.detail.cells for other in filters)
    options = [DetailedVariable(asked.variable, d) for d in asked.variable.details]
    fitting = [option for option in options if option.detail.cells <= room and option.has(codes)]
    crossed = [max(fitting, key=lambda option: option.detail.cells, default=asked), *filters]
    order = [v.name for v in question.on_offer]
    crossed.sort(key=lambda a: order.index(a.name))
    cube = case.figures(tuple(a.detail.name for a in crossed))
    for name, within in where.items():
        cube = cube.sum_over(name, within)
    return cube


def _by_period(sizes: Cube, asked: DetailedVariable) -> list[Cube]:
    """The people in every category, of each period that is shown beside the variable."""
    periods = [axis for axis in sizes.axes if axis.name != asked.name]
    return [sizes.at(a.name, code) for a in periods for code in a.codes] or [sizes]


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


def judge_sparsity(case: Case, judged: JudgedTable) -> JudgedTable:
    """Hide areas in which too many cells are nearly empty, and say how many are left.

    The cells are those of the crossing with the variables of all filters, whatever part of them is
    asked for. No table is about a sparse area alone or adds it to others. What is hidden is so for
    presentation: the total less all other areas tells it.
    """
    area, full = case.policy.area, case.whole
    if area not in full.names or len(full.names) < 2:
        return judged
    by_area = full.reorder([area, *(n for n in full.names if n != area)])
    values, possible = finest_cells(by_area, area)
    others = tuple(range(1, values.ndim))
    empty = (possible & (values < case.policy.sparse_below)).sum(axis=others)
    is_sparse = empty > case.policy.max_sparsity * np.maximum(possible.sum(axis=others), 1)
    sparse = dict(zip(full.axis(area).codes, is_sparse.tolist(), strict=True))
    query = case.question.query
    sums = [query.where.get(area, ()), *query.groups.get(area, {}).values()]
    added = {code for codes in sums for code in codes}
    for entry in full.axis(area).entries:
        if entry.code in added and not entry.is_total and sparse[entry.code]:
            message = f"There are too few people in {entry.label} for this detail."
            raise Refusal("sparse", message, "Fewer or coarser variables, or larger areas.")
    if area not in judged.cube.names or area in query.groups:
        return judged
    return _without_areas(judged, area, sparse)


def _without_areas(judged: JudgedTable, area: str, sparse: Mapping[str, bool]) -> JudgedTable:
    cube, axis = judged.cube, judged.cube.axis(area)
    is_sparse = np.array([sparse[code] for code in axis.codes])
    areas = np.array([not e.is_total for e in axis.entries])
    left, asked = int((areas & ~is_sparse).sum()), int(areas.sum())
    if asked and not left:
        message = f"In none of the {asked} areas are there enough people for this detail."
        raise Refusal("sparse", message, "Fewer or coarser variables, or larger areas.")
    if left == asked:
        return judged
    shape = [1] * len(cube.axes)
    shape[cube.names.index(area)] = len(axis)
    hidden = np.broadcast_to((is_sparse & areas).reshape(shape), cube.values.shape)
    note = f"{left:,} of {asked:,} areas available: the others have too few people for this "
    return judged.with_note(note + "detail.").with_hidden(hidden)


def judge_threshold(case: Case, judged: JudgedTable) -> JudgedTable:
    """Hide figures below a threshold, zero excepted: for presentation, totals may tell them."""
    cube = judged.cube
    small = cube.is_shown & (cube.values != 0) & (np.abs(cube.values) < case.policy.threshold)
    if not small.any():
        return judged
    note = case.policy.with_limit("Figures below {} are not shown.", "threshold")
    return judged.with_note(note).with_hidden(small)


# What the rules look at.


def finest_cells(cube: Cube, but: str = "") -> tuple[Real, Mask]:
    """The values of the cells that are no sums of others, and which of them can occur.

    Args:
      cube: The cube.
      but: A variable of which every entry is taken, sums included.
    """
    places = [
        [k for k, e in enumerate(a.entries) if a.name == but or not (e.is_total or e.is_sum)]
        for a in cube.axes
    ]
    where = np.ix_(*places)
    status = cube.status[where]
    possible = (status != CellStatus.structural_zero) & (status != ABSENT)
    return np.where(possible, cube.values[where], 0).astype(np.float64), possible


def total_people(cube: Cube) -> float:
    """The protected number of people in a table; in the period with the fewest of them."""
    found = cube
    for axis in cube.axes:
        if axis.total is not None:
            found = found.at(axis.name, axis.entries[axis.total].code)
    return float(found.values.min())


def _has_few(cube: Cube, limit: float) -> bool:
    """Whether some figure, sums included, is below a limit but not zero."""
    return bool((cube.is_shown & (cube.values > 0) & (cube.values < limit)).any())
