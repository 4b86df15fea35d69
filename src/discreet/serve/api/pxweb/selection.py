"""From what a program selects to a query, and from its answer to the cells that were selected."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from discreet.errors import suggest
from discreet.release.cube import Cube, CubeAxis
from discreet.serve.answer import Answer
from discreet.serve.api.pxweb.metadata import (
    SEE_METADATA,
    codelist_for,
    widest,
    with_contents,
)
from discreet.serve.api.pxweb.models import CONTENTS
from discreet.serve.data.dataset import Dataset
from discreet.serve.data.source import DetailedVariable, OfferedVariable, by_detail, coarsest
from discreet.serve.query import Query
from discreet.serve.refusals import Refusal, no_such
from discreet.serve.web.texts import Texts

_CALL = re.compile(r"(top|bottom|range|from|to)\((.*)\)", re.IGNORECASE | re.DOTALL)
_MOST_PATTERNS = 100  # of one variable, since each is compared with all of its codes


@dataclass(frozen=True)
class Wish:
    """What a program selects of one variable, as it says it.

    Attributes:
      codes: Codes or expressions; none eliminate the variable.
      codelist: A code list to take the codes from; the variable's own if empty.
    """

    codes: tuple[str, ...] = ()
    codelist: str = ""


@dataclass(frozen=True, eq=False)
class VariableChoice(DetailedVariable):
    """What is selected of one variable: codes of the smallest detail that has them, in order."""

    codes: tuple[str, ...]

    @property
    def is_total(self) -> bool:
        """Whether nothing but the total is selected, which needs no place in the crossing."""
        return self.codes == (self.variable.axis.total,)


@dataclass(frozen=True, eq=False)
class CellSelection:
    """What a program selects of a table.

    Attributes:
      dataset: The table.
      variables: The variables that are shown.
      units: What is published.
      heading: The variables in columns.
    """

    dataset: Dataset
    variables: tuple[VariableChoice, ...]
    units: tuple[str, ...]
    heading: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, dataset: Dataset, wishes: Mapping[str, Wish], heading: Sequence[str] = ()
    ) -> CellSelection:
        """The selection that wishes mean; without any it is the default one."""
        named = wishes or default_wishes(dataset)
        known = {v.name: v for v in dataset.variables}
        for name in (*named, *heading):
            if name not in known and name != CONTENTS:
                raise no_such("variable", name, [*known, CONTENTS], allowed=SEE_METADATA)
        shown = [
            _select(dataset, variable, named[variable.name])
            for variable in dataset.variables
            if variable.name in named and named[variable.name].codes
        ]
        units = dataset.source.units
        wish = named.get(CONTENTS, Wish())
        kept = choose_codes(CONTENTS, units, wish.codes) if wish.codes else list(units[:1])
        return cls(dataset, tuple(shown), tuple(kept), tuple(heading))

    @property
    def in_columns(self) -> list[str]:
        """The variables that are shown in columns."""
        return [s.name for s in self.variables if s.name in self.heading]

    @property
    def cells(self) -> int:
        """The cells that are selected."""
        return math.prod(len(s.codes) for s in self.variables) * len(self.units)

    def query(self, unit: str) -> Query:
        """The question whose answer holds the cells; variables at their total are left out."""
        crossed = [s for s in self.variables if not s.is_total]
        if not crossed:  # a table needs a variable, even if its total alone is shown
            return Query(rows=(self.dataset.variables[0].smallest.name,), unit=unit)
        picked = {s.name: tuple(sorted(s.codes)) for s in crossed}
        columns = [s for s in crossed if s.name in self.heading]
        return Query(
            rows=tuple(s.detail.name for s in crossed if s not in columns),
            columns=tuple(s.detail.name for s in columns),
            picked=picked,
            unit=unit,
        )

    def ask(self) -> dict[str, Answer]:
        """The answers, by unit."""
        return {unit: self.dataset.answer(self.query(unit)) for unit in self.units}

    def cube(self, answers: Mapping[str, Answer], texts: Texts) -> Cube:
        """The selected cells: the variables in public order, then the units."""
        return with_contents({u: self._cells(a.cube) for u, a in answers.items()}, texts)

    def _cells(self, cube: Cube) -> Cube:
        shown = {s.name: s for s in self.variables}
        for axis in cube.axes:
            if axis.name not in shown or shown[axis.name].is_total:
                cube = cube.at(axis.name, axis.codes[axis.total or 0])
            else:
                cube = cube.select(axis.name, shown[axis.name].codes)
        for selected in self.variables:
            if selected.is_total:
                total = CubeAxis(selected.name, selected.variable.label, selected.entries[:1])
                cube = Cube.stack(total, [cube])
        placed = cube.reorder([s.name for s in self.variables])
        return placed.with_labels([s.variable.label for s in self.variables])


def default_wishes(dataset: Dataset) -> dict[str, Wish]:
    """What is shown when nothing is selected: the data set's first table."""
    found = {CONTENTS: Wish(dataset.source.units[:1])}
    for name, asked in by_detail(dataset.variables).items():
        if name in dataset.first.variables:
            found[asked.name] = Wish(tuple(entry.code for entry in asked.entries))
    return found


def split_expressions(text: str) -> list[str]:
    """The expressions of a list with commas; those within brackets do not separate."""
    found, closing = [""], ""
    for sign in text:
        if sign == "," and not closing:
            found.append("")
            continue
        if not closing and (sign == "(" or (sign == "[" and not found[-1].strip())):
            closing = ")" if sign == "(" else "]"
        elif sign == closing:
            closing = ""
        found[-1] += sign
    parts = [part.strip() for part in found]
    return [part[1:-1] if part[0] == "[" and part[-1] == "]" else part for part in parts if part]


def choose_codes(variable: str, codes: Sequence[str], expressions: Sequence[str]) -> list[str]:
    """The codes that any of the expressions means, in the order of the list.

    Args:
      variable: The variable's name, for errors.
      codes: Its codes, in their order.
      expressions: Codes, patterns with `*` and `?`, or calls such as `top(5)`.
    """
    known = set(codes)
    found = {expression for expression in expressions if expression in known}
    others = list(dict.fromkeys(e for e in expressions if e not in known))
    if len(others) > _MOST_PATTERNS:
        message = f"{len(others):,} selections of {variable!r} are no codes of it."
        raise Refusal("too_many_patterns", message, f"At most {_MOST_PATTERNS} expressions.")
    for expression in others:
        meant = _codes_of(variable, codes, expression)
        if not meant:
            message = f"Value {expression!r} is not valid for variable {variable!r}. "
            message += suggest(expression, list(codes))
            raise Refusal("unknown_code", message, "See the metadata of the table.")
        found |= set(meant)
    return [code for code in codes if code in found]


def matches(text: str, pattern: str) -> bool:
    """Whether a pattern with `*` and `?` describes a text; no pattern takes long."""
    return fnmatchcase(text, pattern.replace("[", "[[]"))


def _select(dataset: Dataset, variable: OfferedVariable, wish: Wish) -> VariableChoice:
    """The codes of a wish in the smallest detail that has them all."""
    if wish.codelist:
        found = codelist_for(dataset, variable, wish.codelist)
        codes = choose_codes(variable.name, [e.code for e in found.categories], wish.codes)
        return VariableChoice(variable, found.detail, tuple(codes))
    codes = choose_codes(variable.name, [e.code for e in widest(variable).entries], wish.codes)
    return VariableChoice(variable, coarsest(variable, codes).detail, tuple(codes))


def _codes_of(variable: str, codes: Sequence[str], expression: str) -> Sequence[str]:
    """The codes that a call such as `top(5)`, or a pattern, means."""
    call = _CALL.fullmatch(expression.strip())
    if call is None:
        is_pattern = "*" in expression or "?" in expression
        return [code for code in codes if matches(code, expression)] if is_pattern else ()
    name, given = call[1].lower(), [part.strip() for part in call[2].split(",")]
    if name in ("top", "bottom"):
        if not 1 <= len(given) <= 2 or not all(re.fullmatch(r"[0-9]{1,9}", n) for n in given):
            allowed = "top(N), top(N,OFFSET), bottom(N) or bottom(N,OFFSET)"
            raise _malformed_selection(variable, allowed)
        count, offset = int(given[0]), int(given[1]) if len(given) == 2 else 0
        return (codes if name == "top" else codes[::-1])[offset : offset + count]
    if name == "range":
        if len(given) != 2:
            raise _malformed_selection(variable, "range(FIRST,LAST)")
        return codes[_place(variable, codes, given[0]) : _place(variable, codes, given[1]) + 1]
    place = _place(variable, codes, ",".join(given))  # a code may hold commas
    return codes[place:] if name == "from" else codes[: place + 1]


def _place(variable: str, codes: Sequence[str], code: str) -> int:
    if code not in codes:
        message = f"Value {code!r} is not valid for variable {variable!r}. "
        raise Refusal("unknown_code", message + suggest(code, list(codes)), "See the metadata.")
    return list(codes).index(code)


def _malformed_selection(variable: str, allowed: str) -> Refusal:
    return Refusal("unreadable", f"A selection of {variable!r} cannot be read.", f"{allowed}.")
