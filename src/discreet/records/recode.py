"""Recodes: new codes for a variable, written as queries so that records stay in the engine.

Dates become years, quarters, months, or ages on a day.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from discreet.columns import Column
from discreet.design.codes import MISSING, canonical
from discreet.design.hierarchy import Hierarchy
from discreet.errors import CodeError, ParameterError, UnknownNameError, is_number
from discreet.frames import Frame, fresh_name
from discreet.records.kinds import kind_name
from discreet.records.query import language_of

_EXACT = 2.0**53  # beyond it not every whole number is a float
Trees = tuple[Hierarchy, ...]
Rules = tuple[Mapping[str, Any], ...]
PARTS = ("year", "quarter", "month")
_AGE = re.compile(r"age on (\d{4}-\d{2}-\d{2})")
_GERMAN = r"^\s*([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})\s*$"
_DIGITS = r"^\s*([0-9]{4})([0-9]{2})([0-9]{2})\s*$"


@dataclass(frozen=True)
class Cut:
    """Classes of a number: each runs from its point up to, and not including, the next.

    Attributes:
      points: Lower ends of the classes, increasing; the last class has no upper end.
      labels: Codes of the classes.
    """

    points: tuple[float, ...]
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        n = len(self.points)
        if not n or list(self.points) != sorted(set(self.points)):
            raise ParameterError(f"cut points must increase, got {list(self.points)}.")
        if len(self.labels) != n or len(set(self.labels)) != n:
            raise ParameterError(
                f"{n} classes need as many different labels, got {list(self.labels)}."
            )

    @property
    def below(self) -> str:
        """The code of what lies below the first class; not among its labels."""
        return f"<{canonical(self.points[0])}"


def cut(points: Sequence[float], labels: Sequence[str] | None = None) -> Cut:
    """Classes for `Microdata.recode`.

    Args:
      points: Lower ends of the classes. Values below the first are an error when tabulated.
      labels: Codes of the classes, if not made from the points.

    >>> cut([0, 15, 25, 65]).labels
    ('0-14', '15-24', '25-64', '65+')
    """
    points = tuple(points) if isinstance(points, Iterable) else (points,)
    if not all(map(is_number, points)):
        raise ParameterError(f"cut points must be numbers that increase, got {list(points)!r:.60}.")
    if labels is not None:
        if not isinstance(labels, Iterable):
            raise ParameterError(f"labels must be a list of texts, got {labels!r:.60}.")
        return Cut(points, tuple(labels))
    made = []
    for low, high in itertools.pairwise(points):
        if not all(float(point).is_integer() for point in points):
            made.append(f"{canonical(low)} to <{canonical(high)}")
        elif high == low + 1:
            made.append(canonical(low))
        else:
            made.append(f"{canonical(low)}-{canonical(high - 1)}")
    return Cut(points, (*made, f"{canonical(points[-1])}+"))


@dataclass(frozen=True)
class Moves:
    """Where codes went: the new code of those listed; others became `rest`, or stayed."""

    new_codes: Mapping[str, str]
    rest: str | None = None

    def __call__(self, code: str) -> str:
        """The new code of an old one."""
        return self.new_codes.get(code, code if self.rest is None else self.rest)


@dataclass(frozen=True, eq=False)
class Recoded:
    """A recoded variable: the records, its hierarchies, and where each code went, if known."""

    table: Any
    trees: Trees
    moves: Moves | None


def recode(table: Any, variable: str, change: object, trees: Trees, default: object) -> Recoded:
    """One variable recoded by a `Cut`, the name of a level, a part of a date, or a mapping."""
    if isinstance(change, (Cut, str)) and default is not None:
        raise ParameterError("default= goes with a mapping of codes, not with levels or cuts.")
    if isinstance(change, Cut):
        column = cut_column(table[variable], change)
        return Recoded(table.mutate(**{variable: column}), (Hierarchy.flat(change.labels),), None)
    if isinstance(change, str):
        is_level = any(change in tree.level_names[1:] for tree in trees)
        if is_of_date(change) and not is_level:
            part = DatePart.read(change).of(table[variable])
            return Recoded(table.mutate(**{variable: part}), (), None)
        return _by_level(table, variable, change, trees)
    if isinstance(change, Mapping):
        return _by_mapping(table, variable, change, trees, default)
    raise ParameterError(
        f"recode of {variable!r}: give a mapping {{old: new}}, the name of a level, a part of a "
        "date ('year', 'quarter', 'month', 'age on 2024-12-31'), or dc.cut([...])."
    )


def _by_level(table: Any, variable: str, level: str, trees: Trees) -> Recoded:
    tree = next((t for t in trees if level in t.level_names[1:]), None)
    if tree is None:
        known = [name for t in trees for name in t.level_names[1:]]
        raise UnknownNameError(f"level of variable {variable!r}", level, known)
    up = tree.ancestor_at(tree.level(level))
    kind = table[variable].type()
    possible = {
        old: new for old, new in up.items() if old != new and value_of_code(old, kind) is not None
    }
    recoded = substitute(table, variable, possible, None)
    return Recoded(recoded, (tree.grouped(level),), Moves(up))


def _by_mapping(
    table: Any, variable: str, change: Mapping[Any, Any], trees: Trees, default: object
) -> Recoded:
    new_codes = {canonical(old): canonical(new) for old, new in change.items()}
    rest = None if default is None else canonical(default)
    kind = table[variable].type()
    for code in new_codes:
        if code != MISSING and value_of_code(code, kind) is None:
            raise CodeError(
                f"code {code!r} cannot occur in column {variable!r}, which holds {kind}."
            )
    results = {*new_codes.values(), *([] if rest is None else [rest])} - {MISSING}
    keeps_trees = bool(trees) and results <= set(trees[0].leaves)
    recoded = substitute(table, variable, new_codes, rest)
    return Recoded(recoded, trees if keeps_trees else (), Moves(new_codes, rest))


def substitute(table: Any, variable: str, new_codes: Mapping[str, str], default: str | None) -> Any:
    """The records with codes replaced through a small side table.

    A join costs the same for two codes and for ten thousand, unlike a chain of conditions.
    """
    lang, kind = language_of(table), table[variable].type()
    old, new = (fresh_name(name, table.columns) for name in ("old_code", "new_code"))
    pairs = [
        (value_of_code(code, kind), text) for code, text in new_codes.items() if code != MISSING
    ]
    values = Column([value for value, _ in pairs], kind_name(kind))
    texts = Column([None if text == MISSING else text for _, text in pairs], "string")
    side = lang.memtable(Frame({old: values, new: texts}))
    joined = table.left_join(side, table[variable] == side[old])
    column, missing = joined[variable], new_codes.get(MISSING, MISSING)
    kept = text_of(column) if default is None else lang.literal(default)
    for_missing = lang.null(str) if missing == MISSING else lang.literal(missing)
    rest = lang.ifelse(is_missing(column), for_missing, kept)
    changed = lang.ifelse(joined[old].notnull(), joined[new], rest)
    return joined.mutate(**{variable: changed}).drop(old, new)


def is_missing(column: Any) -> Any:
    """Whether a value is null, or NaN where there is such a thing."""
    return column.isnull() | column.isnan() if column.type().is_floating() else column.isnull()


def text_of(column: Any) -> Any:
    """A column's canonical codes, as the engine can write them."""
    lang, kind = language_of(column), column.type()
    if kind.is_string():
        return column
    if kind.is_integer() or kind.is_boolean() or kind.is_date():
        return column.cast("string")
    if kind.is_decimal() and kind.scale == 0:
        return column.cast("int64").cast("string")
    if kind.is_floating() or kind.is_decimal():
        number = column.cast("float64")
        in_range = lang.ifelse(number.abs() < _EXACT, number, 0.5)
        whole = in_range.floor().cast("int64")
        return lang.ifelse(in_range == whole, whole.cast("string"), number.cast("string"))
    raise ParameterError(
        f"column {column.get_name()!r} holds {kind}; codes that are not recoded cannot be kept as "
        "text. Give default= for them."
    )


def value_of_code(code: str, kind: Any) -> Any:
    """The value of the column's type that has this code; None when there is none."""
    readers: dict[str, Callable[[str], Any]] = {
        "is_string": str,
        "is_integer": int,
        "is_boolean": {"true": True, "false": False}.get,
        "is_floating": float,
        "is_decimal": Decimal,
        "is_date": date.fromisoformat,
        "is_timestamp": datetime.fromisoformat,
    }
    reader = next((read for test, read in readers.items() if getattr(kind, test)()), None)
    if reader is None:
        raise ParameterError(f"columns of type {kind} cannot be recoded by a mapping.")
    try:
        value = reader(code)
    except (ValueError, InvalidOperation):
        return None
    fits = not kind.is_integer() or kind.bounds.lower <= value <= kind.bounds.upper
    return value if fits and canonical(value) == code else None


def cut_column(column: Any, change: Cut) -> Any:
    """The class of each number; missing stays missing."""
    lang, kind = language_of(column), column.type()
    if not (kind.is_numeric() or kind.is_string()) or kind.is_boolean():
        raise ParameterError(f"column {column.get_name()!r} holds {kind}; only numbers can be cut.")
    number = column.cast("float64") if kind.is_string() else column
    branches = [(is_missing(number), lang.null(str)), (number < change.points[0], change.below)]
    branches += [
        (number < end, label) for end, label in zip(change.points[1:], change.labels, strict=False)
    ]
    return lang.cases(*branches, else_=change.labels[-1])


def moved_rules(rules: Rules, variable: str, moves: Moves | None, trees: Trees) -> Rules:
    """Structural zeros after a recode: a new code is impossible when all that went into it was.

    Rules on a variable are dropped when it is not known where its codes went. The trees are those
    from before the recode.
    """
    found: list[Mapping[str, Any]] = []
    for rule in rules:
        if variable not in rule:
            found.append(rule)
        elif moves is not None:
            old = leaves_of(rule[variable], trees)
            known = {*moves.new_codes, *(trees[0].leaves if trees else ())}
            possible = {moves(code) for code in known - old} | {moves.rest}
            codes = {moves(code) for code in old} - possible
            found += [{**rule, variable: frozenset(codes)}] if codes else []
    return tuple(found)


def leaves_of(codes: Any, trees: Trees) -> set[str]:
    """The leaves that codes of any level stand for; codes outside the trees are leaves."""
    several = [codes] if isinstance(codes, str) or not isinstance(codes, Iterable) else codes
    found: set[str] = set()
    for code in map(canonical, several):
        tree = next((t for t in trees if code in t), None)
        found.update([code] if tree is None else tree.leaves_of(code))
    return found


def is_of_date(change: str) -> bool:
    """Whether a text asks for a part of a date."""
    return change in PARTS or change.startswith("age on ")


@dataclass(frozen=True)
class DatePart:
    """What becomes of a date: its year, its quarter, its month, or an age in whole years.

    Texts are dates when they are written 2024-12-31, 31.12.2024 or 20241231. Other texts are an
    error when they are tabulated: 12/11/2024 is two days, and nothing tells which.

    >>> DatePart.read("age on 2024-12-31").on
    datetime.date(2024, 12, 31)
    """

    part: str
    on: date | None = None  # the day of an age

    @classmethod
    def read(cls, text: str) -> DatePart:
        """`"year"`, `"quarter"`, `"month"`, or `"age on 2024-12-31"`."""
        if text in PARTS:
            return cls(text)
        found = _AGE.fullmatch(text)
        try:
            return cls("age", date.fromisoformat(found[1] if found else ""))
        except ValueError:
            raise ParameterError(
                f"{text!r} is no part of a date: write 'year', 'quarter', 'month', or 'age on' and "
                "a day, 'age on 2024-12-31'."
            ) from None

    def of(self, column: Any) -> Any:
        """The codes of a column of dates: `2024`, `2024-Q4`, `2024-12`, or an age such as `37`."""
        day = _as_date(column)
        if self.on is not None:
            is_ahead = (day.month() > self.on.month) | (
                (day.month() == self.on.month) & (day.day() > self.on.day)
            )
            years = self.on.year - day.year() - is_ahead.cast("int64")
            return years.cast("string")
        year = day.year().cast("string")
        if self.part == "quarter":
            return year + "-Q" + day.quarter().cast("string")
        if self.part == "month":
            return year + "-" + day.month().cast("string").lpad(2, "0")
        return year


def _as_date(column: Any) -> Any:
    kind = column.type()
    if kind.is_date() or kind.is_timestamp():
        return column
    if not (kind.is_string() or kind.is_integer()):
        raise ParameterError(f"column {column.get_name()!r} holds {kind}, not dates.")
    text = column.cast("string")
    is_german, is_digits = text.re_search(_GERMAN), text.re_search(_DIGITS)

    def joined(pattern: str, places: tuple[int, int, int]) -> Any:
        year, month, day = (text.re_extract(pattern, k) for k in places)
        return year + "-" + month.lpad(2, "0") + "-" + day.lpad(2, "0")

    german, digits = joined(_GERMAN, (3, 2, 1)), joined(_DIGITS, (1, 2, 3))
    branches = (is_german, german), (is_digits, digits)
    return language_of(text).cases(*branches, else_=text).cast("date")
