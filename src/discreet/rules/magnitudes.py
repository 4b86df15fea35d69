"""Primary rules for magnitudes: who could estimate another's contribution too closely."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from discreet.arrays import Mask, Real
from discreet.design.codes import canonical
from discreet.errors import ParameterError, is_number, positive, whole
from discreet.rules.counts import Needs
from discreet.tables.magnitude import NOBODY, CellContributions, Contributions
from discreet.tables.truth import TrueTable

# Shares of a total that differ by less are equal: 88 of 100 is not more than 88 percent, but
# 100 / 88 times 88 exceeds 100 in floating point.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class _MagnitudeRule(ABC):
    """A rule that asks for an amount of doubt; a cell that needs some is sensitive.

    `told` is what a release says of it: percentages are left out, because with them a cell that is
    known to be sensitive bounds its largest contribution.
    """

    units: ClassVar[tuple[str, ...]] = ("value",)

    def primaries(self, table: TrueTable) -> Mask:
        """Which published cells are sensitive."""
        given = table.require_contributions()
        return np.asarray(self.lack(given) > _ROUNDING * given.published.absolute)

    def needs(self, table: TrueTable) -> Needs:
        """How far the interval of each sensitive cell must reach below and above its value.

        No further below than to zero, where no contribution is negative.
        """
        given = table.require_contributions()
        lack = np.where(self.primaries(table), self.lack(given), 0.0)
        return lack if given.has_negative else np.minimum(lack, given.sum), lack

    @abstractmethod
    def lack(self, given: Contributions) -> Real:
        """What the total of each published cell lacks to be safe; not positive where it is."""


@dataclass(frozen=True)
class Dominance(_MagnitudeRule):
    """The (n, k) rule: the n largest contributors of a cell may not have more than k percent of it.

    The interval of a sensitive cell must reach as far as a total in which they have just k percent,
    `100/k` times their sum, and as far below.

    Attributes:
      n: Number of contributors.
      k: Percentage of the cell's total.
      waivers: Identifiers of contributors who agree to be shown. A cell is not sensitive when all
        its n largest contributors do.
    """

    n: int = 1
    k: float = 80.0
    waivers: tuple[str, ...] = ()
    told: ClassVar[tuple[str, str]] = ("dominance", "few contributors have most of the total")

    def __post_init__(self) -> None:
        whole("n", self.n, 1)
        _percentage("k", self.k)
        object.__setattr__(self, "waivers", _identifiers(self.waivers))

    @property
    def name(self) -> str:
        """The rule in a word."""
        return f"dominance({self.n}, {self.k:g})"

    @property
    def why(self) -> str:
        """Why a cell is sensitive."""
        who = "the largest contributor has" if self.n == 1 else f"{self.n} contributors have"
        return f"{who} more than {self.k:g} % of the total"

    def lack(self, given: Contributions) -> Real:
        """What the total lacks so that the n largest have k percent of it."""
        cells = _with_largest(given, self.n, self.name)
        top = cells.largest[:, : self.n].sum(axis=1)
        lack = 100.0 / self.k * top - cells.absolute
        # A cell with fewer than n contributors has empty places, which nobody need waive.
        waived = _waived_places(given, self.waivers)[:, : self.n]
        absent = np.arange(self.n) >= cells.count[:, None]
        return np.where((waived | absent).all(axis=1), 0.0, lack)


@dataclass(frozen=True)
class PQ(_MagnitudeRule):
    """The p/q rule: nobody may estimate another's contribution to within p percent.

    Everybody is taken to know the contributions of others to within q percent beforehand. A cell is
    sensitive when what is left without its two largest contributors is less than p/q of the
    largest: the second could then estimate the first too closely. The interval of a sensitive cell
    must reach by the difference above and below its total.

    Attributes:
      p: Percentage within which nobody may be estimated.
      q: Percentage within which everybody is known beforehand, at least p.
      waivers: Identifiers of contributors who agree to be shown. They need no protection, but can
        estimate others.
      n: How many others may pool what they know of themselves: what is left is then counted
        without the largest contributor and the n next ones.
    """

    p: float = 10.0
    q: float = 100.0
    waivers: tuple[str, ...] = ()
    n: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        whole("n", self.n, 1)
        _percentage("p", self.p)
        _percentage("q", self.q)
        if self.p > self.q:
            raise ParameterError(
                f"p must not exceed q, got p={self.p:g} and q={self.q:g}: others are known to "
                "within q percent beforehand, so they cannot be protected any better."
            )
        object.__setattr__(self, "waivers", _identifiers(self.waivers))

    @property
    def name(self) -> str:
        """The rule in a word."""
        return f"p/q({self.p:g}, {self.q:g}{self._coalition})"

    @property
    def why(self) -> str:
        """Why a cell is sensitive."""
        return (
            f"a contributor could be estimated to within {self.p:g} % by {self._others} who know"
            f"{'s' if self.n == 1 else ''} the rest to within {self.q:g} %"
        )

    @property
    def _coalition(self) -> str:
        return "" if self.n == 1 else f", n={self.n}"

    @property
    def _others(self) -> str:
        return "another" if self.n == 1 else f"{self.n} others"

    @property
    def told(self) -> tuple[str, str]:
        """Name and reason without percentages."""
        return self.name.partition("(")[0], "a contributor could be estimated closely by another"

    def lack(self, given: Contributions) -> Real:
        """What the rest lacks to hide the largest contributor who needs protection."""
        cells = _with_largest(given, self.n + 1, self.name)
        may_be_target = ~_waived_places(given, self.waivers) & (cells.largest > 0)
        protected = np.where(may_be_target.any(axis=1), may_be_target.argmax(axis=1), -1)
        rows = np.arange(len(cells))
        target = np.where(protected < 0, 0.0, cells.largest[rows, protected])
        # Who know most of the rest are the largest others, also those with a waiver: the n largest,
        # and one more where the one they look for is among these.
        place = np.arange(cells.largest.shape[1])
        is_attacker = (place < self.n + (protected < self.n)[:, None]) & (
            place != protected[:, None]
        )
        rest = cells.absolute - target - np.where(is_attacker, cells.largest, 0.0).sum(axis=1)
        # Subtracting all contributions from their own sum may leave a rounding error.
        rest[cells.count <= self.n + 1] = 0.0
        return np.where(protected < 0, 0.0, self.p / self.q * target - rest)


@dataclass(frozen=True)
class PPercent(PQ):
    """The p% rule: nobody may estimate another's contribution to within p percent.

    A cell is sensitive when what is left without its two largest contributors is less than p
    percent of the largest. It is the p/q rule with q = 100: nothing is known of the others but that
    they contribute no negative amount.
    """

    q: float = field(default=100.0, init=False, repr=False)

    @property
    def name(self) -> str:
        """The rule in a word."""
        return f"p%({self.p:g}{self._coalition})"

    @property
    def why(self) -> str:
        """Why a cell is sensitive."""
        return f"a contributor could be estimated to within {self.p:g} % by {self._others}"


@dataclass(frozen=True)
class FewContributors(_MagnitudeRule):
    """A cell is sensitive when it has fewer contributors than asked for, but some.

    Attributes:
      n: The smallest number of contributors that is safe.
      range: Percentage of its value that the interval of a sensitive cell must reach below and
        above.
    """

    n: int = 3
    range: float = 10.0

    def __post_init__(self) -> None:
        whole("n", self.n, 2)
        positive("range", self.range)

    @property
    def name(self) -> str:
        """The rule in a word."""
        return f"few-contributors({self.n})"

    @property
    def why(self) -> str:
        """Why a cell is sensitive."""
        return f"fewer than {self.n} contributors"

    def lack(self, given: Contributions) -> Real:
        """A share of the value of cells with too few contributors."""
        cells = given.published
        few = (cells.count > 0) & (cells.count < self.n)
        return np.where(few, self.range / 100.0 * cells.absolute, 0.0)


@dataclass(frozen=True)
class ZeroUnsafe(_MagnitudeRule):
    """A sum of zero is sensitive when records stand behind it: everybody in it contributes nothing.

    Without this rule such a cell is published as zero, like an empty one. With it, cells of zero
    may be hidden, those to which no record belongs are shown.

    Attributes:
      range: How far above zero the interval of such a cell must reach, in units of the value.
    """

    range: float = 1.0
    zeros: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive("range", self.range)

    name: ClassVar[str] = "zero-unsafe"
    why: ClassVar[str] = "everybody contributes nothing"

    def primaries(self, table: TrueTable) -> Mask:
        """Cells with records, but without a contribution."""
        return np.asarray((table.z > 0) & (table.require_contributions().published.absolute == 0))

    def needs(self, table: TrueTable) -> Needs:
        """Nothing below zero unless values may be negative, and the range above."""
        found = np.where(self.primaries(table), self.range, 0.0)
        is_signed = table.require_contributions().has_negative
        return found if is_signed else np.zeros(len(found)), found

    def lack(self, given: Contributions) -> Real:
        """Nothing that contributions tell: a cell of zero looks like an empty one."""
        return np.zeros(len(given.published))


def _with_largest(given: Contributions, n: int, rule: str) -> CellContributions:
    """The contributions to the published cells, if enough of the largest were kept."""
    if (kept := given.largest.shape[1]) < n:
        raise ParameterError(
            f"rule {rule} looks at the {n} largest contributions, but only {kept} were kept. "
            f"Tabulate with largest={n}."
        )
    return given.published


def _waived_places(given: Contributions, waivers: Sequence[str]) -> Mask:
    """Cells × places: whether the contributor agrees to be shown."""
    if not waivers:
        return np.zeros(given.owner.shape, dtype=bool)
    return np.asarray(np.isin(given.owner, given.places_of(waivers)) & (given.owner != NOBODY))


def _identifiers(waivers: Any) -> tuple[str, ...]:
    several = [waivers] if isinstance(waivers, str) else waivers
    if isinstance(several, Mapping) or not isinstance(several, Collection):
        raise ParameterError(
            f"waivers is a list of contributors' identifiers, got {waivers!r}. If that is the "
            "number of contributors who pool what they know, write n=, e.g. PPercent(10, n=2)."
        )
    return tuple(canonical(one) for one in several)


def _percentage(name: str, value: float) -> None:
    if not is_number(value) or not 0 < value <= 100:
        raise ParameterError(f"{name} must be a percentage above 0 and at most 100, got {value!r}.")
