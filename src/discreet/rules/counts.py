"""Primary rules: what a rule is, the rules for counts, and the lines along which they look."""

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
from discreet.errors import (
    DesignError,
    DiscreetError,
    ParameterError,
    UnknownNameError,
    check_known,
    is_number,
    truth_value,
    whole,
)
from discreet.tables.truth import TrueTable

Needs = tuple[Real, Real]
"""How far below and above its value the interval of each cell must reach."""


@dataclass(frozen=True, eq=False, repr=False)
class Difference:
    """**Confidential.** A sum or difference of published cells that must not follow either."""

    cells: tuple[int, ...]  # positions of the published cells
    signs: tuple[int, ...]  # their coefficients
    why: str  # why it is sensitive
    need: float = 1.0  # how far it must be able to rise: one more is the nearest other count
    # Contributors whose part of a sum is known too closely, by number; of these cells everybody is
    # to be kept from knowing it where there are none.
    owners: tuple[int, ...] = ()
    # Who comes too close to them, alone or pooling what they know; nobody: the public.
    against: tuple[int, ...] = ()


class PrimaryRule(Protocol):
    """What makes a published cell sensitive.

    A rule may also have `differences(table)`: differences of cells that are as sensitive;
    `needs_zeros`: whether what it protects can only be hidden among empty cells; and `told`: its
    name and reason as a release states them, where parameters are to stay secret.
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


def public_name_and_reason(rule: PrimaryRule) -> tuple[str, str]:
    """The name of a rule and its reason, as a release states them."""
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
        # A count of 1 cannot lie in the middle of an interval of width 4: what does not fit above
        # zero moves up, so that the width is the same for every sensitive count.
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
        if self.zeros:
            return f"a count of at most {self.max}"
        return f"a count of 1 to {self.max}" if self.max > 1 else "a count of 1"

    def primaries(self, table: TrueTable) -> Mask:
        """Counts up to the threshold, zeros only where they are asked for."""
        return np.asarray((table.z <= self.max) & (self.zeros | (table.z > 0)))


class _PartRule(CountRule):
    """A rule on parts that say too much about the cell they are part of, along a variable."""

    variables: tuple[str, ...] | None = None

    @abstractmethod
    def missing(self, table: TrueTable, line: Lines) -> tuple[Mask, Array]:
        """Which parts of a line are sensitive, and by how many fewer they would not be."""

    def primaries(self, table: TrueTable) -> Mask:
        """The parts that say too much along some variable."""
        return np.asarray(self.needs(table)[0] > 0)

    def needs(self, table: TrueTable) -> Needs:
        """So many fewer that the rule would not hold, and nothing above."""
        # A larger part is as sensitive as this one, so only tables with fewer in it protect it.
        below = np.zeros(len(table.z))
        for line in _lines_along(table.design, self.variables):
            tells, missing = self.missing(table, line)
            np.maximum.at(below, line.child[tells], missing[tells])
        return below, np.zeros(len(below))


@dataclass(frozen=True)
class DirectDisclosure(_PartRule):
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
        object.__setattr__(self, "variables", _as_names(self.variables))
        object.__setattr__(self, "unknown", _as_pairs(self.unknown))
        _check_share("unknown_share", self.unknown_share, least=0.0)

    @property
    def name(self) -> str:
        """The rule in a word."""
        return f"direct-disclosure({self.coalition})"

    @property
    def why(self) -> str:
        """Why a cell is sensitive."""
        rest = "everybody" if self.coalition == 0 else f"all but at most {self.coalition}"
        return f"{rest} of a group are in this category"

    def missing(self, table: TrueTable, line: Lines) -> tuple[Mask, Array]:
        """Parts with all members but a coalition; with so many fewer, more could be elsewhere."""
        part, rest = table.z[line.child], table.z[line.parent] - table.z[line.child]
        largest = np.zeros(len(table.z), dtype=table.z.dtype)
        np.maximum.at(largest, line.parent, part)
        # In a cell of few, every part leaves a rest within the coalition; what the coalition can
        # learn is that all others are in the largest part.
        tells = (part > 0) & (rest <= self.coalition) & (part == largest[line.parent])
        tells &= ~self._is_blurred(table, line)[line.parent]
        return tells, np.minimum(self.coalition + 1 - rest, part)

    def _is_blurred(self, table: TrueTable, line: Lines) -> Mask:
        """Cells that have enough members of whom nothing is known."""
        n = len(table.z)
        axis = table.design.axes[line.axis]
        codes = [code for name, code in self.unknown if name == axis.name]
        if not codes:
            return np.zeros(n, dtype=bool)
        index, names = table.design.published_codes()[line.axis]
        is_unknown = np.isin(np.array(names)[index[line.child]], codes)
        members = np.bincount(line.parent[is_unknown], table.z[line.child[is_unknown]], n)
        # Whoever looks at the row is one of its members: the share is that of the others.
        return np.asarray(members > self.unknown_share * np.maximum(table.z - 1, 0))


@dataclass(frozen=True)
class GroupDisclosure(_PartRule):
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
        _check_share("share", self.share, least=0.5)
        whole("min_size", self.min_size, 1)
        object.__setattr__(self, "variables", _as_names(self.variables))

    @property
    def name(self) -> str:
        """The rule in a word."""
        return f"group-disclosure({self.share:g})"

    @property
    def why(self) -> str:
        """Why a cell is sensitive."""
        return f"at least {100 * self.share:g} % of a group are in this category"

    def missing(self, table: TrueTable, line: Lines) -> tuple[Mask, Array]:
        """Parts with at least this share of a cell; with so many fewer it would be smaller."""
        part, whole_ = table.z[line.child], table.z[line.parent]
        tells = (whole_ >= self.min_size) & (part > 0) & (part >= self.share * whole_)
        return tells, part - np.ceil(self.share * whole_) + 1


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
        part, whole_ = _nested_cells(table.design)
        rest = table.z[whole_] - table.z[part]
        close = (table.z[part] > 0) & (rest <= self.coalition) & (self.zeros | (rest > 0))
        pairs = zip(whole_[close].tolist(), part[close].tolist(), strict=True)
        return [Difference(pair, (1, -1), self.why) for pair in pairs]


_LARGEST_PAIRS = 50_000_000  # cells that share an inner cell; X'X takes 16 bytes for each pair


def _nested_cells(design: Design) -> tuple[Whole, Whole]:
    """Pairs of published cells of which the first lies within the second."""
    X = design.matrix().astype(np.int64)
    if int((np.diff(X.indptr).astype(np.float64) ** 2).sum()) > _LARGEST_PAIRS:
        raise DesignError(
            "differences of cells are looked for in tables with fewer cells only; publish fewer "
            "margins at once, or leave KDisclosure out."
        )
    # Entry (j, k) of X'X counts the inner cells that both hold: j lies within k when that is all
    # of j. A cell of the same size is the same cell, and their difference says nothing.
    shared = (X.T @ X).tocoo()
    size = design.column_sizes
    within = (shared.data == size[shared.row]) & (size[shared.col] > size[shared.row])
    return shared.row[within].astype(np.int64), shared.col[within].astype(np.int64)


def _lines_along(design: Design, variables: Sequence[str] | None) -> list[Lines]:
    names = [axis.name for axis in design.axes]
    check_known("variable", variables or (), names)
    return [each for each in lines(design) if variables is None or names[each.axis] in variables]


def _as_names(given: Any) -> tuple[str, ...] | None:
    return (given,) if isinstance(given, str) else None if given is None else tuple(given)


def _as_pairs(given: Any) -> tuple[tuple[str, str], ...]:
    """Variables with a code; a mapping may give several codes of a variable."""
    if not hasattr(given, "items"):
        return tuple((str(name), str(code)) for name, code in given)
    codes = {name: [c] if isinstance(c, str) else list(c) for name, c in given.items()}
    return tuple((str(name), str(c)) for name, listed in codes.items() for c in listed)


def _check_share(name: str, value: float, *, least: float) -> None:
    if not is_number(value) or not least <= value <= 1 or (least > 0 and value == least):
        raise ParameterError(
            f"{name} must be a share of at most 1 and above {least:g}, got {value!r}."
        )


@dataclass(frozen=True, eq=False)
class Lines:
    """Published cells with the nearest published cell they are part of along one variable."""

    axis: int  # the variable, by its place
    child: Whole  # positions of the parts
    parent: Whole  # positions of the cells they are part of


def lines(design: Design) -> list[Lines]:
    """All lines of a design, by variable and level; a matrix has no variables and no lines."""
    if (over := design.over_variables) is None:
        return []
    found = [_lines_between(over, *pair) for pair in _adjacent_blocks(over)]
    return [line for line in found if len(line.child)]


def _adjacent_blocks(design: StructuredDesign) -> Iterator[tuple[int, int, int, Whole]]:
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
            # Only the nearest level above counts: a line from municipalities to the country would
            # repeat those to districts and from districts to the country, with many more parts.
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


def _lines_between(design: StructuredDesign, a: int, fine: int, coarse: int, up: Whole) -> Lines:
    """The lines from a fine block to a coarse one."""
    groups = list(np.unravel_index(design.block_cells(fine), design.blocks[fine].shape))
    groups[a] = up[groups[a]]
    inside = groups[a] != OUTSIDE
    flat = np.ravel_multi_index([g[inside] for g in groups], design.blocks[coarse].shape)
    child = np.flatnonzero(inside) + design.offsets[fine]
    # Designs read from records list the cells that occur, so a parent may be missing.
    cells = design.block_cells(coarse)
    place = np.searchsorted(cells, flat)
    present = cells[np.minimum(place, len(cells) - 1)] == flat
    return Lines(a, child[present], place[present] + design.offsets[coarse])


_NAME = re.compile(r"([^\s()]+)\s*(?:\(([^()]*)\))?")


def rule_named(name: str) -> PrimaryRule:
    """The rule of a name; numbers in brackets are its first parameters.

    `threshold(3, zeros)` calls empty cells sensitive as well; `p%(10, n=2)` names a parameter.
    """
    match = _NAME.fullmatch(name.strip())
    if match is None and name.count("(") != name.count(")"):
        raise ParameterError(f"rule {name!r} has a bracket that is not closed.")
    if match is None:
        raise UnknownNameError("rule", name.partition("(")[0].strip(), registry.names("rule"))
    make: Callable[..., PrimaryRule] = registry.load("rule", match[1])
    texts = [text.strip() for text in (match[2] or "").split(",") if text.strip()]
    options: dict[str, Any] = {"zeros": True} if texts[-1:] == ["zeros"] else {}
    try:
        numbers = [text.rpartition("=") for text in texts[: len(texts) - len(options)]]
        first = [_number(value) for option, _, value in numbers if not option]
        options |= {option.strip(): _number(value) for option, _, value in numbers if option}
        return make(*first, **options)
    except DiscreetError:
        raise
    except (TypeError, ValueError):
        raise ParameterError(
            f"rule {name!r} cannot be read; write it with its numbers, e.g. 'p%(10)', "
            "'p%(10, n=2)', 'dominance(2, 90)' or 'threshold(3, zeros)'."
        ) from None


def _number(text: str) -> int | float:
    return int(text) if text.strip().isdigit() else float(text)
