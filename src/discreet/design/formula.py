"""Which margins are published: a small formula language, or tuples.

`a*b` is the crossing, its lower margins and the total; `a:b` the crossing alone; `a` the margin
and the total; `1` the total; `+` adds and `-` takes away; parentheses group. A name may be a
variable (all its levels), a level of a hierarchy, or `variable[level]`; names that are not plain
words stand in backticks. Options that name single margins write them the same way: `a:b`, `a`, and
`1` for the total.

A *table* is a largest margin with the margins inside it, or what was given a name: a mapping of
names to margins, `{"Age by region": "region*age", "Sex": "sex"}`, publishes all of them.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.arrays import Whole32
from discreet.design.axis import OUTSIDE, Axis, Level
from discreet.errors import DiscreetError, ParameterError, UnknownNameError

Term = tuple[str, ...]
Margin = str | int | Sequence[str]
"""One margin: `"region:age"`, a tuple of names, or `"1"` (or 1) for the total."""
Margins = str | Sequence[str | Sequence[str]] | Mapping[str, Any]
"""A formula, a list of margins, or either of them by the name of a table."""
TOTAL = "1"
_TOTAL_ELSEWHERE = ("total", "_t", "all", "0", "()")
_TOKEN = re.compile(r"\s*(?:(`[^`]+`|[^\W\d][\w.]*)(\[[^\]]+\])?|([-+*:()])|(1)(?!\w))")


def margins(variables: Sequence[str], order: int, *, lower: bool = True) -> list[Term]:
    """All margins of the variables with `order` of them, and with fewer when `lower`.

    >>> margins(["region", "age", "sex"], order=2, lower=False)
    [('region', 'age'), ('region', 'sex'), ('age', 'sex')]
    """
    if not 0 <= order <= len(variables):
        raise ParameterError(
            f"order must lie between 0 and the number of variables ({len(variables)}), got {order}."
        )
    orders = range(order, -1, -1) if lower else [order]
    return [term for k in orders for term in itertools.combinations(variables, k)]


class NamedTerms(list[Term]):
    """Terms, and the names under which some of them are published together as tables."""

    def __init__(self, tables: Mapping[str, Sequence[Term]]) -> None:
        super().__init__(dict.fromkeys(term for terms in tables.values() for term in terms))
        self.tables = {name: list(terms) for name, terms in tables.items()}


def parse(spec: Margins) -> list[Term]:
    """Terms in the order they are written, each named once."""
    if isinstance(spec, NamedTerms):
        return spec
    if isinstance(spec, Mapping):
        if not spec or not all(isinstance(name, str) and name.strip() for name in spec):
            raise ParameterError(
                "tables are given by their names, {'Age by region': 'region*age'}; "
                f"got {[*spec]!r:.80}."
            )
        names = [name.strip() for name in spec]
        if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            raise ParameterError(
                f"two tables are called {twice[0]!r}, apart from spaces around the name; give each "
                "a name of its own."
            )
        return NamedTerms({name.strip(): parse(margins) for name, margins in spec.items()})
    if isinstance(spec, str):
        return _Parser(spec.lstrip().removeprefix("~")).parse()  # R writes ~region*age
    if not isinstance(spec, Iterable):
        raise ParameterError(f"margins are a formula, 'region*age', or a list; got {spec!r:.60}.")
    terms = [term_of(margin) for margin in spec]
    if not terms:
        raise ParameterError("no margins given; [()] publishes the total alone.")
    for term in terms:
        if len(set(term)) != len(term):
            raise ParameterError(f"margin {term} names a variable twice.")
    return list(dict.fromkeys(terms))


def term_of(margin: Margin) -> Term:
    """The variables of one margin.

    >>> term_of("region:age"), term_of("1"), term_of(("my:column",))
    (('region', 'age'), (), ('my:column',))
    """
    if isinstance(margin, int) and str(margin) == TOTAL:
        margin = TOTAL
    if isinstance(margin, str):
        return () if margin.strip() == TOTAL else tuple(map(str.strip, margin.split(":")))
    if isinstance(margin, Iterable):
        names = tuple(margin)
        if all(isinstance(name, Hashable) for name in names):
            return names
    raise ParameterError(
        f"a margin is named by its variables, 'region:age', and the total by 1; got {margin!r}."
    )


def margin_name(term: Term) -> str:
    """The name of a margin."""
    return ":".join(term) or TOTAL


def heading_of(name: str) -> str:
    """A name for readers: `major_group` becomes `Major group`."""
    return words(name)[:1].upper() + words(name)[1:]


def words(name: str) -> str:
    """The words of a name: `major_group` becomes `major group`, `INDP_CAT` `INDP CAT`."""
    return " ".join(name.replace("_", " ").split())


def table_name(term: Term) -> str:
    """A table's name made of its largest margin.

    >>> table_name(("region", "age")), table_name(("age", "sex", "marital_status")), table_name(())
    ('Region by age', 'Age by sex and marital status', 'Total')
    """
    if not term:
        return "Total"
    first, *others = (re.sub(r"\[(.*)\]$", r" (\1)", name) for name in term)
    *most, last = map(words, others or [""])
    by = f"{', '.join(most)} and {last}" if most else last
    return f"{heading_of(first)} by {by}" if others else heading_of(first)


def single_margins(given: Margin | Sequence[Margin]) -> tuple[Term, ...]:
    """Margins from a list of them, or from one alone."""
    is_one = isinstance(given, str) or not isinstance(given, Iterable)
    return tuple(map(term_of, [given] if is_one else given))  # type: ignore[arg-type]


def unknown_name(name: str, known: Iterable[str]) -> DiscreetError:
    """The error for a name that is neither a variable nor a level."""
    if name.casefold() in _TOTAL_ELSEWHERE:
        return ParameterError(f"{name!r} is neither a variable nor a level; the total is '1'.")
    if set(name) & set("*+"):
        return ParameterError(
            f"a list names single margins, 'region:age'; {name!r} is a formula. Write one text, "
            "'region*age + region*sex'."
        )
    return UnknownNameError("variable or level", name, known)


class _Parser:
    """Recursive descent over `sum := product (('+'|'-') product)*`, `:` before `*` before `+`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._tokens()
        self.at = 0

    def parse(self) -> list[Term]:
        terms = self._sum()
        if self.at < len(self.tokens):
            raise self._error(f"unexpected {self.tokens[self.at]!r}")
        if not terms:
            raise self._error("nothing is left to publish")
        return terms

    def _tokens(self) -> list[str]:
        tokens, position = [], 0
        while self.text[position:].strip():
            match = _TOKEN.match(self.text, position)
            if match is None:
                raise self._error(f"cannot read {self.text[position:].strip()[:12]!r}")
            name, level, sign, one = match.groups()
            tokens.append(sign or one or name + (level or ""))
            position = match.end()
        return tokens

    def _error(self, what: str) -> ParameterError:
        return ParameterError(
            f"formula {self.text!r}: {what}. Write e.g. 'region*age + sex', 'region:age', "
            "or put odd names in backticks: '`my column`*sex'."
        )

    def _peek(self) -> str | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def _take(self) -> str:
        token = self._peek()
        if token is None:
            raise self._error("it ends too early")
        self.at += 1
        return token

    def _sum(self) -> list[Term]:
        terms = self._chain("*", _star)
        while self._peek() in ("+", "-"):
            sign, right = self._take(), self._chain("*", _star)
            terms = _union(terms, right) if sign == "+" else _without(terms, right)
        return terms

    def _chain(self, sign: str, join: Callable[[list[Term], list[Term]], list[Term]]) -> list[Term]:
        """Operands with a sign between; those of `*` are chains of `:`, which binds closer."""
        operand: Callable[[], list[Term]] = self._atom
        if sign == "*":
            operand = functools.partial(self._chain, ":", _colon)
        terms = operand()
        while self._peek() == sign:
            self._take()
            terms = join(terms, operand())
        return terms

    def _atom(self) -> list[Term]:
        token = self._take()
        if token == "(":
            terms = self._sum()
            if self._peek() != ")":
                raise self._error("a parenthesis is not closed")
            self._take()
            return terms
        if token == "1":
            return [()]
        if token in "+-*:)":
            raise self._error(f"a name was expected before {token!r}")
        return [(token.replace("`", ""),), ()]


def _union(left: Iterable[Term], right: Iterable[Term]) -> list[Term]:
    return list(dict.fromkeys([*left, *right]))


def _without(left: list[Term], right: list[Term]) -> list[Term]:
    """Take terms away; the total goes only when it is named alone (`- 1`)."""
    gone = {frozenset(t) for t in right if t or right == [()]}
    return [t for t in left if frozenset(t) not in gone]


def _star(left: list[Term], right: list[Term]) -> list[Term]:
    # The crossing before its lower margins, which keep the order in which they are written.
    crossed = [_join(a, b) for a in _union(left, [()]) for b in _union(right, [()])]
    return sorted(dict.fromkeys(crossed), key=len, reverse=True)


def _colon(left: list[Term], right: list[Term]) -> list[Term]:
    return list(dict.fromkeys(_join(a, b) for a in left if a for b in right if b))


def _join(a: Term, b: Term) -> Term:
    return tuple(dict.fromkeys([*a, *b]))


@dataclass(frozen=True, eq=False)
class Block:
    """One level for each axis, `None` where the axis is summed over."""

    levels: tuple[Level | None, ...]

    # Kept, since passes and sums ask for shapes thousands of times in a fit, and blocks are frozen.
    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Groups along every axis; 1 where the axis is summed over."""
        return tuple(1 if level is None else len(level) for level in self.levels)

    @cached_property
    def size(self) -> int:
        """Cells of the full crossing."""
        return math.prod(self.shape)

    @property
    def name(self) -> str:
        """The names of its levels, crossed."""
        return "×".join(level.name for level in self.levels if level is not None) or "total"

    @property
    def order(self) -> int:
        """Number of variables that are not summed over."""
        return sum(level is not None for level in self.levels)


def resolve(axes: Sequence[Axis], terms: Sequence[Term]) -> list[Block]:
    """The blocks of the terms: a variable stands for each of its levels in turn."""
    blocks: dict[tuple[Level | None, ...], None] = {}
    for term in terms:
        choices: list[Sequence[Level | None]] = [(None,)] * len(axes)
        for name in term:
            a, levels = _lookup(axes, name)
            if choices[a] != (None,):
                raise ParameterError(f"margin {term} names variable {axes[a].name!r} twice.")
            choices[a] = levels
        blocks.update(dict.fromkeys(itertools.product(*choices)))
    return [Block(levels) for levels in blocks]


def _lookup(axes: Sequence[Axis], name: str) -> tuple[int, tuple[Level, ...]]:
    """The axis a name belongs to, and the levels it stands for."""
    for a, axis in enumerate(axes):
        if name == axis.name:
            return a, axis.levels
    for a, axis in enumerate(axes):
        if name.startswith(f"{axis.name}[") and name.endswith("]"):
            return a, (axis.level(name[len(axis.name) + 1 : -1]),)
    owners = [
        (a, level)
        for a, axis in enumerate(axes)
        for level in axis.levels
        if axis.short_name(level) == name
    ]
    if len(owners) == 1:
        a, level = owners[0]
        return a, (level,)
    if owners:
        both = " or ".join(f"'{axes[a].name}[{name}]'" for a, _ in owners)
        raise ParameterError(f"{name!r} is a level of several variables; write {both}.")
    known = [axis.name for axis in axes]
    known += [axis.short_name(level) for axis in axes for level in axis.levels]
    raise unknown_name(name, dict.fromkeys(known))


def coarsening(fine: Level, coarse: Level) -> Whole32 | None:
    """The group of `coarse` that each group of `fine` lies in (-1: none), if there is one."""
    if fine is coarse:
        return np.arange(len(fine), dtype=np.int32)
    if bool(((coarse.group != OUTSIDE) & (fine.group == OUTSIDE)).any()):
        return None
    inside = fine.group != OUTSIDE
    up = np.full(len(fine), OUTSIDE, dtype=np.int32)
    up[fine.group[inside]] = coarse.group[inside]
    return up if bool((up[fine.group[inside]] == coarse.group[inside]).all()) else None


class Lattice:
    """Which block can be summed from which, axis by axis; maps are found once per pair."""

    def __init__(self) -> None:
        self._maps: dict[tuple[Level, Level], Whole32 | None] = {}

    def step(self, fine: Level, coarse: Level) -> Whole32 | None:
        """`coarsening`, remembered."""
        pair = (fine, coarse)
        if pair not in self._maps:
            self._maps[pair] = coarsening(fine, coarse)
        return self._maps[pair]

    def refines(self, source: Block, target: Block) -> bool:
        """Whether `target` is a sum over cells of `source`."""
        for fine, coarse in zip(source.levels, target.levels, strict=True):
            if coarse is None:
                if fine is not None and not fine.covers_all:
                    return False
            elif fine is None or self.step(fine, coarse) is None:
                return False
        return True

    def sources(self, blocks: Sequence[Block], sizes: Sequence[int]) -> list[int | None]:
        """For each block the cheapest other block it can be summed from; `None`: inner cells.

        Sources form a forest: a block is summed only from a larger one, or from an equally large
        one that comes before it.
        """
        # The first that refines it is the smallest, and so the cheapest to sum.
        by_size = sorted(range(len(blocks)), key=lambda k: (sizes[k], -k))
        chosen: list[int | None] = [None] * len(blocks)
        for place, k in enumerate(by_size):
            for j in by_size[place + 1 :]:
                if self.refines(blocks[j], blocks[k]):
                    chosen[k] = j
                    break
        return chosen
