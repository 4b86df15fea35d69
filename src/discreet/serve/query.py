"""A table as a visitor asks for it, and the address that says the same.

A `Query` is what was asked, nothing else: it has not been checked against a data set. Its address
is unique, so that two visitors who ask for the same table ask for the same address.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, get_args
from urllib.parse import parse_qsl, urlencode

from discreet.serve.refusals import Refusal, no_such, one_of

Show = Literal["count", "row", "column", "total"]
"""Figures as they are, or per cent of the row, the column or the whole table."""
Chart = Literal["none", "bars", "lines", "heat", "pyramid"]
SHOWS: tuple[Show, ...] = get_args(Show)
CHARTS: tuple[Chart, ...] = get_args(Chart)
Codes = tuple[str, ...]
_SEPARATOR = "|"  # between a group's label and its codes
# Signs that turn the direction of writing: figures and codes behind such a name read backwards.
_TURNS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
# Signs that no name has. XML, and with it a chart's file, has no form for most of them.
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, 0xFFFE, 0xFFFF)
_IN_NAMES = {sign: " " if chr(sign).isspace() else None for sign in (*_TURNS, *_CONTROLS)}
_NONE: Mapping[str, Any] = MappingProxyType({})
SINGLE = ("show", "totals", "sort", "chart", "unit")
LISTS = ("rows", "columns", "layers")
BY_VARIABLE = ("pick", "where", "group", "layer", "fold")
"""Parameters with the variable behind a dot, `where.age`; all but `layer` may be repeated."""


@dataclass(frozen=True)
class View:
    """How a table is looked at; it changes no figure that is asked for.

    Attributes:
      show: Figures, or per cent of what.
      totals: Whether totals are shown.
      sort: A column by which rows are sorted, `""` for the order of the code lists. `-` in front
        sorts from large to small; columns are named by their codes, joined by `|`.
      chart: The chart beside the table.
      layer: For each variable in layers the code that is shown; the total where none is named.
      folded: For each variable the codes whose parts are not shown.
    """

    show: Show = "count"
    totals: bool = True
    sort: str = ""
    chart: Chart = "none"
    layer: Mapping[str, str] = field(default_factory=lambda: _NONE)
    folded: Mapping[str, Codes] = field(default_factory=lambda: _NONE)


@dataclass(frozen=True)
class Query:
    """What a visitor asks for.

    Attributes:
      rows: Variables or levels in rows, `region` or `region[province]`.
      columns: Those in columns.
      layers: Those of which one code is shown at a time.
      picked: For a variable the codes that are shown; all where none are named.
      where: For a variable the codes that make the population that is counted.
      groups: For a variable the visitor's own groups, label → codes.
      unit: `"count"`, `"weight"` or a measure; `""` for what the data set offers first.
      view: How it is looked at.
    """

    rows: Codes = ()
    columns: Codes = ()
    layers: Codes = ()
    picked: Mapping[str, Codes] = field(default_factory=lambda: _NONE)
    where: Mapping[str, Codes] = field(default_factory=lambda: _NONE)
    groups: Mapping[str, Mapping[str, Codes]] = field(default_factory=lambda: _NONE)
    unit: str = ""
    view: View = View()

    @classmethod
    def parse(cls, parameters: str | Iterable[tuple[str, str]]) -> Query:
        """The query of an address; a parameter that does not exist is refused."""
        if isinstance(parameters, str):
            parameters = parse_qsl(parameters.removeprefix("?"), keep_blank_values=True)
        parser = _QueryParser()
        for name, value in parameters:
            parser.take(name, value)
        return parser.query()

    @property
    def variables(self) -> Codes:
        """Everything in rows, columns and layers, in this order."""
        return (*self.rows, *self.columns, *self.layers)

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The query as parameters of an address, in their one order; defaults are left out."""
        found = [(name, value) for name in LISTS for value in getattr(self, name)]
        found += _code_parameters("pick", self.picked) + _code_parameters("where", self.where)
        for variable, groups in sorted(self.groups.items()):
            found += [(f"group.{variable}", _SEPARATOR.join((g, *c))) for g, c in groups.items()]
        view, plain = self.view, View()
        found += [("unit", self.unit)] if self.unit else []
        found += [] if view.show == plain.show else [("show", view.show)]
        found += [] if view.totals else [("totals", "0")]
        found += [("sort", view.sort)] if view.sort else []
        found += [] if view.chart == plain.chart else [("chart", view.chart)]
        found += [(f"layer.{v}", code) for v, code in sorted(view.layer.items())]
        return found + _code_parameters("fold", view.folded)

    @property
    def address(self) -> str:
        """The query as the query string of an address."""
        return urlencode(self.parameters)

    @property
    def shows(self) -> list[Show]:
        """What can be shown: shares of rows need columns, and shares of columns rows.

        Of periods there are no shares (`answer.shares_over`).
        """
        needed: dict[Show, Codes] = {
            "row": self.columns,
            "column": self.rows,
            "total": (*self.rows, *self.columns),
        }
        return ["count", *(show for show, variables in needed.items() if variables)]

    def changed(self, **parts: Any) -> Query:
        """The query with other parts; those of its view by their names."""
        in_view = {k: v for k, v in parts.items() if k in View.__dataclass_fields__}
        others = {k: v for k, v in parts.items() if k not in in_view}
        return replace(self, view=replace(self.view, **in_view), **others)

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.parameters)))


class _QueryParser:
    """Parameters as they are read."""

    def __init__(self) -> None:
        self.lists: dict[str, list[str]] = {name: [] for name in LISTS}
        self.single: dict[str, str] = {}
        self.coded: dict[str, dict[str, list[str]]] = {name: {} for name in BY_VARIABLE}

    def take(self, name: str, value: str) -> None:
        kind, dot, variable = name.partition(".")
        if dot and variable and kind in self.coded:
            self.coded[kind].setdefault(variable, []).append(value)
        elif name in self.lists:
            self.lists[name] += [value] if value else []
        elif name in SINGLE:
            self.single[name] = value
        else:
            known = [*LISTS, *SINGLE, *(f"{kind}.VARIABLE" for kind in BY_VARIABLE)]
            raise no_such("parameter", name, known, "Parameters", code="unknown_parameter")

    def query(self) -> Query:
        return Query(
            **{name: tuple(values) for name, values in self.lists.items()},
            picked=_freeze(self.coded["pick"]),
            where=_freeze(self.coded["where"]),
            groups={v: _groups(v, texts) for v, texts in sorted(self.coded["group"].items())},
            unit=self.single.get("unit", ""),
            view=self.view(),
        )

    def view(self) -> View:
        single = self.single
        return View(
            show=one_of("show", single.get("show", "count"), SHOWS),
            totals=one_of("totals", single.get("totals", "1"), ("0", "1")) == "1",
            sort=single.get("sort", ""),
            chart=one_of("chart", single.get("chart", "none"), CHARTS),
            layer={v: codes[-1] for v, codes in sorted(self.coded["layer"].items())},
            folded=_freeze(self.coded["fold"]),
        )


def _code_parameters(name: str, by_variable: Mapping[str, Codes]) -> list[tuple[str, str]]:
    return [(f"{name}.{v}", c) for v, codes in sorted(by_variable.items()) for c in codes]


def _freeze(coded: Mapping[str, Sequence[str]]) -> dict[str, Codes]:
    """Codes by variable, each once and in one order, so that equal questions are equal."""
    kept = {v: tuple(sorted({c for c in codes if c})) for v, codes in sorted(coded.items())}
    return {v: codes for v, codes in kept.items() if codes}


def _groups(variable: str, texts: Sequence[str]) -> dict[str, Codes]:
    found: dict[str, Codes] = {}
    for text in texts:
        written, *codes = text.split(_SEPARATOR)
        label = written.translate(_IN_NAMES).strip()
        if not label or not codes or label in found:
            message = f"A group of {variable!r} cannot be read."
            allowed = f"group.{variable}=LABEL{_SEPARATOR}CODE{_SEPARATOR}CODE, each label once."
            raise Refusal("unreadable_group", message, allowed)
        found[label] = tuple(sorted(set(codes)))
    return found
