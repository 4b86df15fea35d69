from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest

from discreet import demo
from discreet.columns import Column
from discreet.demo.geography import geography
from discreet.frames import Frame, concat
from discreet.randomness import stream

VARIABLES = (
    "region", "age", "sex", "marital", "education", "occupation", "industry", "citizenship",
)  # fmt: skip


@dataclass(frozen=True)
class SmallCellCounts:
    """Cells of all tables of one order, taken together."""

    cells: int  # those that are not empty
    small: int  # those of them with a small count
    occupancy: float  # records per non-empty cell

    @property
    def share(self) -> float:
        """Share of the non-empty cells that are small."""
        return self.small / self.cells


def small_cells(
    table: Frame, variables: Sequence[str], *, order: int = 3, at_most: int = 2
) -> SmallCellCounts:
    """Counts small cells over all tables of `order` of the variables.

    Args:
      table: The records.
      variables: Columns to cross.
      order: Number of columns of each table.
      at_most: Largest count that is called small.
    """
    coded = [_positions(table[name]) for name in variables]
    counts = []
    for chosen in combinations(coded, order):
        cell = np.zeros(table.num_rows, dtype=np.int64)
        for positions, size in chosen:
            cell = cell * size + positions
        counts.append(np.unique(cell, return_counts=True)[1])
    cells = sum(len(c) for c in counts)
    small = sum(int((c <= at_most).sum()) for c in counts)
    return SmallCellCounts(cells, small, table.num_rows * len(counts) / cells)


def _positions(column: Column) -> tuple[np.ndarray, int]:
    """Each record's category as a number, and the number of categories; a null is one of them."""
    codes, distinct = column.encoded()
    return np.where(codes < 0, len(distinct), codes).astype(np.int64), len(distinct) + 1


def column(table: Frame, name: str) -> np.ndarray:
    if name == "district":
        return np.array([code[:2] for code in table["region"].to_pylist()])
    return np.array(table[name].to_pylist())


def occurrences(table: Frame, impossible) -> int:
    first, second = (np.isin(column(table, v), sorted(c)) for v, c in impossible.items())
    return int((first & second).sum())


@pytest.mark.parametrize("impossible", demo.structural_zeros(), ids=lambda z: "-".join(z))
def test_structural_zeros_never_occur(census, impossible):
    assert occurrences(census, impossible) == 0
    for variable, codes in impossible.items():
        assert occurrences(census, {variable: codes, "sex": {"F", "M"}}) > 0


def test_members_share_region_and_household_size(census):
    household = column(census, "household_id")
    start = np.flatnonzero(np.diff(household, prepend=0))
    number = np.add.reduceat(np.ones(len(household), dtype=int), start)
    np.testing.assert_array_equal(column(census, "household_size"), np.repeat(number, number))
    region = column(census, "region")
    np.testing.assert_array_equal(region, np.repeat(region[start], number))


def test_each_household_has_one_reference_person_who_comes_first(census):
    household = column(census, "household_id")
    first = np.diff(household, prepend=0) == 1
    np.testing.assert_array_equal(first, column(census, "relation") == "REF")


def test_at_most_one_spouse_who_shares_the_marital_status_of_a_union(census):
    relation, marital = column(census, "relation"), column(census, "marital")
    spouse = np.flatnonzero(relation == "SPO")
    assert (relation[spouse - 1] == "REF").all()
    for status in ("MAR", "REG"):
        joined = marital[spouse] == status
        alone = marital[spouse - 1] == status
        assert (joined == alone).mean() > 0.98
        assert joined.sum() > 100


def test_ages_within_households_fit_the_relation(census):
    household, relation = column(census, "household_id"), column(census, "relation")
    years = column(census, "age_years").astype(int)
    reference = years[relation == "REF"][household - 1]
    gap = years - reference
    assert gap[relation == "CHI"].max() <= -16
    assert gap[relation == "ASC"].min() >= 16
    assert np.corrcoef(years[relation == "SPO"], reference[relation == "SPO"])[0, 1] > 0.9
    assert years[relation != "CHI"].min() >= 18


def cramers_v(x: np.ndarray, y: np.ndarray) -> float:
    (a, i), (b, j) = (np.unique(v, return_inverse=True) for v in (x, y))
    seen = np.zeros((len(a), len(b)))
    np.add.at(seen, (i, j), 1)
    expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / seen.sum()
    square = ((seen - expected) ** 2 / expected).sum() / seen.sum()
    return float(np.sqrt(square / (min(seen.shape) - 1)))


@pytest.mark.parametrize(
    ("a", "b", "least"),
    [
        ("age", "marital", 0.25),
        ("age", "education", 0.08),
        ("sex", "marital", 0.05),
        ("sex", "occupation", 0.35),
        ("education", "occupation", 0.30),
        ("occupation", "industry", 0.40),
        ("district", "citizenship", 0.09),
        ("district", "education", 0.07),
        ("district", "occupation", 0.065),
        ("district", "industry", 0.10),
    ],
)
def test_variables_depend_on_each_other(census, a, b, least):
    """Among people at work, and much more than when one of the two is shuffled."""
    working = census.filter(~census["occupation"].equal("NAP"))
    x, y = column(working, a), column(working, b)
    assert cramers_v(x, y) > least
    assert cramers_v(x, stream(0, "shuffle").permutation(y)) < 0.6 * least


def test_sizes_are_skewed(census):
    regions = np.sort(np.unique(column(census, "region"), return_counts=True)[1])[::-1]
    assert 0.10 < regions[0] / 100_000 < 0.16
    assert (regions < 50).sum() > 50
    citizens = column(census, "citizenship")
    assert 0.8 < (citizens == "TV").mean() < 0.95
    assert np.unique(citizens, return_counts=True)[1].min() < 100


def test_the_population_looks_like_one(census):
    years = column(census, "age_years")
    assert 0.12 < (years < 15).mean() < 0.20
    assert 0.15 < (years >= 65).mean() < 0.25
    assert 0.49 < (column(census, "sex") == "F").mean() < 0.53
    assert 0.36 < (column(census, "occupation") != "NAP").mean() < 0.50
    assert 2.0 < len(years) / len(np.unique(column(census, "household_id"))) < 2.5


def plain_small_share(table: Frame) -> tuple[int, int]:
    """Slow reference: a dictionary of tuples for each three-way table."""
    cells = small = 0
    rows = {v: table[v].to_pylist() for v in VARIABLES}
    for chosen in combinations(VARIABLES, 3):
        counts: dict[tuple[str, ...], int] = {}
        for key in zip(*(rows[v] for v in chosen), strict=True):
            counts[key] = counts.get(key, 0) + 1
        cells += len(counts)
        small += sum(n <= 2 for n in counts.values())
    return cells, small


def test_small_cells_agree_with_a_plain_count(census):
    few = census.slice(0, 2_000)
    found = small_cells(few, VARIABLES)
    assert (found.cells, found.small) == plain_small_share(few)
    assert found.occupancy == pytest.approx(2_000 * 56 / found.cells)
    assert found.share == found.small / found.cells


def test_nulls_are_a_category_of_small_cells():
    table = Frame({"a": ["x", None, None], "b": [1, 1, 1]})
    assert small_cells(table, ["a", "b"], order=2).cells == 2
    assert small_cells(table, ["a", "b"], order=2, at_most=1).small == 1


def twenty_areas(table: Frame) -> Column:
    """Neighbouring municipalities joined into areas of similar size."""
    share = geography().share
    area = np.floor(20 * (np.cumsum(share) - share / 2)).astype(int)
    of = dict(zip(geography().codes.leaves, area.tolist(), strict=True))
    return Column([of[code] for code in table["region"].to_pylist()])


def test_as_many_small_cells_as_in_a_real_file(census):
    """American Community Survey 2019, excerpt by NIST: 27,253 records, share 0.282.

    Its variables: area (20), age in five-year groups, sex, marital status, education and
    industry (20 groups).
    """
    ours = census.slice(0, 27_253)
    section = [code if code == "NAP" else code[0] for code in ours["industry"].to_pylist()]
    ours = ours.with_column("area", twenty_areas(ours)).with_column("section", section)
    found = small_cells(ours, ["area", "age", "sex", "marital", "education", "section"])
    assert found.share == pytest.approx(0.282, abs=0.03)


def test_share_of_small_cells_of_the_finest_codes(census):
    """The same real file has 0.586 with 264 industries and race, at 12 records to a cell."""
    finest = small_cells(census, VARIABLES)
    assert 0.55 < finest.share < 0.70
    assert 10 < finest.occupancy < 18


@pytest.mark.parametrize("seed", [2, 3])
def test_the_share_of_small_cells_does_not_hang_on_the_seed(census, seed):
    other = concat(demo.generate(100_000, seed))
    a, b = (small_cells(t, VARIABLES).share for t in (census, other))
    assert abs(a - b) < 0.01
