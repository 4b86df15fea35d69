"""The list of categories that opens beside a table: to pick, to count only some, or to group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from discreet.release.outline import Entry
from discreet.serve.data.dataset import Dataset
from discreet.serve.data.source import Variable
from discreet.serve.query import Query
from discreet.serve.web import moves
from discreet.serve.web.links import Addresses, Link, hidden
from discreet.serve.web.panel import may_group
from discreet.serve.web.texts import Texts

Kind = Literal["pick", "where", "group"]
KINDS: tuple[Kind, ...] = ("pick", "where", "group")
NEW_LABEL, NEW_CODE, NEW_OF = "new.label", "new.code", "new.of"
"""Parameters of the form that makes a group; the page turns them into one of the query."""


@dataclass(frozen=True)
class Box:
    """A category with its tick."""

    entry: Entry
    id: str
    is_ticked: bool


@dataclass(frozen=True)
class Editor:
    """A form with a tick for every category.

    Attributes:
      kind: What the ticks are for.
      name: The parameter that each tick sends.
      edit: The value of `edit` that keeps the list open.
      variable: The variable's label.
      boxes: The categories.
      hidden: What the form sends along unseen.
      close: The page without the list.
      reset: The page without any choice among these categories.
      groups: Links that remove a group, each with the group's label and categories.
      fixed: Links that add one of the office's groups, where visitors make none of their own.
    """

    kind: Kind
    name: str
    edit: str
    variable: str
    boxes: Sequence[Box]
    hidden: Sequence[tuple[str, str]]
    close: Link
    reset: Link | None
    groups: Sequence[tuple[str, str, Link]] = ()
    fixed: Sequence[Link] | None = None


def editor_of(
    dataset: Dataset, query: Query, edit: str, at: Addresses, texts: Texts
) -> Editor | None:
    """The list that `edit` names; none where it names nothing that can be chosen."""
    kind, _, name = edit.partition(".")
    variable = next((v for v in dataset.variables if v.name == name), None)
    if kind not in KINDS or variable is None:
        return None
    if kind == "group" and not may_group(dataset, variable):
        return None
    entries = _entries(query, kind, variable, dataset)
    if not entries:
        return None
    made = _editor(query, kind, variable, entries, at, texts)
    if kind == "group" and dataset.policy.groups == "fixed":
        return replace(made, fixed=_fixed(dataset, query, variable, at))
    return made


def tidied(dataset: Dataset, query: Query) -> Query:
    """The query without choices that choose everything."""
    for one in moves.placed(query, dataset.variables):
        codes = {e.code for e in one.variable.entries(one.detail) if not e.is_total}
        if codes <= {*query.picked.get(one.name, ())}:
            query = moves.picking(query, one.name, ())
    return query


def _entries(query: Query, kind: Kind, variable: Variable, dataset: Dataset) -> list[Entry]:
    """The categories: those of the table's detail, or of every level for a filter."""
    found = moves.placed(query, dataset.variables)
    detail = next((one.detail for one in found if one.name == variable.name), None)
    if detail is None and kind != "where":
        return []
    entries = variable.entries(detail or variable.details[0])
    return [entry for entry in entries if not entry.is_total]


def _editor(
    query: Query, kind: Kind, variable: Variable, entries: Sequence[Entry], at: Addresses,
    texts: Texts,
) -> Editor:  # fmt: skip
    name = variable.name
    ticked = _ticked(query, kind, name, entries)
    boxes = [Box(e, f"box-{k}", e.code in ticked) for k, e in enumerate(entries)]
    parameter = NEW_CODE if kind == "group" else f"{kind}.{name}"
    back = f"v-{name}-group" if kind == "group" else f"v-{name}-choose"
    return Editor(
        kind,
        parameter,
        f"{kind}.{name}",
        variable.label,
        boxes,
        hidden(query, [parameter], [(NEW_OF, name)] if kind == "group" else []),
        Link(texts.pick.close, at.table(query), "close", focus=back),
        _reset(query, kind, name, at, texts),
        _groups(query, variable, entries, at, texts) if kind == "group" else (),
    )


def _ticked(query: Query, kind: Kind, name: str, entries: Sequence[Entry]) -> set[str]:
    if kind == "group":
        return set()
    if kind == "where":
        return set(query.where.get(name, ()))
    return set(query.picked.get(name, ())) or {entry.code for entry in entries}


def _reset(query: Query, kind: Kind, name: str, at: Addresses, texts: Texts) -> Link | None:
    if kind == "pick" and name in query.picked:
        href = at.table(moves.picking(query, name, ()), f"pick.{name}")
        return Link(texts.pick.all, href, "reset", focus="editor")
    if kind == "where" and name in query.where:
        href = at.table(moves.counting_only(query, name, ()), f"where.{name}")
        return Link(texts.pick.where_all, href, "reset", focus="editor")
    return None


def _groups(
    query: Query, variable: Variable, entries: Sequence[Entry], at: Addresses, texts: Texts
) -> list[tuple[str, str, Link]]:
    labels, name = {e.code: e.label for e in entries}, variable.name
    found = []
    for k, (label, codes) in enumerate(query.groups.get(name, {}).items()):
        href = at.table(moves.without_group(query, name, label), f"group.{name}")
        said = texts.pick.group_remove.format(label)
        link = Link(said, href, f"group-{k}", icon="remove", focus="editor")
        found.append((label, ", ".join(labels.get(c, c) for c in codes), link))
    return found


def _fixed(dataset: Dataset, query: Query, variable: Variable, at: Addresses) -> list[Link]:
    """Links that add the office's groups which are not in the table yet."""
    used = query.groups.get(variable.name, {})
    return [
        Link(
            label,
            at.table(
                moves.with_group(query, variable.name, label, codes), f"group.{variable.name}"
            ),
            f"fixed-{k}",
            focus="editor",
        )
        for k, (label, codes) in enumerate(dataset.policy.fixed_groups[variable.name].items())
        if label not in used
    ]
