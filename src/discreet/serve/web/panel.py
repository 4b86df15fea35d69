"""What the panel says of variables and data sets; its template puts a table together from it."""

from __future__ import annotations

from discreet.release.cube import Entry
from discreet.serve.data.dataset import Dataset
from discreet.serve.data.source import Detail, OfferedVariable
from discreet.serve.moves import Placed
from discreet.serve.query import Query
from discreet.serve.web.texts import Texts

_SIZES = ("variables", "cells")


def detail_label(detail: Detail, texts: Texts) -> str:
    """A level's name for readers."""
    label = texts.translated(detail.label).text
    return label[:1].upper() + label[1:]


def summary_of(query: Query, one: Placed, texts: Texts) -> str:
    """How many categories or groups of a variable are shown."""
    groups, picked = query.groups.get(one.name), query.picked.get(one.name)
    if groups:
        return texts.count("groups", len(groups))
    codes = {entry.code for entry in one.entries}
    n = len([entry for entry in one.entries if not entry.is_total])
    if picked:
        written = texts.numbers.written
        shown = written(len({*picked} & codes))
        return str(texts.build.categories.format(shown=shown, all=written(n)))
    return texts.count("categories", n)


def layer_entries(query: Query, one: Placed) -> tuple[Entry, ...]:
    """The categories of a layer, one of which is shown; the total first."""
    groups, picked = query.groups.get(one.name), query.picked.get(one.name)
    if groups:
        return (one.entries[0], *(Entry(g, g, 1, is_sum=False) for g in groups))
    return tuple(e for e in one.entries if not picked or e.is_total or e.code in picked)


def searched(variable: OfferedVariable) -> str:
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
