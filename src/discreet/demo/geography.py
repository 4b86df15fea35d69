"""The invented country: 8 provinces, 60 districts, 401 municipalities of very unequal size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from discreet.arrays import Real, Whole

COUNTRY = "Tarvenia"
TOTAL = "TOTAL"
NOT_APPLICABLE = "NAP"
Pair = tuple[str, str]

# Code, label, share of the population, number of districts.
PROVINCES = (
    ("A", "Kronmark", 0.27, 9),
    ("B", "Westerlund", 0.18, 9),
    ("C", "Varnia", 0.14, 8),
    ("D", "Lower Osk", 0.12, 8),
    ("E", "Upper Osk", 0.10, 7),
    ("F", "Séverin Coast", 0.08, 7),
    ("G", "Brückenland", 0.07, 6),
    ("H", "Hålbergen", 0.04, 6),
)
CAPITAL_SHARE_OF_PROVINCE = 0.48
MUNICIPALITIES_PER_DISTRICT = (8, 4, 6, 11, 7, 5, 9, 3, 8, 7)
CAPITAL, CITY, TOWN, RURAL = range(4)
AREAS = 4
# Smallest share of the population of a city and of a town; anything below is rural.
CITY_SHARE, TOWN_SHARE = 0.006, 0.0018


@dataclass(frozen=True)
class CodeEntry:
    """One code: its label and the code it is part of (None for the total)."""

    code: str
    label: str
    parent: str | None


@dataclass(frozen=True)
class CodeList:
    """The codes of one variable, from the total down to the codes that records carry.

    Every entry but the first has a parent that stands before it. Depth may be unequal: "not
    applicable" is a direct child of the total.
    """

    variable: str  # the column the codes belong to
    levels: tuple[str, ...]  # names of the levels, the total first
    entries: tuple[CodeEntry, ...]  # the codes, each parent before its children

    @cached_property
    def parents(self) -> Mapping[str, str]:
        """From each code but the total to the code it is part of."""
        return {e.code: e.parent for e in self.entries if e.parent is not None}

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """From each code to its label."""
        return {e.code: e.label for e in self.entries}

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """The codes that records carry, in the order of the list."""
        inner = set(self.parents.values())
        return tuple(e.code for e in self.entries if e.code not in inner)

    def leaves_under(self, *codes: str) -> frozenset[str]:
        """The leaves that belong to any of `codes`."""
        under = set(codes)
        for entry in self.entries:  # a parent stands before its children
            if entry.parent in under:
                under.add(entry.code)
        return frozenset(leaf for leaf in self.leaves if leaf in under)


@dataclass(frozen=True)
class Geography:
    """Places with their positions; municipalities are numbered in the order of the code list."""

    codes: CodeList
    share: Real  # of the households, by municipality
    area: Whole  # by municipality: capital, city, town or rural
    district: Whole  # by municipality
    province: Whole  # by municipality
    district_province: Whole  # by district
    district_area: Whole  # by district: the kind of its chief town


@cache
def geography() -> Geography:
    """The country, the same for every seed: only its people are drawn."""
    districts = _districts()
    sizes = [zipf(count, 1.3) * share for _, _, share, count in districts]
    district = np.repeat(np.arange(len(districts)), [len(s) for s in sizes])
    district_province = np.array([p for p, _, _, _ in districts])
    share = np.concatenate(sizes)
    area = np.select([share >= CITY_SHARE, share >= TOWN_SHARE], [CITY, TOWN], RURAL)
    area[0] = CAPITAL
    area = area.astype(np.int64)
    chief = np.searchsorted(district, np.arange(len(districts)))
    return Geography(
        codes=_code_list(districts),
        share=share,
        area=area,
        district=district,
        province=district_province[district],
        district_province=district_province,
        district_area=area[chief],
    )


def _districts() -> list[tuple[int, str, float, int]]:
    """(province, code, share of the population, number of municipalities) of each district."""
    found: list[tuple[int, str, float, int]] = []
    for p, (code, _, share, count) in enumerate(PROVINCES):
        parts = zipf(count, 0.6)
        if p == 0:  # the capital is a district of its own
            rest = zipf(count - 1, 0.4) * (1 - CAPITAL_SHARE_OF_PROVINCE)
            parts = np.concatenate([[CAPITAL_SHARE_OF_PROVINCE], rest])
        for d, part in enumerate(parts):
            size = MUNICIPALITIES_PER_DISTRICT[len(found) % len(MUNICIPALITIES_PER_DISTRICT)]
            is_capital = p == 0 and d == 0
            found.append((p, f"{code}{d + 1}", share * part, 1 if is_capital else size))
    return found


def zipf(count: int, exponent: float) -> Real:
    """Shares that fall with the rank to the power of `exponent`, and sum to one."""
    weights = np.arange(1.0, count + 1) ** -exponent
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def _code_list(districts: list[tuple[int, str, float, int]]) -> CodeList:
    """Country, provinces, districts and municipalities, each parent before its children."""
    entries = [CodeEntry(TOTAL, COUNTRY, None)]
    names = iter(range(1000))
    for p, (province, label, _, _) in enumerate(PROVINCES):
        entries.append(CodeEntry(province, label, TOTAL))
        for _, code, _, count in (d for d in districts if d[0] == p):
            towns = [place_name(next(names)) for _ in range(count)]
            entries.append(CodeEntry(code, f"{towns[0]} district", province))
            entries.extend(
                CodeEntry(f"{code}-{i:02d}", town, code) for i, town in enumerate(towns, start=1)
            )
    return CodeList("region", ("country", "province", "district", "municipality"), tuple(entries))


STEMS = (
    "Alder", "Ambre", "Arn", "Åsk", "Bel", "Birken", "Bram", "Brück", "Cald", "Cor",
    "Dal", "Dorn", "Elm", "Esk", "Fal", "Fenn", "Gald", "Grön", "Hart", "Hol",
    "Ilm", "Jor", "Kal", "Kest", "Lin", "Lør", "Mar", "Mühl", "Nor", "Od",
    "Orm", "Pell", "Quer", "Ros", "Sal", "Stern", "Tarn", "Ul", "Ver", "Wen",
)  # fmt: skip
ENDINGS = (
    "bach", "berg", "borough", "by", "dale", "fjord", "ford", "haven", "holm", "lund",
    "mere", "stadt", "vik", "wick",
)  # fmt: skip
# Shares no factor with the number of pairs, so neighbours get unlike names and none repeats.
_STRIDE = 229


def place_name(number: int) -> str:
    """The name of place `number`; distinct for numbers below 560."""
    stem, ending = divmod(number * _STRIDE % (len(STEMS) * len(ENDINGS)), len(ENDINGS))
    return STEMS[stem] + ENDINGS[ending]


def nested_codes(
    variable: str,
    levels: tuple[str, ...],
    groups: Iterable[tuple[Pair, Iterable[Pair]]],
    *,
    not_applicable: str | None = None,
) -> CodeList:
    """A list with one level of groups between the total and the leaves, all as (code, label).

    The leaf "not applicable", where there is one, lies directly under the total.
    """
    entries = [CodeEntry(TOTAL, "Total", None)]
    for (group, group_label), leaves in groups:
        entries.append(CodeEntry(group, group_label, TOTAL))
        entries.extend(CodeEntry(code, label, group) for code, label in leaves)
    if not_applicable is not None:
        entries.append(CodeEntry(NOT_APPLICABLE, not_applicable, TOTAL))
    return CodeList(variable, levels, tuple(entries))


def flat_codes(variable: str, leaves: Iterable[Pair]) -> CodeList:
    """A list of leaves directly under the total."""
    entries = [CodeEntry(code, label, TOTAL) for code, label in leaves]
    return CodeList(variable, ("total", variable), (CodeEntry(TOTAL, "Total", None), *entries))
