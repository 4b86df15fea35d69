"""Primary rules for counts: each says which cells are sensitive, and why."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from discreet import registry
from discreet.arrays import Array, Mask, Real, Whole
from discreet.design.axis import OUTSIDE, Level
from discreet.design.base import Design
from discreet.design.structured import StructuredDesign
from discreet.errors import DesignError, DiscreetError, ParameterError, UnknownNameError
from discreet.noise.checks import is_number, truth_value, whole
from discreet.tables.truth import TrueTable

Needs = tuple[Real, Real]
"""How far below and above its value the interval of each cell must reach."""


@dataclass(frozen=True, eq=False, repr=False)
class Difference:
    """**Confidential.** A sum or difference of published cells that must not follow either.

    Attributes:
      cells: Positions of the published cells.
      signs: Their coefficients.
      why: Why it is sensitive.
    """

    cells: tuple[int, ...]
    signs: tuple[int, ...]
    why: str


_LARGEST_PAIRS = 50_000_000
"""Pairs of cells that share an inner cell, from which differences are not looked for."""


class Rule(Protocol):
    """What makes a published cell sensitive.

    A rule may also have `differences(table)`: differences of cells that are as sensitive;
    `needs_zeros`: whether what it protects can only be hidden among empty cells; and `told`: its
    name and reason as a release tells them, where parameters are to stay secret.
    """

    @property
    def name(self) -> str:
        """The rule in a word."""

    @property
    def why(self) -> str:
        """Why a cell is sensitive."""

    def primaries(self, table: TrueTable) -> Mask:
        """Which published cells are sensitive."""

    def needs(self, table: TrueTable) -> Needs:
        """How far the interval of each sensitive cell must reach below and above its value."""


def told(rule: Rule) -> tuple[str, str]:
    """The name of a rule and its reason, as a release tells them."""
    return getattr(rule, "told", (rule.name, rule.why))


class CountRule(ABC):
    """A rule on counts: an interval has a width, half of it below the count where there is room."""

    needs_zeros: bool = False
    width: int = 2

    @abstractmethod
    def primaries(self, table: TrueTable) -> Mask:
        """Which published cells are sensitive."""

    def needs(self, table: TrueTable) -> Needs:
        """Half of the width below the count where that is not negative, and the rest above."""
        sensitive = self.primaries(table)
        below = np.where(sensitive, np.minimum(self.width // 2, table.z), 0.0)
        return below, np.where(sensitive, self.width - below, 0.0)


@dataclass(frozen=True)
class Threshold(CountRule):
    """A count is sensitive when it is small.

    Attributes:
      max: The largest sensitive count.
      zeros: Whether empty cells are sensitive too. Otherwise they are published.
      width: Width of the interval that a sensitive count keeps where intervals are proven: half of
        it below the count, as far as there is room for fewer, and the rest above.
    """

    max: int = 3
    zeros: bool = False
    width: int = 2

    def __post_init__(self) -> None:
        whole("max", self.max, 0 if truth_value("zeros", self.zeros) else 1)
        whole("width", self.width, 1)

    @property
    def name(self) -> str:
        """The rule in a word."""
        return f"threshold({self.max}{', zeros' if self.zeros else ''})"

    @property
    def why(self) -> str:
        """Why a cell is sensitive."""
        return f"a count of at most {self.max}"

    def primaries(self, table: TrueTable) -> Mask:
        """Counts up to the threshold, zeros only where they are asked for."""
        return np.asarray((table.z <= self.max) & (self.zeros | (table.z > 0)))


@dataclass(frozen=True)
class DirectDisclosure(CountRule):
    """A row tells about all its members, or about all but a few who know themselves.

    Along a variable, let the largest part of a cell be `m` and the cell's count `t`. When
    `t − m` is at most the size of a coalition, its members (all who are not in the part) learn that
    everybody else is in it. The part is sensitive. A coalition of zero means that everybody is in
    one category, so that the table tells it to all.

    Attributes:
      coalition: How many persons may pool what they know of themselves.
      variables: The variables along which rows are looked at; all when absent.
      unknown: Codes that say nothing about a person, by variable: a row with more than
        `unknown_share` of its other members in such a code tells nothing.
      unknown_share: Smallest share of unknown members that makes a row safe.
    """

    coalition: int = 1
    variables: tuple[str, ...] | None = None
    unknown: tuple[tuple[str, str], ...] = ()
    unknown_share: float = 0.0
    needs_zeros: bool = True

    def __post_init__(self) -> None:
        whole("coalition", self.coalition, 0)
        object.__setattr__(self, "variables", _names(self.variables))
        object.__setattr__(self, "unknown", _pairs(self.unknown))
        _share("unknown_share", self.unknown_share, least=0.0)

    @property
    def name(self) -> str:
        """The rule in a word."""
        return f"direct-disclosure({self.coalition})"

    @property
    def why(self) -> str:
        """Why a cell is sensitive."""
        rest = "everybody" if self.coalition == 0 else f"all but at most {self.coalition}"
        return f"{rest} of a group are in this category"

    def primaries(self, table: TrueTable) -> Mask:
        """The parts that hold all members of a cell but a coalition."""
        return np.asarray(self.needs(table)[0] > 0)

    def needs(self, table: TrueTable) -> Needs:
        """So many fewer that more than a coalition could be elsewhere, as far as there are any."""
        below = np.zeros(len(table.z))
        for line in _lines_along(table.design, self.variables):
            part, rest = table.z[line.child], table.z[line.parent] - table.z[line.child]
            tells = (part > 0) & (rest <= self.coalition)
            tells &= part == _largest_part(table.z, line)[line.parent]
            tells &= ~self._is_blurred(table, line)[line.parent]
            missing = np.minimum(self.coalition + 1 - rest, part)
            np.maximum.at(below, line.child[tells], missing[tells])
        return below, np.zeros(len(below))

    def _is_blurred(self, table: TrueTable, line: Lines) -> Mask:
        """Cells that have enough members of whom nothing is known."""
        n = len(table.z)
        axis = table.design.axes[line.axis]
        codes = [code for name, code in self.unknown if name == axis.name]
        if not codes:
            return np.zeros(n, dtype=bool)
        index, names = table.design.published_codes()[line.axis]
        is_unknown = np.isin(np.array(names)[index[line.child]], codes)
        members = np.bincount(
            line.parent[is_unknown], weights=table.z[line.child[is_unknown]], minlength=n
        )
        return np.asarray(members > self.unknown_share * np.maximum(table.z - 1, 0))


@dataclass(frozen=True)
class GroupDisclosure(CountRule):
    """A part is sensitive when it holds nearly all members of a cell.

    Whoever knows that a person is in the cell knows the category with high probability.

    Attributes:
      share: Share of the cell's members from which a part is sensitive, above a half.
      min_size: Smallest cell that is looked at.
      variables: The variables along which rows are looked at; all when absent.
    """

    share: float = 0.9
    min_size: int = 1
    variables: tuple[str, ...] | None = None
    needs_zeros: bool = True

    def __post_init__(self) -> None:
        _share("share", self.share, least=0.5)
        whole("min_size", self.min_size, 1)
        object.__setattr__(self, "variables", _names(self.variables))

    @property
    def name(self) -> str:
        """The rule in a word."""
        return f"group-disclosure({self.share:g})"

    @property
    def why(self) -> str:
        """Why a cell is sensitive."""
        return f"at least {100 * self.share:g} % of a group are in this category"

    def primaries(self, table: TrueTable) -> Mask:
        """The parts that hold at least this share of a cell."""
        return np.asarray(self.needs(table)[0] > 0)

    def needs(self, table: TrueTable) -> Needs:
        """So many fewer that the share could be smaller."""
        below = np.zeros(len(table.z))
        for line in _lines_along(table.design, self.variables):
            part, whole_ = table.z[line.child], table.z[line.parent]
            tells = (whole_ >= self.min_size) & (part > 0) & (part >= self.share * whole_)
            missing = part - np.ceil(self.share * whole_) + 1
            np.maximum.at(below, line.child[tells], missing[tells])
        return below, np.zeros(len(below))


@dataclass(frozen=True)
class KDisclosure(CountRule):
    """Two cells, one part of the other, that differ by few tell about the few.

    For every published cell that is not empty and lies within another, the difference of the two is
    as sensitive as a cell when it is at most the size of a coalition.

    Attributes:
      coalition: The largest sensitive difference.
      zeros: Whether a difference of zero is sensitive as well: all members of the larger cell are
        in the smaller one.
    """

    coalition: int = 1
    zeros: bool = True
    needs_zeros: bool = True

    def __post_init__(self) -> None:
        whole("coalition", self.coalition, 0 if truth_value("zeros", self.zeros) else 1)

    @property
    def name(self) -> str:
        """The rule in a word."""
        return f"k-disclosure({self.coalition})"

    @property
    def why(self) -> str:
        """Why a difference is sensitive."""
        return f"two cells that differ by at most {self.coalition}"

    def primaries(self, table: TrueTable) -> Mask:
        """No cell by itself."""
        return np.zeros(len(table.z), dtype=bool)

    def differences(self, table: TrueTable) -> list[Difference]:
        """Pairs of a cell and a part of it whose difference is small."""
        part, whole_ = _within(table.design)
        rest = table.z[whole_] - table.z[part]
        close = (table.z[part] > 0) & (rest <= self.coalition) & (self.zeros | (rest > 0))
        pairs = zip(whole_[close].tolist(), part[close].tolist(), strict=True)
        return [Difference(pair, (1, -1), self.why) for pair in pairs]


def _within(design: Design) -> tuple[Whole, Whole]:
    """Pairs of published cells of which the first lies within the second."""
    X = design.matrix().astype(np.int64)
    if int((np.diff(X.indptr).astype(np.float64) ** 2).sum()) > _LARGEST_PAIRS:
        raise DesignError(
            "differences of cells are looked for in tables with fewer cells only; publish fewer "
            "margins at once, or leave KDisclosure out."
        )
    shared = (X.T @ X).tocoo()
    size = design.column_sizes
    within = (shared.data == size[shared.row]) & (size[shared.col] > size[shared.row])
    return shared.row[within].astype(np.int64), shared.col[within].astype(np.int64)


def _largest_part(z: Array, line: Lines) -> Array:
    """For each published cell its largest part along a line."""
    largest = np.zeros(len(z), dtype=z.dtype)
    np.maximum.at(largest, line.parent, z[line.child])
    return largest


def _lines_along(design: Design, variables: Sequence[str] | None) -> list[Lines]:
    names = [axis.name for axis in design.axes]
    for name in variables or ():
        if name not in names:
            raise UnknownNameError("variable", name, names)
    found = lines(design)
    return [line for line in found if variables is None or names[line.axis] in variables]


def _names(given: Any) -> tuple[str, ...] | None:
    if given is None:
        return None
    return (given,) if isinstance(given, str) else tuple(given)


def _pairs(given: Any) -> tuple[tuple[str, str], ...]:
    """Variables with a code; a mapping may give several codes of a variable."""
    if not hasattr(given, "items"):
        return tuple((str(name), str(code)) for name, code in given)
    codes = {name: [c] if isinstance(c, str) else list(c) for name, c in given.items()}
    return tuple((str(name), str(c)) for name, listed in codes.items() for c in listed)


def _share(name: str, value: float, *, least: float) -> None:
    if not is_number(value) or not least <= value <= 1 or (least > 0 and value == least):
        raise ParameterError(
            f"{name} must be a share of at most 1 and above {least:g}, got {value!r}."
        )


@dataclass(frozen=True, eq=False)
class Lines:
    """Published cells with the nearest published cell they are part of along one variable.

    Attributes:
      axis: The variable, by its place.
      child: Positions of the parts.
      parent: Positions of the cells they are part of.
    """

    axis: int
    child: Whole
    parent: Whole


def lines(design: Design) -> list[Lines]:
    """All lines of a design, by variable and level; a matrix has no variables and no lines."""
    if (over := design.over_variables) is None:
        return []
    found = [_between(over, *pair) for pair in _line_pairs(over)]
    return [line for line in found if len(line.child)]


def _line_pairs(design: StructuredDesign) -> Iterator[tuple[int, int, int, Whole]]:
    """Blocks that differ along one variable, fine and coarse, with none of them in between.

    With each pair comes the variable, and the coarse group of each fine one.
    """
    blocks = design.blocks
    for fine, block in enumerate(blocks):
        for a, level in enumerate(block.levels):
            above = {
                k: up
                for k, other in enumerate(blocks)
                if _differ_only_in(a, block.levels, other.levels)
                and (up := _parents(level, other.levels[a])) is not None
            }
            for k, up in above.items():
                between = (_parents(blocks[m].levels[a], blocks[k].levels[a]) for m in above)
                if all(found is None for found in between):
                    yield a, fine, k, up


def _differ_only_in(a: int, one: tuple[Level | None, ...], two: tuple[Level | None, ...]) -> bool:
    return one[a] is not two[a] and all(
        here is there for b, (here, there) in enumerate(zip(one, two, strict=True)) if b != a
    )


def _parents(fine: Level | None, coarse: Level | None) -> Whole | None:
    """The group of a coarser level that each group of a fine one lies in, −1 if in none.

    `None` where the level is not coarser.
    """
    if fine is None or fine is coarse:
        return None
    if coarse is None:
        return np.zeros(len(fine), dtype=np.int64)
    up = np.full(len(fine), OUTSIDE, dtype=np.int64)
    inside = fine.group != OUTSIDE
    up[fine.group[inside]] = coarse.group[inside]
    is_nested = bool((up[fine.group[inside]] == coarse.group[inside]).all())
    return up if is_nested and len(coarse) < len(fine) else None


def _between(design: StructuredDesign, a: int, fine: int, coarse: int, up: Whole) -> Lines:
    """The lines from a fine block to a coarse one."""
    groups = list(np.unravel_index(design.block_cells(fine), design.blocks[fine].shape))
    groups[a] = up[groups[a]]
    inside = groups[a] != OUTSIDE
    flat = np.ravel_multi_index([g[inside] for g in groups], design.blocks[coarse].shape)
    child = np.flatnonzero(inside) + design.offsets[fine]
    cells = design.block_cells(coarse)
    place = np.searchsorted(cells, flat)
    present = cells[np.minimum(place, len(cells) - 1)] == flat
    return Lines(a, child[present], place[present] + design.offsets[coarse])


_NAME = re.compile(r"([^\s()]+)\s*(?:\(([^()]*)\))?")


def rule_named(name: str) -> Rule:
    """The rule of a name; numbers in brackets are its first parameters.

    `threshold(3, zeros)` calls empty cells sensitive as well.
    """
    match = _NAME.fullmatch(name.strip())
    if match is None and name.count("(") != name.count(")"):
        raise ParameterError(f"rule {name!r} has a bracket that is not closed.")
    if match is None:
        raise UnknownNameError("rule", name.partition("(")[0].strip(), registry.names("rule"))
    make: Callable[..., Rule] = registry.load("rule", match[1])
    texts = [text.strip() for text in (match[2] or "").split(",") if text.strip()]
    options = {"zeros": True} if texts[-1:] == ["zeros"] else {}
    try:
        numbers = [_number(text) for text in texts[: len(texts) - len(options)]]
        return make(*numbers, **options)
    except DiscreetError:
        raise
    except (TypeError, ValueError):
        raise ParameterError(
            f"rule {name!r} cannot be read; write it with its numbers, e.g. 'p%(10)', "
            "'dominance(2, 90)' or 'threshold(3, zeros)'."
        ) from None


def _number(text: str) -> float | int:
    return int(text) if text.isdigit() else float(text)
