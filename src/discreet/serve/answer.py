"""A query checked against what a data set offers, and the table that answers it."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from discreet.errors import suggest
from discreet.release.cube import Cube, CubeEntry, drop_float_noise
from discreet.serve.data.source import DetailedVariable, OfferedVariable, by_detail, coarsest
from discreet.serve.query import Query, Show
from discreet.serve.refusals import Refusal, no_such
from discreet.tables.protected import CellStatus

if TYPE_CHECKING:
    from discreet.serve.data.dataset import Dataset


class OnOffer(Protocol):
    """What can be asked for: a source, or a data set that says which variable tells periods."""

    @property
    def variables(self) -> tuple[OfferedVariable, ...]:
        """The variables, in public order."""

    @property
    def units(self) -> tuple[str, ...]:
        """What is published, the first by default."""


@dataclass(frozen=True, eq=False)
class Question:
    """A query that can be answered, but for the policy of the data set.

    Attributes:
      query: What was asked.
      on_offer: The variables on offer, in public order.
      rows: Variables in rows.
      columns: Variables in columns.
      layers: Variables in layers.
      filters: Variables that are not shown and restrict the population.
      unit: What is counted.
    """

    query: Query
    on_offer: tuple[OfferedVariable, ...]
    rows: tuple[DetailedVariable, ...]
    columns: tuple[DetailedVariable, ...]
    layers: tuple[DetailedVariable, ...]
    filters: tuple[DetailedVariable, ...]
    unit: str

    @classmethod
    def checked(cls, source: OnOffer, query: Query) -> Question:
        """The question, or a refusal that says what is on offer."""
        named, units = by_detail(source.variables), source.units
        for name in query.variables:
            if name not in named:
                raise no_such("variable or level", name, named, "Variables and levels")
        query = in_one_period(query, source.variables)
        rows, columns, layers = (
            tuple(named[name] for name in names)
            for names in (query.rows, query.columns, query.layers)
        )
        shown = [asked.name for asked in (*rows, *columns, *layers)]
        _check_table(query, shown, source.variables)
        filters = _filters(source.variables, query, shown)
        if query.unit and query.unit not in units:
            message = f"This data set does not publish unit {query.unit!r}."
            raise Refusal("unknown_unit", message, f"Units: {', '.join(units)}.")
        unit = query.unit or units[0]
        question = cls(query, source.variables, rows, columns, layers, filters, unit)
        _check_codes(question)
        return question

    @property
    def shown(self) -> tuple[DetailedVariable, ...]:
        """The variables that are shown: rows, columns, layers."""
        return (*self.rows, *self.columns, *self.layers)

    @cached_property
    def in_public_order(self) -> tuple[DetailedVariable, ...]:
        """All variables that are needed, filters included, in public order."""
        order = {v.name: place for place, v in enumerate(self.on_offer)}
        return tuple(sorted((*self.shown, *self.filters), key=lambda a: order[a.name]))

    @property
    def details(self) -> tuple[str, ...]:
        """The crossing that the source is asked for."""
        return tuple(asked.detail.name for asked in self.in_public_order)

    @property
    def cells(self) -> int:
        """Cells of the full crossing of the public code lists, totals included; of one period."""
        crossed = (*self.shown, *(f for f in self.filters if not f.variable.is_time))
        return math.prod(asked.detail.cells for asked in crossed)

    def asked(self, name: str) -> DetailedVariable:
        """The variable of this name."""
        return next(a for a in self.in_public_order if a.name == name)


@dataclass(frozen=True, eq=False)
class Answer:
    """**Public.** A table with what explains it.

    Attributes:
      dataset: The data set.
      question: What was asked, checked.
      cube: The figures: axes of rows, columns and layers in this order, each with its total first;
        filtered, grouped and picked, but neither folded nor turned into per cent.
      notes: What a reader should know of this table, in plain sentences.
    """

    dataset: Dataset
    question: Question
    cube: Cube
    notes: tuple[str, ...] = ()

    @property
    def query(self) -> Query:
        """What was asked."""
        return self.question.query

    @property
    def groups(self) -> tuple[str, ...]:
        """The visitor's groups with what they add up, each as a text: `Not old: 0-14, 15-64`."""
        return tuple(
            f"{label}: {', '.join(asked.variable.labels_of(codes))}"
            for asked in self.question.shown
            for label, codes in self.query.groups.get(asked.name, {}).items()
        )

    @property
    def rows(self) -> tuple[str, ...]:
        """The names of the cube's variables in rows."""
        return tuple(asked.name for asked in self.question.rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """Those in columns."""
        return tuple(asked.name for asked in self.question.columns)

    @cached_property
    def shown(self) -> Cube:
        """The figures as the view asks for them: values, or per cent of row, column or table."""
        show = self.query.view.show
        if show == "count":
            return self.cube
        return self.cube.shares(shares_over(self.query, self.question.on_offer)[show])


def in_one_period(query: Query, variables: Sequence[OfferedVariable]) -> Query:
    """The query about the last period, where it neither shows periods nor names one."""
    shown = {name.partition("[")[0] for name in query.variables}
    for variable in variables:
        if variable.is_time and variable.name not in {*shown, *query.where}:
            last = variable.axis.leaves[-1]
            return query.changed(
                where=dict(sorted({**query.where, variable.name: (last,)}.items()))
            )
    return query


def shares_over(query: Query, variables: Iterable[OfferedVariable]) -> dict[Show, tuple[str, ...]]:
    """What can be shown in per cent, with the variables over which it is; periods have no share."""
    periods = {v.name for v in variables if v.is_time}
    rows, columns = (
        tuple(n for n in (name.partition("[")[0] for name in side) if n not in periods)
        for side in (query.rows, query.columns)
    )
    over: dict[Show, tuple[str, ...]] = {"row": columns, "column": rows, "total": (*rows, *columns)}
    return {show: names for show, names in over.items() if names}


def with_impossible(cube: Cube, question: Question) -> Cube:
    """The crossing with codes that are added up and that it lacks since they can never occur."""
    query = question.query
    for asked in question.in_public_order:
        groups = query.groups.get(asked.name, {}).values()
        named = {*query.where.get(asked.name, ()), *(code for codes in groups for code in codes)}
        before = 0
        for entry in asked.entries:
            codes = cube.axis(asked.name).codes
            if entry.code in named and entry.code not in codes:
                cube = cube.with_slice(asked.name, before, entry, _nobody(cube, asked.name))
            before += entry.code in codes or entry.code in named
    return cube


def _nobody(cube: Cube, name: str) -> Cube:
    """A slice along a variable whose cells can never occur."""
    axes = tuple(axis for axis in cube.axes if axis.name != name)
    values = np.zeros([len(axis) for axis in axes], cube.values.dtype)
    status = np.full(values.shape, CellStatus.structural_zero, np.int8)
    return replace(cube, axes=axes, values=values, status=status)


def arrange(cube: Cube, question: Question) -> Cube:
    """The crossing filtered, grouped, picked and put in order: sums and choices of its cells."""
    query = question.query
    for asked in question.filters:
        cube = cube.sum_over(asked.name, query.where[asked.name])  # one code, where it is a period
    for asked in question.shown:
        if asked.name in query.where:
            cube = _restrict(cube, asked, query.where[asked.name])
        if asked.name in query.groups:
            cube = cube.group(asked.name, query.groups[asked.name])
        if asked.name in query.picked:
            axis = cube.axis(asked.name)
            total = axis.codes[axis.total : axis.total + 1] if axis.total is not None else ()
            known = [code for code in query.picked[asked.name] if code in axis.codes]
            cube = cube.select(asked.name, [*total, *known])  # shares need the total
    shown = cube.reorder([asked.name for asked in question.shown])
    meant = replace(shown, values=drop_float_noise(shown.values, as_largest=True))
    return meant.with_labels([asked.label for asked in question.shown])


def _check_table(query: Query, shown: Sequence[str], variables: Sequence[OfferedVariable]) -> None:
    """A table shows some variables, each once, and shares that are not all 100 per cent."""
    if not shown:
        allowed = "At least one variable in rows, columns or layers."
        raise Refusal("no_variables", "No variable was chosen.", allowed)
    for name in shown:
        if shown.count(name) > 1:
            message = f"Variable {name!r} was chosen more than once."
            raise Refusal("repeated_variable", message, "Each variable at most once in a table.")
    show, shows = query.view.show, ["count", *shares_over(query, variables)]
    if show not in shows:
        message = f"This table has no {show} percentages: they would all be 100."
        allowed = f"One of {', '.join(shows)}."
        offers = [("without percentages", query.changed(show="count"))]
        raise Refusal("no_shares", message, allowed, offers=offers)


def _filters(
    variables: Sequence[OfferedVariable], query: Query, shown: Sequence[str]
) -> tuple[DetailedVariable, ...]:
    """Variables that restrict the population without being shown, as coarse as their codes."""
    by_name = {v.name: v for v in variables}
    found = []
    for name, codes in query.where.items():
        _require(name, by_name)
        if name not in shown:
            found.append(coarsest(by_name[name], codes))
    return tuple(found)


def _check_codes(question: Question) -> None:
    """Every code that is named must be one of the detail that was chosen."""
    query = question.query
    used = {asked.name: asked for asked in question.in_public_order}
    shown = {asked.name: asked for asked in question.shown}
    for name, codes in query.where.items():
        _check_known(used[name], codes)
        _check_apart(used[name], codes)
        if used[name].variable.is_time and name not in shown and len(codes) > 1:
            raise _pooled_refusal(used[name], query)
    for name, groups in query.groups.items():
        _require(name, shown)
        if shown[name].variable.is_time:
            raise _pooled_refusal(shown[name], query)
        most = shown[name].detail.cells - 1  # no more cells than with the categories themselves
        if len(groups) > most:
            label = shown[name].label_inside
            message = f"{len(groups)} groups of {label} are more than it has categories."
            raise Refusal("too_many_groups", message, f"At most {most} groups.")
        for codes in groups.values():
            _check_known(shown[name], codes)
            _check_apart(shown[name], codes)
            _check_within(shown[name], codes, query.where.get(name))
        _check_labels(shown[name], groups)
    for name, codes in query.picked.items():
        _require(name, shown)
        if name not in query.groups:
            _check_known(shown[name], codes)
        elif unknown := [c for c in codes if c not in query.groups[name]]:
            allowed = f"Groups: {', '.join(query.groups[name])}."
            raise Refusal("unknown_code", f"There is no group {unknown[0]!r}.", allowed)
        _check_left(shown[name], codes, query.where.get(name))


def _pooled_refusal(asked: DetailedVariable, query: Query) -> Refusal:
    message = f"Periods are not added up: {asked.label_inside} says when people were counted."
    allowed = f"One period, where.{asked.name}=PERIOD, or several of them in rows or columns."
    groups = {name: made for name, made in query.groups.items() if name != asked.name}
    last = asked.variable.axis.leaves[-1]
    where = query.where if groups != query.groups else {**query.where, asked.name: (last,)}
    offer = (asked.variable.labels_of([last])[0], query.changed(where=where, groups=groups))
    return Refusal("pooled_periods", message, allowed, offers=[offer])


def _check_labels(asked: DetailedVariable, groups: Mapping[str, Sequence[str]]) -> None:
    """A group must not pass for the total, nor for a category on offer that it is not."""
    axis, total = asked.variable.axis, asked.entries[0]
    names_of_total = {_as_read(name) for name in (*axis.total_codes, total.code, total.label)}
    groups_by_name = {_as_read(label): codes for label, codes in groups.items()}
    if names_of_total & {*groups_by_name}:
        message = f"A group of {asked.label_inside} is named like its total."
        raise Refusal("unreadable_group", message, "Another name for the group.")
    variable = asked.variable  # a refusal must not tell codes of levels that are not on offer
    on_offer = {e.code for detail in variable.details for e in variable.entries(detail)}
    for code in on_offer - {*axis.total_codes}:
        for name in (_as_read(code), _as_read(axis.labels.get(code) or code)):
            codes = groups_by_name.get(name)
            if codes is not None and asked.leaves(codes) != asked.leaves([code]):
                message = f"A group of {asked.label_inside} is named like another category."
                raise Refusal("unreadable_group", message, "Another name for the group.")


def _as_read(name: str) -> str:
    """A name as readers tell it from others: without case, invisible signs and width of spaces."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    seen = "".join(c for c in plain if unicodedata.category(c) != "Cf")
    return " ".join(seen.split())


def _require(name: str, known: Iterable[str]) -> None:
    """Refuse a variable that is not among those known."""
    listed = list(known)
    if name not in listed:
        message = f"Variable {name!r} is not in this table. {suggest(name, listed)}"
        raise Refusal("unknown_name", message, f"Variables: {', '.join(listed)}.")


def _check_known(asked: DetailedVariable, codes: Sequence[str]) -> None:
    known = [e.code for e in asked.entries]
    for code in codes:
        if code not in known:
            message = f"{asked.label} has no code {code!r}. {suggest(code, known)}"
            some = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
            raise Refusal("unknown_code", message, f"Codes: {some}.")


def _check_apart(asked: DetailedVariable, codes: Sequence[str]) -> None:
    """Codes that are summed must not overlap: their records would be counted twice."""
    if sum(len(asked.leaves([code])) for code in codes) != len(asked.leaves(codes)):
        message = f"Codes of {asked.label} that are added up overlap."
        raise Refusal("overlapping_codes", message, "Codes of one level, or of branches apart.")


def _check_within(
    asked: DetailedVariable, codes: Sequence[str], population: Sequence[str] | None
) -> None:
    """A group must lie in the population that is counted."""
    if population is not None and not asked.leaves(codes) <= asked.leaves(population):
        message = f"A group of {asked.label_inside} lies outside of the population that is counted."
        raise Refusal("outside_population", message, "Groups of codes within the filter.")


def _check_left(
    asked: DetailedVariable, codes: Sequence[str], population: Sequence[str] | None
) -> None:
    """A table has some period; other variables keep their total."""
    if asked.variable.is_time and population is not None and not {*codes} & {*population}:
        message = f"No period of {asked.label_inside} is left to show."
        raise Refusal("no_period", message, "Periods within the filter.")


def _restrict(cube: Cube, asked: DetailedVariable, codes: Sequence[str]) -> Cube:
    """A variable with the codes within a population; its total is their sum."""
    entries, within = cube.axis(asked.name).entries, asked.leaves(codes)
    kept = [e.code for e in entries if not e.is_total and within >= asked.leaves([e.code])]
    first = next((e for e in entries if e.is_total), CubeEntry("total", "Total", 0, is_sum=True))
    inside = cube.select(asked.name, kept)
    if asked.variable.is_time:
        return inside
    total = cube.sum_over(asked.name, codes)
    return inside.with_slice(asked.name, 0, first, total)
