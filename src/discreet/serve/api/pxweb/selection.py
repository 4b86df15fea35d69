"""From what a program selects to a query, and from its answer to the cells that were selected."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate

from discreet.errors import suggest
from discreet.release.cube import Cube, CubeAxis
from discreet.serve.answer import Answer
from discreet.serve.api.pxweb.metadata import (
    SEE_METADATA,
    Placement,
    codelist_for,
    period_axis,
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
    codelist: str = ""

    @property
    def is_total(self) -> bool:
        """Whether nothing but the total is selected, which needs no place in the crossing."""
        return self.codes == (self.variable.axis.total,)


def place_variables(wish: Placement, shown: Sequence[str]) -> Placement:
    """The place of every variable that is shown; what cannot be placed is refused.

    Variables that are named nowhere stand in rows, or in columns where rows alone are named; what
    is published stands in columns.
    """
    heading, stub = ([name_among(shown, n) for n in names] for names in (wish.heading, wish.stub))
    named = [*heading, *stub]
    if len({*named}) < len(named):
        twice = next(name for name in named if named.count(name) > 1)
        message = f"Variable {twice!r} has two places."
        raise Refusal("two_places", message, "Each variable in heading or in stub, once.")
    rest = [name for name in shown if name not in named]
    in_columns = [n for n in rest if n == CONTENTS or (stub and not heading)]
    in_rows = [n for n in rest if n not in in_columns]
    return Placement((*heading, *in_columns), (*stub, *in_rows))


@dataclass(frozen=True, eq=False)
class CellSelection:
    """What a program selects of a table.

    Attributes:
      dataset: The table.
      variables: The variables that are shown.
      units: What is published.
      placement: Where each variable that is shown stands.
      period: The variable of the one period, where it is shown.
    """

    dataset: Dataset
    variables: tuple[VariableChoice, ...]
    units: tuple[str, ...]
    placement: Placement
    period: CubeAxis | None = None

    @classmethod
    def of(
        cls, dataset: Dataset, wishes: Mapping[str, Wish], placement: Placement | None = None
    ) -> CellSelection:
        """The selection that wishes mean, by selectable names; without any it is the default."""
        named, period = wishes or default_wishes(dataset), period_axis(dataset)
        found = (_select(dataset, v, named[v.name]) for v in dataset.variables if v.name in named)
        chosen = tuple(choice for choice in found if choice.codes)
        if dataset.time and dataset.time not in [choice.name for choice in chosen]:
            message = f"Variable {dataset.time!r} needs a selection: periods are not added up."
            raise Refusal("missing_selection", message, SEE_METADATA)
        units, wish = dataset.units, named.get(CONTENTS, Wish())
        kept = choose_codes(CONTENTS, units, wish.codes) or list(units[:1])
        has_period = period is not None and choose_codes(
            period.name, period.codes, named.get(period.name, Wish()).codes
        )
        shown = [*(choice.name for choice in chosen)]
        shown += [period.name] if period and has_period else []
        placed = place_variables(placement or Placement(), [*shown, CONTENTS])
        return cls(dataset, chosen, tuple(kept), placed, period if has_period else None)

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
        columns = [s for s in crossed if s.name in self.placement.heading]
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
        """The selected cells: the variables in rows, then those in columns."""
        cells = with_contents(
            self.dataset, {u: self._cells(a.cube) for u, a in answers.items()}, texts
        )
        return cells.reorder((*self.placement.stub, *self.placement.heading))

    @property
    def codes(self) -> dict[str, tuple[str, ...]]:
        """The codes that are selected, by variable."""
        found = {choice.name: choice.codes for choice in self.variables}
        found |= {self.period.name: self.period.codes} if self.period else {}
        return {**found, CONTENTS: self.units}

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
        labelled = placed.with_labels([s.variable.label for s in self.variables])
        return Cube.stack(self.period, [labelled]) if self.period else labelled


def selectable(dataset: Dataset) -> list[str]:
    """The names of all that a program can select."""
    period = period_axis(dataset)
    names = [v.name for v in dataset.variables]
    return [*names, *([period.name] if period else []), CONTENTS]


def default_wishes(dataset: Dataset) -> dict[str, Wish]:
    """What is shown when nothing is selected: the data set's first table."""
    found, period = {CONTENTS: Wish(dataset.units[:1])}, period_axis(dataset)
    found |= {period.name: Wish(period.codes)} if period else {}
    for name, asked in by_detail(dataset.variables).items():
        if name in dataset.first.variables:
            found[asked.name] = Wish(tuple(entry.code for entry in asked.entries))
    if dataset.time:  # the last period, where the first table shows none
        found.setdefault(dataset.time, Wish(dataset.periods[-1:]))
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


def name_among(known: Sequence[str], name: str) -> str:
    """The variable of this name, in capitals or not.

    Raises:
      Refusal: There is none, or it is not selected.
    """
    for found in (name, *(n for n in known if n.casefold() == name.casefold())):
        if found in known:
            return found
    raise no_such("variable", name, known, allowed=SEE_METADATA)


def choose_codes(
    variable: str, codes: Sequence[str], expressions: Sequence[str], *, is_time: bool = False
) -> list[str]:
    """The codes that any of the expressions means, in the order of the list.

    Capitals make no difference, but a code that is written exactly is that one alone.

    Args:
      variable: The variable's name, for errors.
      codes: Its codes, in their order.
      expressions: Codes, patterns with `*` and `?`, or calls such as `top(5)`.
      is_time: Whether the codes are periods, of which the latest are the top.
    """
    known, folded = set(codes), _by_fold(codes)
    found, others = set[str](), list[str]()
    for expression in dict.fromkeys(expressions):
        if expression in known:
            found.add(expression)
        elif expression.casefold() in folded:
            found |= {*folded[expression.casefold()]}
        else:
            others.append(expression)
    if len(others) > _MOST_PATTERNS:
        message = f"{len(others):,} selections of {variable!r} are no codes of it."
        raise Refusal("too_many_patterns", message, f"At most {_MOST_PATTERNS} expressions.")
    for expression in others:
        found |= {*_codes_of(variable, codes, expression, is_time)}
    return [code for code in codes if code in found]


def _by_fold(codes: Sequence[str]) -> dict[str, list[str]]:
    """Codes by how they read without capitals."""
    found: dict[str, list[str]] = {}
    for code in codes:
        found.setdefault(code.casefold(), []).append(code)
    return found


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern with `*` and `?` as a regular expression, none of which takes long."""
    return re.compile(translate(pattern.replace("[", "[[]")))


def _select(dataset: Dataset, variable: OfferedVariable, wish: Wish) -> VariableChoice:
    """The codes of a wish in the smallest detail that has them all."""
    name, is_time = variable.name, variable.name == dataset.time
    if wish.codelist:
        found = codelist_for(dataset, variable, wish.codelist)
        listed = [e.code for e in found.categories]
        codes = choose_codes(name, listed, wish.codes, is_time=is_time)
        return VariableChoice(variable, found.detail, tuple(codes), found.id)
    listed = [e.code for e in widest(variable).entries]
    codes = choose_codes(name, listed, wish.codes, is_time=is_time)
    return VariableChoice(variable, coarsest(variable, codes).detail, tuple(codes))


def _codes_of(variable: str, codes: Sequence[str], expression: str, is_time: bool) -> Sequence[str]:
    """The codes that a call such as `top(5)`, or a pattern, means."""
    call = _CALL.fullmatch(expression.strip())
    if call is None:
        if "*" not in expression and "?" not in expression:
            raise _unknown_code(variable, codes, expression)
        return _described(codes, expression)
    name, given = call[1].lower(), [part.strip() for part in call[2].split(",")]
    if name in ("top", "bottom"):
        if not 1 <= len(given) <= 2 or not all(re.fullmatch(r"[0-9]{1,9}", n) for n in given):
            allowed = "top(N), top(N,OFFSET), bottom(N) or bottom(N,OFFSET)"
            raise _malformed_selection(variable, allowed)
        count, offset = int(given[0]), int(given[1]) if len(given) == 2 else 0
        ordered = codes if (name == "top") != is_time else codes[::-1]
        return ordered[offset : offset + count]
    if name == "range":
        if len(given) != 2:
            raise _malformed_selection(variable, "range(FIRST,LAST)")
        first, last = sorted(_place(variable, codes, code) for code in given)
        return codes[first : last + 1]
    place = _place(variable, codes, ",".join(given))  # a code may hold commas
    return codes[place:] if name == "from" else codes[: place + 1]


def _described(codes: Sequence[str], expression: str) -> list[str]:
    """The codes that a pattern describes; one that describes none selects none."""
    pattern, folded = re.sub(r"\*+", "*", expression.casefold()), [c.casefold() for c in codes]
    # What is longer than any code describes none. Python keeps what it compiles, and half a
    # megabyte that a visitor sends took seconds and left 20 MB behind.
    if len(pattern) > 2 * max(map(len, folded), default=0) + 1:
        return []
    fits = compile_pattern(pattern).match
    return [code for code, text in zip(codes, folded, strict=True) if fits(text)]


def _place(variable: str, codes: Sequence[str], code: str) -> int:
    folded = [c.casefold() for c in codes]
    if code.casefold() not in folded:
        raise _unknown_code(variable, codes, code)
    return list(codes).index(code) if code in codes else folded.index(code.casefold())


def _unknown_code(variable: str, codes: Sequence[str], code: str) -> Refusal:
    message = f"Value {code!r} is not valid for variable {variable!r}. "
    return Refusal("unknown_code", message + suggest(code, list(codes)), SEE_METADATA)


def _malformed_selection(variable: str, allowed: str) -> Refusal:
    return Refusal("unreadable", f"A selection of {variable!r} cannot be read.", f"{allowed}.")
