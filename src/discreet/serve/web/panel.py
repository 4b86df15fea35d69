"""The panel in which a table is put together: variables in their places, and what can be added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.release.outline import Entry
from discreet.serve.data.dataset import Dataset
from discreet.serve.data.source import Detail, Variable
from discreet.serve.query import Query
from discreet.serve.web import moves
from discreet.serve.web.links import Addresses, Link, hidden
from discreet.serve.web.moves import PLACES, Place, Placed
from discreet.serve.web.texts import Texts


@dataclass(frozen=True)
class LayerChoice:
    """The categories of a layer, one of which is shown."""

    variable: str
    label: str
    entries: tuple[Entry, ...]
    chosen: str
    hidden: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Card:
    """A variable in the table: its level, its categories, and where it can go."""

    name: str
    label: str
    summary: str
    levels: Sequence[Link]
    moves: Sequence[Link]
    choices: Sequence[Link]
    layer: LayerChoice | None = None


@dataclass(frozen=True)
class Offer:
    """A variable that can be added.

    Attributes:
      label: Its name for readers.
      note: How many categories it has.
      words: What a search finds it by.
      links: Where it can go.
    """

    label: str
    note: str
    words: str
    links: Sequence[Link]


@dataclass(frozen=True)
class Filter:
    """A variable that restricts the population."""

    label: str
    categories: str
    change: Link
    remove: Link


@dataclass(frozen=True)
class Panel:
    """All that can be chosen."""

    cards: dict[Place, Sequence[Card]]
    offers: Sequence[Offer]
    filters: Sequence[Filter]
    more_filters: Sequence[Link]
    units: Sequence[Link]
    swap: Link
    limits: str


def panel_of(dataset: Dataset, query: Query, at: Addresses, texts: Texts) -> Panel:
    """The panel of a query, whether the query can be answered or not."""
    return _Maker(dataset, query, at, texts).panel()


def detail_label(detail: Detail, texts: Texts) -> str:
    """A level's name for readers."""
    label = texts.translated(detail.label).text
    return label[:1].upper() + label[1:]


class _Maker:
    """What the parts of a panel have in common."""

    def __init__(self, dataset: Dataset, query: Query, at: Addresses, texts: Texts) -> None:
        self.dataset, self.query, self.at, self.texts = dataset, query, at, texts
        self.placed = moves.placed(query, dataset.variables)

    def panel(self) -> Panel:
        used = {one.name for one in self.placed}
        variables, build = self.dataset.variables, self.texts.build
        cards: dict[Place, Sequence[Card]] = {
            place: [self.card(one) for one in self.placed if one.place == place] for place in PLACES
        }
        return Panel(
            cards,
            [self.offer(v) for v in variables if v.name not in used],
            [self.filter(v) for v in variables if v.name in self.query.where],
            [self.more_filter(v) for v in variables if v.name not in self.query.where],
            self.units(),
            Link(build.swap, self.table(moves.swapped(self.query)), "swap"),
            limits_of(self.dataset, self.texts),
        )

    def table(self, query: Query, edit: str = "") -> str:
        return self.at.table(query, edit)

    def card(self, one: Placed) -> Card:
        name, label = one.name, one.variable.label
        return Card(
            name,
            label,
            self.summary(one),
            self.levels(one),
            self.moves(one, label),
            self.choices(one, label),
            self.layer(one) if one.place == "layers" else None,
        )

    def summary(self, one: Placed) -> str:
        groups, picked = self.query.groups.get(one.name), self.query.picked.get(one.name)
        if groups:
            return self.texts.count("groups", len(groups))
        entries = one.variable.entries(one.detail)
        written = self.texts.numbers.written
        n = len([e for e in entries if not e.is_total])
        if picked:
            known = len({*picked} & {e.code for e in entries})
            return str(self.texts.build.categories.format(shown=written(known), all=written(n)))
        return self.texts.count("categories", n)

    def levels(self, one: Placed) -> list[Link]:
        if len(one.variable.details) == 1:
            return []
        return [
            Link(
                detail_label(detail, self.texts),
                self.table(moves.at_level(self.query, one, detail)),
                f"v-{one.name}-level-{rank}",
                is_current=detail.name == one.detail.name,
            )
            for rank, detail in enumerate(one.variable.details)
        ]

    def moves(self, one: Placed, label: str) -> list[Link]:
        build, query = self.texts.build, self.query
        found = []
        if one.rank > 0:
            up = self.table(moves.raised(query, one))
            found.append(Link(build.up.format(label), up, f"v-{one.name}-up", icon="up"))
        for place in PLACES:
            if place != one.place:
                said = getattr(build, f"to_{place}").format(label)
                href = self.table(moves.moved(query, one, place))
                found.append(Link(said, href, f"v-{one.name}-to-{place}", icon=place))
        out = self.table(moves.removed(query, one))
        gone = f"add-{one.name}-{one.place}"
        said = build.remove.format(label)
        found.append(Link(said, out, f"v-{one.name}-remove", icon="remove", focus=gone))
        return found

    def choices(self, one: Placed, label: str) -> list[Link]:
        build, name = self.texts.build, one.name
        found = []
        if name not in self.query.groups:
            href = self.table(self.query, f"pick.{name}")
            said = build.choose_label.format(label)
            found.append(Link(build.choose, href, f"v-{name}-choose", said=said, focus="editor"))
        if may_group(self.dataset, one.variable):
            href = self.table(self.query, f"group.{name}")
            said = build.group_label.format(label)
            found.append(Link(build.group, href, f"v-{name}-group", said=said, focus="editor"))
        return found

    def layer(self, one: Placed) -> LayerChoice:
        entries = one.variable.entries(one.detail)
        groups, picked = self.query.groups.get(one.name), self.query.picked.get(one.name)
        if groups:
            entries = (entries[0], *(Entry(g, g, 1, is_sum=False) for g in groups))
        elif picked:
            entries = tuple(e for e in entries if e.is_total or e.code in picked)
        chosen = self.query.view.layer.get(one.name, entries[0].code)
        name = f"layer.{one.name}"
        return LayerChoice(name, one.variable.label, entries, chosen, hidden(self.query, [name]))

    def offer(self, variable: Variable) -> Offer:
        build = self.texts.build
        links = [
            Link(
                getattr(build, place.removesuffix("s")),
                self.table(moves.added(self.query, place, variable, variable.smallest)),
                f"add-{variable.name}-{place}",
                said=getattr(build, f"add_to_{place}").format(variable.label),
                focus=f"v-{variable.name}-choose",
            )
            for place in PLACES
        ]
        most = max(detail.cells for detail in variable.details) - 1
        words = [variable.label, variable.name, *(d.label for d in variable.details)]
        note = self.texts.count("categories", most)
        return Offer(variable.label, note, " ".join(words).lower(), links)

    def filter(self, variable: Variable) -> Filter:
        build, name = self.texts.build, variable.name
        labels = {e.code: e.label for d in variable.details for e in variable.entries(d)}
        shown = ", ".join(labels.get(code, code) for code in self.query.where[name])
        change = self.table(self.query, f"where.{name}")
        everybody = self.table(moves.counting_only(self.query, name, ()))
        return Filter(
            variable.label,
            shown,
            Link(
                build.change_filter, change, f"f-{name}-change",
                said=build.change_filter_label.format(variable.label), focus="editor",
            ),
            Link(
                build.remove_filter.format(variable.label), everybody, f"f-{name}-remove",
                icon="remove", focus=f"f-{name}-add",
            ),
        )  # fmt: skip

    def more_filter(self, variable: Variable) -> Link:
        href = self.table(self.query, f"where.{variable.name}")
        said = self.texts.build.filter_label.format(variable.label)
        return Link(variable.label, href, f"f-{variable.name}-add", said=said, focus="editor")

    def units(self) -> list[Link]:
        offered = self.dataset.source.units
        if len(offered) < 2:
            return []
        chosen = self.query.unit or offered[0]
        return [
            Link(
                unit_label(unit, self.texts),
                self.table(self.query.changed(unit="" if unit == offered[0] else unit)),
                f"unit-{unit}",
                is_current=unit == chosen,
            )
            for unit in offered
        ]


_SIZES = ("variables", "cells")


def limits_of(dataset: Dataset, texts: Texts) -> str:
    """The limits on the size of a table, as far as the office tells them."""
    told = dataset.policy.public()
    shown = [texts.count(what, told[f"max_{what}"]) for what in _SIZES if f"max_{what}" in told]
    return str(texts.build.limits.format(texts.table.and_.join(shown))) if shown else ""


def may_group(dataset: Dataset, variable: Variable) -> bool:
    """Whether visitors may put groups of a variable into a table, their own or the office's."""
    policy = dataset.policy
    if policy.groups == "fixed":
        return variable.name in policy.fixed_groups
    return policy.groups == "own" and len(variable.details[-1].levels[-1]) > 2


def unit_label(unit: str, texts: Texts) -> str:
    """What is counted, for readers."""
    return str(getattr(texts.units, unit, unit))
