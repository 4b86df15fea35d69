"""What a visitor can do to a table, each as the query that comes of it.

Every move keeps the visitor's other choices as far as they still have a meaning: codes that are not
part of a new level, a layer of a variable that left the layers, or a sort by a column that is gone
are dropped, everything else stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from discreet.serve.data.source import Detail, DetailedVariable, OfferedVariable, by_detail
from discreet.serve.query import Codes, Query

Place = Literal["rows", "columns", "layers"]
PLACES: tuple[Place, ...] = ("rows", "columns", "layers")


@dataclass(frozen=True, eq=False)
class Placed(DetailedVariable):
    """A variable where it stands in a table."""

    place: Place
    rank: int


def placed(query: Query, variables: Iterable[OfferedVariable]) -> list[Placed]:
    """The variables of a query in their places; names that do not exist are passed over.

    A name that stands there hundreds of times would fill a page of megabytes: it is listed once.
    """
    known = by_detail(variables)
    return [
        Placed(known[name].variable, known[name].detail, place, rank)
        for place in PLACES
        for rank, name in enumerate(n for n in dict.fromkeys(getattr(query, place)) if n in known)
    ]


def add(query: Query, place: Place, variable: OfferedVariable, detail: Detail) -> Query:
    """One more variable in a place; a filter keeps the codes that its detail has.

    A table of one period becomes one of all of them.
    """
    known = set() if variable.is_time else {entry.code for entry in variable.entries(detail)}
    where = _keep_codes(query.where, variable.name, known)
    return _relay(query.changed(where=where), {place: (*getattr(query, place), detail.name)})


def removed(query: Query, one: Placed) -> Query:
    """The table without a variable; what was chosen of it is gone, but not a filter."""
    left = _relay(query, _take_out(query, one))
    return left.changed(
        picked=_with(left.picked, one.name, ()),
        groups={v: groups for v, groups in left.groups.items() if v != one.name},
        folded=_with(left.view.folded, one.name, ()),
    )


def move(query: Query, one: Placed, place: Place) -> Query:
    """A variable in another place."""
    lists = _take_out(query, one)
    lists[place] = (*lists[place], one.detail.name)
    return _relay(query, lists)


def move_up(query: Query, one: Placed) -> Query:
    """A variable before the one that stood before it."""
    names = list(getattr(query, one.place))
    k = max(names.index(one.detail.name), 1)  # one that was named twice stands first as well
    names[k - 1], names[k] = names[k], names[k - 1]
    return _relay(query, {one.place: tuple(names)})


def swap_sides(query: Query) -> Query:
    """Rows and columns exchanged; percentages turn with them."""
    turned: Mapping[str, Any] = {"row": "column", "column": "row"}
    show = turned.get(query.view.show, query.view.show)
    return _relay(query.changed(show=show), {"rows": query.columns, "columns": query.rows})


def at_level(query: Query, one: Placed, detail: Detail) -> Query:
    """A variable in another detail; of the codes that were chosen those stay that it has."""
    names = getattr(query, one.place)
    there = tuple(detail.name if n == one.detail.name else n for n in names)
    known = {entry.code for entry in one.variable.entries(detail)}
    changes = {
        "picked": _keep_codes(query.picked, one.name, known),
        "where": _keep_codes(query.where, one.name, known),
        "folded": _keep_codes(query.view.folded, one.name, known),
        "layer": {v: c for v, c in query.view.layer.items() if v != one.name or c in known},
        "groups": {
            v: groups
            for v, groups in query.groups.items()
            if v != one.name or all(known.issuperset(codes) for codes in groups.values())
        },
    }
    return _relay(query.changed(**changes), {one.place: there})


def pick(query: Query, variable: str, codes: Iterable[str]) -> Query:
    """Only these codes of a variable; all of them when there are none."""
    return query.changed(picked=_with(query.picked, variable, tuple(sorted(codes))))


def counting_only(query: Query, variable: str, codes: Iterable[str]) -> Query:
    """Only the population with these codes; everybody when there are none."""
    return query.changed(where=_with(query.where, variable, tuple(sorted(codes))))


def with_group(query: Query, variable: str, label: str, codes: Iterable[str]) -> Query:
    """One more group of codes, under the visitor's own label."""
    groups = {**query.groups.get(variable, {}), label: tuple(sorted({*codes}))}
    kept = {v: c for v, c in query.picked.items() if v != variable}
    return query.changed(groups={**query.groups, variable: groups}, picked=kept)


def without_group(query: Query, variable: str, label: str) -> Query:
    """The table without one of the visitor's groups."""
    left = {k: codes for k, codes in query.groups[variable].items() if k != label}
    others = {v: groups for v, groups in query.groups.items() if v != variable}
    kept = {v: c for v, c in query.picked.items() if v != variable}
    return query.changed(groups={**others, variable: left} if left else others, picked=kept)


def toggle_fold(query: Query, variable: str, code: str) -> Query:
    """A code folded where it was not, and the other way round."""
    codes = tuple(sorted({*query.view.folded.get(variable, ())} ^ {code}))
    return query.changed(folded=_with(query.view.folded, variable, codes))


def next_sort(query: Query, column: str) -> Query:
    """Rows by a column: from large to small, then from small to large, then as they were."""
    steps = {f"-{column}": column, column: ""}
    return query.changed(sort=steps.get(query.view.sort, f"-{column}"))


def _relay(query: Query, lists: Mapping[str, Codes]) -> Query:
    """Other lists; a layer, a sort or shares that these leave without a meaning are dropped."""
    changed = query.changed(**lists)
    in_layers = {name.partition("[")[0] for name in changed.layers}
    layer = {v: code for v, code in changed.view.layer.items() if v in in_layers}
    sort = changed.view.sort if changed.columns == query.columns else ""
    show = changed.view.show if changed.view.show in changed.shows else "count"
    return changed.changed(layer=layer, sort=sort, show=show)


def _take_out(query: Query, one: Placed) -> dict[str, Codes]:
    return {
        place: tuple(n for n in getattr(query, place) if n != one.detail.name) for place in PLACES
    }


def _keep_codes(chosen: Mapping[str, Codes], variable: str, known: set[str]) -> dict[str, Codes]:
    codes = tuple(code for code in chosen.get(variable, ()) if code in known)
    return _with(chosen, variable, codes)


def _with(chosen: Mapping[str, Codes], variable: str, codes: Codes) -> dict[str, Codes]:
    others = {v: c for v, c in chosen.items() if v != variable}
    return dict(sorted({**others, variable: codes}.items())) if codes else others
