"""What the panel says of variables and data sets, and the list of categories beside a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.release.cube import CubeEntry
from discreet.serve import moves
from discreet.serve.data.dataset import Dataset
from discreet.serve.data.source import Detail, OfferedVariable
from discreet.serve.moves import Placed
from discreet.serve.query import Query
from discreet.serve.web.texts import Texts

_SIZES = ("variables", "cells")
PICK, WHERE, GROUP = "pick", "where", "group"
NEW_LABEL, NEW_CODE, NEW_OF = "new.label", "new.code", "new.of"
"""Parameters of the form that makes a group; the page turns them into one of the query."""


def detail_label(detail: Detail, texts: Texts) -> str:
    """A level's name for readers."""
    label = texts.translate(detail.label).text
    return label[:1].upper() + label[1:]


def summary_of(query: Query, one: Placed, texts: Texts) -> str:
    """How many categories or groups of a variable are shown."""
    groups, picked = query.groups.get(one.name), query.picked.get(one.name)
    if groups:
        return texts.count("groups", len(groups))
    codes = {entry.code for entry in one.entries}
    n = len([entry for entry in one.entries if not entry.is_total])
    if picked:
        format_number = texts.numbers.format
        shown = format_number(len({*picked} & codes))
        return str(texts.build.categories.format(shown=shown, all=format_number(n)))
    return texts.count("categories", n)


def layer_entries(query: Query, one: Placed) -> tuple[CubeEntry, ...]:
    """The categories of a layer, one of which is shown; the total first."""
    groups, picked = query.groups.get(one.name), query.picked.get(one.name)
    if groups:
        return (one.entries[0], *(CubeEntry(g, g, 1, is_sum=False) for g in groups))
    return tuple(e for e in one.entries if not picked or e.is_total or e.code in picked)


def search_text(variable: OfferedVariable) -> str:
    """What a search finds a variable by."""
    words = [variable.label, variable.name, *(detail.label for detail in variable.details)]
    return " ".join(words).lower()


def limits_of(dataset: Dataset, texts: Texts) -> str:
    """The limits on the size of a table, as far as the office tells them."""
    told = dataset.policy.public()
    shown = [texts.count(what, told[f"max_{what}"]) for what in _SIZES if f"max_{what}" in told]
    return str(texts.build.limits.format(texts.table.and_.join(shown))) if shown else ""


def may_group(dataset: Dataset, variable: OfferedVariable) -> bool:
    """Whether visitors may put groups of a variable into a table, their own or the office's."""
    policy = dataset.policy
    if policy.groups == "fixed":
        return variable.name in policy.fixed_groups
    return policy.groups == "own" and len(variable.details[-1].levels[-1]) > 2


def unit_label(unit: str, texts: Texts) -> str:
    """What is counted, for readers."""
    return str(getattr(texts.units, unit, unit))


@dataclass(frozen=True, eq=False)
class CategoryList:
    """A form with a tick for every category.

    Attributes:
      kind: What the ticks are for: `"pick"`, `"where"` or `"group"`.
      variable: The variable.
      entries: Its categories.
      ticked: The codes that are ticked.
    """

    kind: str
    variable: OfferedVariable
    entries: Sequence[CubeEntry]
    ticked: frozenset[str]

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.variable.name

    @property
    def edit(self) -> str:
        """The value of `edit` that keeps the list open."""
        return f"{self.kind}.{self.name}"

    @property
    def parameter(self) -> str:
        """The parameter that each tick sends."""
        return NEW_CODE if self.kind == GROUP else self.edit


def category_list(dataset: Dataset, query: Query, edit: str) -> CategoryList | None:
    """The list that `edit` names; none where it names nothing that can be chosen."""
    kind, _, name = edit.partition(".")
    variable = next((v for v in dataset.variables if v.name == name), None)
    if kind not in (PICK, WHERE, GROUP) or variable is None:
        return None
    if kind == GROUP and not may_group(dataset, variable):
        return None
    found = (one.detail for one in moves.placed(query, dataset.variables) if one.name == name)
    detail = next(found, variable.details[0] if kind == WHERE else None)
    if detail is None:
        return None
    entries = [entry for entry in variable.entries(detail) if not entry.is_total]
    everything = [entry.code for entry in entries]
    ticked = {PICK: query.picked.get(name, everything), WHERE: query.where.get(name, ())}
    return CategoryList(kind, variable, entries, frozenset(ticked.get(kind, ())))


def drop_full_choices(dataset: Dataset, query: Query) -> Query:
    """The query without choices that choose everything."""
    for one in moves.placed(query, dataset.variables):
        codes = {e.code for e in one.entries if not e.is_total}
        if codes <= {*query.picked.get(one.name, ())}:
            query = moves.pick(query, one.name, ())
    return query
