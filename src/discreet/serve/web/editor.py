"""The list of categories that opens beside a table: to pick, to count only some, or to group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.release.cube import Entry
from discreet.serve import moves
from discreet.serve.data.dataset import Dataset
from discreet.serve.data.source import OfferedVariable
from discreet.serve.query import Query
from discreet.serve.web.panel import may_group

PICK, WHERE, GROUP = "pick", "where", "group"
NEW_LABEL, NEW_CODE, NEW_OF = "new.label", "new.code", "new.of"
"""Parameters of the form that makes a group; the page turns them into one of the query."""


@dataclass(frozen=True, eq=False)
class Editor:
    """A form with a tick for every category.

    Attributes:
      kind: What the ticks are for: `"pick"`, `"where"` or `"group"`.
      variable: The variable.
      entries: Its categories.
      ticked: The codes that are ticked.
    """

    kind: str
    variable: OfferedVariable
    entries: Sequence[Entry]
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


def editor_of(dataset: Dataset, query: Query, edit: str) -> Editor | None:
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
    return Editor(kind, variable, entries, _ticked(query, kind, name, entries))


def tidied(dataset: Dataset, query: Query) -> Query:
    """The query without choices that choose everything."""
    for one in moves.placed(query, dataset.variables):
        codes = {e.code for e in one.entries if not e.is_total}
        if codes <= {*query.picked.get(one.name, ())}:
            query = moves.picking(query, one.name, ())
    return query


def _ticked(query: Query, kind: str, name: str, entries: Sequence[Entry]) -> frozenset[str]:
    everything = [entry.code for entry in entries]
    ticked = {PICK: query.picked.get(name, everything), WHERE: query.where.get(name, ())}
    return frozenset(ticked.get(kind, ()))
