"""Targeted record swapping: rare households change places with similar ones of another area.

Areas have levels, from coarse to fine. A household is at risk at a level where one of its members
shares the risk variables with fewer than `k` people of the area. It is exchanged with a household
of the same profile in another area of that level, within the same area of the level above: counts
there do not change. Further households are drawn until a share of them has been exchanged
(Shlomo, Tudor & Groom 2010; recommended for censuses beside cell keys by Eurostat's centre of
excellence, 2017).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from discreet import __version__
from discreet.arrays import Whole
from discreet.design.codes import canonical_array
from discreet.digests import digest
from discreet.display.bars import shows_progress
from discreet.errors import DataError, KeysError, ParameterError, check_known, whole
from discreet.files import OWNER_ONLY, written_whole
from discreet.frames import Frame
from discreet.parquet import write_parquet
from discreet.protect.sentences import limit, process
from discreet.records.backend import fetch
from discreet.records.query import language_of
from discreet.records.records import UnitRecords
from discreet.tables.statement import Sentence, Statement, step_of

HEADER = "discreet_swapped"  # a note for programs: nothing here reads it, and no table quotes it
NOT_EXCHANGED = -1
RATES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
"""Shares of households that may be exchanged where the records are published from."""


@dataclass(frozen=True)
class Swapping:
    """What is exchanged, and with whom.

    Attributes:
      geography: Columns of areas, from coarse to fine.
      risk: Columns that together must not be rare in an area.
      k: A combination that fewer people of an area have is at risk there.
      rate: Share of households that is exchanged at least.
      similar: Columns in which households that change places agree; their size always does.
      household: Column of households, which are exchanged whole; each record by itself if absent.
      within: Column of areas that nobody leaves.
    """

    geography: tuple[str, ...]
    risk: tuple[str, ...]
    k: int = 3
    rate: float = 0.05
    similar: tuple[str, ...] = ()
    household: str | None = None
    within: str | None = None

    def __post_init__(self) -> None:
        for option in ("geography", "risk", "similar"):
            given = getattr(self, option)
            object.__setattr__(self, option, (given,) if isinstance(given, str) else tuple(given))
        if not self.geography or not self.risk:
            raise ParameterError("swapping needs columns of geography= and of risk=.")
        whole("k", self.k, 2)
        if self.rate not in RATES:
            shown = ", ".join(f"{rate:g}" for rate in RATES)
            raise ParameterError(
                f"rate is one of {shown}, got {self.rate!r}: every rate exchanges other "
                "households, and tables of several could be compared."
            )
        if twice := sorted({name for name in self.geography if self._roles.count(name) > 1}):
            raise ParameterError(f"{twice[0]!r} is an area, and cannot have another role as well.")

    @property
    def _roles(self) -> list[str]:
        given = [*self.geography, *self.risk, *self.similar, self.household, self.within]
        return [name for name in given if name is not None]

    @property
    def columns(self) -> list[str]:
        """All columns that take part."""
        return list(dict.fromkeys(self._roles))


class SwapMeasures(NamedTuple):
    """**Confidential.** What was moved."""

    units: int  # households, or records where there are none
    at_risk: dict[str, int]  # by level of geography, households whose risk was found there
    exchanged: dict[str, int]  # by level, households that changed places there
    unmatched: int  # households at risk for whom there was no similar one
    changed_cells: float  # share of the cells of finest area by risk variables whose count changed

    @property
    def share(self) -> float:
        """Share of the households that changed places."""
        return sum(self.exchanged.values()) / max(self.units, 1)


@dataclass(frozen=True, eq=False, repr=False)
class SwappedRecords:
    """**Confidential.** Records of which some have changed places, and what is said of them."""

    records: Any  # of the class in which they were given; tables are made of them
    statement: Statement  # what was done and what it promises, to stand beside the tables
    measures: SwapMeasures  # what was moved; never published
    levels: Whole  # for each record the level at which it was exchanged, −1 where it stayed

    def save(self, path: str | Path) -> Path:
        """Write the records to a Parquet file that only its owner can read.

        The statement is in the file's metadata, as a note for programs. Statements of tables that
        are made of the file do not quote it: publish it beside them.
        """
        table = fetch(self.records.backend, self.records.table, self.records.origin)
        said = json.dumps(self.statement.to_json(), ensure_ascii=False).encode()
        with written_whole(path, OWNER_ONLY) as temporary:
            write_parquet(temporary, table, {HEADER: said})
        return Path(path)

    def __repr__(self) -> str:
        return f"SwappedRecords (confidential): {self.measures.share:.1%} exchanged"


@shows_progress("exchanging households")
def swap_records(data: UnitRecords, **options: Any) -> SwappedRecords:
    """Exchange rare households with similar ones of other areas.

    The choice is a keyed hash of secret, data set, edition, options and records: the same records
    are exchanged in the same way. Everything but the areas stays with its record, ids and record
    keys included, so that methods by cell keys follow.

    Args:
      data: The records, opened with a secret.
      **options: Those of `Swapping`.

    Cost: a few passes over the records, and a search among similar ones for each exchange.
    """
    request = Swapping(**options)
    if not isinstance(data, UnitRecords):
        raise ParameterError("records are exchanged in `dc.open(...)` with a secret, not a frame.")
    if data.secret is None:
        raise KeysError(
            "which households are exchanged follows from a secret. Open the records with "
            "secret='keys.secret'."
        )
    check_known("column", request.columns, data.columns)
    table = fetch(data.backend, data.table, data.origin)
    if not len(table):
        raise DataError("there are no records.")
    people = _read_people(table, request, data.id)
    rng = data.secret.generator(_identity(data, request, people))
    units = _Units.of(people)
    partner, level = _exchange(units, request, rng)
    # Every record takes the areas of the first member of the household it changed places with.
    source = units.first[partner][people.unit]
    moved = table
    for name in request.geography:
        moved = moved.with_column(name, table.column(name).take(source))
    measures = _measure(units, people, request, level, source)
    statement = Statement((_step(request),), version=__version__)
    swapped = replace(data, table=language_of(data.table).memtable(moved))
    return SwappedRecords(swapped, statement, measures, level[people.unit])


class _People(NamedTuple):
    """Codes of the records."""

    areas: Whole  # records × levels, the area above counted in
    risk: Whole
    profile: Whole  # similar columns of each record
    unit: Whole  # household of each record, in an order that does not depend on how they were read
    above: Whole  # areas that nobody leaves


def _read_people(table: Frame, request: Swapping, id: str | None) -> _People:
    def codes(names: Sequence[str]) -> Whole:
        found = np.zeros(len(table), dtype=np.int64)
        for name in names:
            texts, places = canonical_array(table.column(name))
            rank = np.argsort(np.argsort(np.array(texts, dtype=object)))
            found = np.unique(found * len(texts) + rank[places], return_inverse=True)[1]
        return found

    outermost = [request.within] if request.within else []
    areas = [
        codes([*outermost, *request.geography[: k + 1]]) for k in range(len(request.geography))
    ]
    if request.household is not None:
        unit = codes([request.household])
        if (np.bincount(unit) == len(table)).any():
            raise DataError(f"all records have the same household in {request.household!r}.")
    elif id is not None:
        unit = codes([id])
    else:
        # Without ids, records are told apart by all that they hold; equal ones change alike.
        order = np.lexsort([codes([name]) for name in table.column_names])
        unit = np.empty(len(table), dtype=np.int64)
        unit[order] = np.arange(len(table))
    _check_one_area(areas[-1], unit, request)
    return _People(
        np.column_stack(areas), codes(request.risk), codes(request.similar), unit, codes(outermost)
    )


def _check_one_area(area: Whole, unit: Whole, request: Swapping) -> None:
    first = np.full(unit.max() + 1, -1, dtype=np.int64)
    first[unit[::-1]] = area[::-1]
    if (first[unit] != area).any():
        raise DataError(
            f"a household of {request.household!r} lies in several areas of "
            f"{request.geography[-1]!r}; households are exchanged whole."
        )


@dataclass(frozen=True, eq=False)
class _Units:
    """Households: their areas and profiles."""

    first: Whole  # a record of each
    areas: Whole  # units × levels
    above: Whole
    profile: Whole  # sorted profiles of the members: size and composition
    people: _People

    @classmethod
    def of(cls, people: _People) -> _Units:
        order = np.argsort(people.unit, kind="stable")
        first = order[np.append(True, np.diff(people.unit[order]) > 0)]
        members = np.lexsort([people.profile, people.unit])
        starts = np.flatnonzero(np.append(True, np.diff(people.unit[members]) > 0))
        parts = np.split(people.profile[members], starts[1:])
        composition = [part.tobytes() for part in parts]
        profile = np.unique(np.array(composition, dtype=object), return_inverse=True)[1]
        return cls(first, people.areas[first], people.above[first], profile, people)

    def at_risk(self, k: int) -> Whole:
        """For each household the coarsest level at which a member is rare; −1 where none is."""
        people, levels = self.people, self.areas.shape[1]
        found = np.full(len(self.first), NOT_EXCHANGED, dtype=np.int64)
        for level in reversed(range(levels)):
            width = int(people.risk.max()) + 1
            cell = np.unique(people.areas[:, level] * width + people.risk, return_inverse=True)[1]
            rare = np.bincount(cell)[cell] < k
            found[people.unit[rare]] = level
        return found


def _exchange(units: _Units, request: Swapping, rng: np.random.Generator) -> tuple[Whole, Whole]:
    """With whom each household changes places, itself if with nobody; and at which level."""
    n, levels = len(units.first), units.areas.shape[1]
    partner, level = np.arange(n), np.full(n, NOT_EXCHANGED, dtype=np.int64)
    risk = units.at_risk(request.k)
    for place in range(levels):
        wanted = rng.permutation(np.flatnonzero(risk == place))
        _exchange_at(units, place, wanted, partner, level, rng)
    # A share of all households, from the finest level: nobody can tell that who moved was rare.
    missing = int(np.ceil(request.rate * n)) - int((level >= 0).sum())
    rest = rng.permutation(np.flatnonzero((level < 0) & (risk < 0)))
    _exchange_at(units, levels - 1, rest, partner, level, rng, most=max(missing, 0))
    return partner, level


def _exchange_at(
    units: _Units,
    place: int,
    wanted: Whole,
    partner: Whole,
    level: Whole,
    rng: np.random.Generator,
    most: int | None = None,
) -> None:
    """Give each of the wanted households a partner in another area of a level."""
    above = units.above if place == 0 else units.areas[:, place - 1]
    area = units.areas[:, place]
    width = int(units.profile.max()) + 1
    _, groups = np.unique(above * width + units.profile, return_inverse=True)
    order = rng.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 2))
    made = 0
    for unit in wanted.tolist():
        if most is not None and made >= most:
            return
        if level[unit] >= 0:
            continue
        candidates = order[starts[groups[unit]] : starts[groups[unit] + 1]]
        free = candidates[(level[candidates] < 0) & (area[candidates] != area[unit])]
        if not len(free):
            continue
        other = int(free[rng.integers(len(free))])
        partner[unit], partner[other] = other, unit
        level[[unit, other]] = place
        made += 2


def _identity(data: UnitRecords, request: Swapping, people: _People) -> bytes:
    order = np.lexsort([*people.areas.T, people.risk, people.profile, people.unit])
    contents = [part[order] for part in people]
    named = data.data_set.name, data.data_set.edition, "swap"
    return digest(named, vars(request), *contents)


def _measure(
    units: _Units, people: _People, request: Swapping, level: Whole, source: Whole
) -> SwapMeasures:
    risk, names = units.at_risk(request.k), request.geography
    finest, width = people.areas[:, -1], int(people.risk.max()) + 1
    size = (finest.max() + 1) * width
    before, after = (
        np.bincount(area * width + people.risk, minlength=size) for area in (finest, finest[source])
    )
    return SwapMeasures(
        units=len(units.first),
        at_risk={name: int((risk == k).sum()) for k, name in enumerate(names)},
        exchanged={name: int((level == k).sum()) for k, name in enumerate(names)},
        unmatched=int(((risk >= 0) & (level < 0)).sum()),
        changed_cells=float((before != after)[(before > 0) | (after > 0)].mean()),
    )


@dataclass(frozen=True, eq=False)
class SwapEvidence:
    """**Confidential.** Records before and after, rows in one order, for predicates."""

    before: Any  # pandas frames
    after: Any


def _step(request: Swapping) -> Any:
    what = "Households" if request.household else "Records"
    areas, agree = " > ".join(request.geography), ", ".join(request.similar) or "their size"
    said = [
        process(
            "swapped",
            f"{what} with a combination of {', '.join(request.risk)} that fewer than {request.k} "
            f"people of an area share ({areas}) were exchanged with similar ones of another area, "
            f"as far as there were any, and others until {request.rate:.0%} were exchanged.",
            f"Some {what.lower()} were exchanged with similar ones of other areas.",
        ),
        Sentence(
            "profiles-stay",
            f"In every area the number of people by {agree} is as it was.",
            holds=partial(_profiles_stay, request),
        ),
        Sentence(
            "values-stay",
            "Nothing but the area of a record was changed.",
            holds=partial(_values_stay, request.geography),
        ),
    ]
    if request.within is not None:
        said.append(
            Sentence(
                "nobody-leaves",
                f"All counts by {request.within} are as they were: nobody was moved out of one.",
                holds=partial(_nobody_leaves, request),
            )
        )
    said.append(
        limit(
            "swapped-few",
            "Most records stayed in their area, and small counts can still be true. Tables of "
            "these records need a method of their own, such as cell keys.",
        )
    )
    return step_of("swap", vars(request), said)


def _profiles_stay(request: Swapping, evidence: SwapEvidence) -> bool:
    for depth in range(1, len(request.geography) + 1):
        by = [*request.geography[:depth], *request.similar]
        counts = [f.groupby(by, dropna=False).size() for f in (evidence.before, evidence.after)]
        if not counts[0].sort_index().equals(counts[1].sort_index()):
            return False
    return True


def _values_stay(geography: Sequence[str], evidence: SwapEvidence) -> bool:
    rest = [name for name in evidence.before.columns if name not in geography]
    return bool(evidence.before[rest].equals(evidence.after[rest]))


def _nobody_leaves(request: Swapping, evidence: SwapEvidence) -> bool:
    pair, both = [request.within, request.geography[0]], (evidence.before, evidence.after)
    before, after = (set(map(tuple, frame[pair].to_numpy().tolist())) for frame in both)
    return before == after
