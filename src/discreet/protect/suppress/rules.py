"""Primary rules for counts: each says which cells are sensitive, and why."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from discreet.arrays import Array, Mask, Real, Whole
from discreet.design.base import Design
from discreet.errors import DesignError, ParameterError, UnknownNameError
from discreet.noise.checks import is_number, truth_value, whole
from discreet.protect.suppress.lines import Lines, lines
from discreet.protect.suppress.pattern import Difference
from discreet.tables.truth import TrueTable

Needs = tuple[Real, Real]
"""How far below and above its value the interval of each cell must reach."""

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
