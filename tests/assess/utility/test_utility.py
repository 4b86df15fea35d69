"""Utility measures against printed figures and slow versions of themselves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet import registry
from discreet.assessment import NotApplicableError
from discreet.assessment.cells import toy
from discreet.assessment.utility.additivity import AdditivityError
from discreet.assessment.utility.association import (
    HellingerDistance,
    HellingerUtility,
    LargestRankMove,
    RankCorrelation,
)
from discreet.assessment.utility.deviation import (
    Deviation,
    FalseZeros,
    InaccurateCells,
    MeanPercentageError,
    TotalBias,
    TotalDifference,
)
from discreet.design import ProductDesign
from discreet.errors import ParameterError
from tests.assess import party
from tests.assess.helpers import TEST
from tests.references import design_matrix
from tests.strategies import designs


@pytest.mark.parametrize(
    ("printed", "expected"),
    [(party.TABLE_4, 0.945652), (party.TABLE_3, 0.932556), (party.TABLE_6, 0.948147)],
    ids=["small count rounding", "cell key", "cell key, adjusted"],
)
def test_hellinger_utility_of_langsrud_and_lupp(printed, expected):
    release = party.release(party.aggregated(printed))
    assert HellingerUtility()(party.table(), release).value == pytest.approx(expected, abs=3e-6)


def test_the_sign_version_allows_negative_values():
    # 4 -> -1: (2 + 1)^2 / 2, by hand.
    pair = toy([4, 9], [-1, 9])
    assert HellingerDistance()(*pair).value == pytest.approx(np.sqrt(4.5))
    assert HellingerUtility()(*toy([1, 1], [-16, -16])).value < 0
    with pytest.raises(NotApplicableError, match="negative"):
        HellingerDistance(signed=False)(*pair)
    plain = toy([4, 9], [1, 9])
    assert HellingerDistance(signed=False)(*plain) == HellingerDistance()(*plain)


def test_hellinger_by_number_of_crossed_variables():
    table = party.table()
    rows = HellingerDistance()(table, party.RELEASES["ckm"]).breakdown.to_pylist()
    assert [(r["variables"], r["cells"]) for r in rows] == [(0, 1), (1, 8), (2, 15)]
    squares = sum(r["distance"] ** 2 for r in rows)
    assert squares == pytest.approx(HellingerDistance()(table, party.RELEASES["ckm"]).value ** 2)


def test_a_table_without_records_has_no_utility():
    with pytest.raises(NotApplicableError, match="total is zero"):
        HellingerUtility()(*toy([0, 0], [1, 0]))


counts = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), min_size=1, max_size=30)


@given(counts)
def test_deviations_against_loops(pairs):
    f, g = zip(*pairs, strict=True)
    case = toy(f, g)
    d = sorted(abs(a - b) for a, b in pairs)
    n = len(d)
    median = (d[(n - 1) // 2] + d[n // 2]) / 2
    assert Deviation()(*case).value == pytest.approx(sum(d) / n)
    assert Deviation(summary="median")(*case).value == median
    assert Deviation(summary="max")(*case).value == d[-1]
    assert Deviation(summary="root-mean-square")(*case).value == pytest.approx(
        (sum(x * x for x in d) / n) ** 0.5
    )
    relative = [abs(a - b) / a for a, b in pairs if a]
    if relative:
        expected = sum(relative) / len(relative)
        assert Deviation(relative=True)(*case).value == pytest.approx(expected)
        zeros = sum(b == 0 for a, b in pairs if a) / len(relative)
        assert FalseZeros()(*case).value == pytest.approx(zeros)
        signed = [100 * (b - a) / a for a, b in pairs if a]
        assert MeanPercentageError()(*case).value == pytest.approx(sum(signed) / len(signed))
        off = sum(20 * abs(a - b) > a for a, b in pairs if a) / len(relative)
        assert InaccurateCells()(*case).value == pytest.approx(off)
    empty = [b for a, b in pairs if a == 0]
    if empty:
        assert FalseZeros(positives=True)(*case).value == pytest.approx(
            sum(map(bool, empty)) / len(empty)
        )


def test_deviations_by_class_of_the_true_count():
    score = Deviation()(*toy([0, 1, 2, 9, 100, 5000], [1, 1, 4, 9, 103, 5001]))
    assert score.breakdown.to_pydict() == {
        "class": ["0", "1-2", "3-9", "100+"],
        "cells": [1, 2, 1, 2],
        "mean": [1.0, 1.0, 0.0, 2.0],
        "median": [1.0, 1.0, 0.0, 2.0],
        "max": [1.0, 2.0, 0.0, 3.0],
        "root-mean-square": pytest.approx([1.0, 2**0.5, 0.0, 5**0.5]),
    }
    other = Deviation(classes=(0, 5))(*toy([0, 9], [1, 9]))
    assert other.breakdown["class"].to_pylist() == ["0-4", "5+"]
    with pytest.raises(ParameterError, match="begin with 0"):
        Deviation(classes=(1, 5))(*toy([0, 9], [1, 9]))


def test_signed_errors_and_inaccurate_cells_by_size():
    case = toy([1, 2, 50, 400, 1000, 0], [2, 2, 48, 390, 1040, 3])
    by_size = MeanPercentageError()(*case).breakdown.to_pydict()
    assert by_size["class"] == ["1-2", "10-99", "100+"]
    assert by_size["mean"] == pytest.approx([50.0, -4.0, 0.75])
    shares = InaccurateCells()(*case).breakdown.to_pydict()["share"]
    assert shares == [0.5, 0.0, 0.0]
    assert InaccurateCells(limit=0.03)(*case).value == pytest.approx(3 / 5)
    with pytest.raises(NotApplicableError, match="zero"):
        MeanPercentageError()(*toy([0, 0], [1, 0]))


def test_families_are_known_by_name_and_refuse_other_parameters():
    assert registry.build("measure", "max-relative-deviation") == Deviation(
        summary="max", relative=True
    )
    for name in registry.MEASURES:
        assert registry.build("measure", name).name == name
    with pytest.raises(ParameterError, match="summary"):
        Deviation(summary="mode")


def test_large_counts_do_not_overflow_the_root_mean_square():
    big = 4_000_000_000
    assert Deviation(summary="root-mean-square")(*toy([0, 0], [big, big])).value == pytest.approx(
        big
    )


def test_totals_are_taken_table_by_table():
    table = party.table()
    release = party.release(party.aggregated(party.TABLE_4))
    rows = {r["table"]: r["bias"] for r in TotalBias()(table, release).breakdown.to_pylist()}
    assert rows == dict.fromkeys(("party×age", "party×sex", "party", "age", "sex", "total"), 1.0)
    assert TotalDifference()(table, release).value == pytest.approx(100 / 56)
    assert TotalBias()(*toy([4, 4], [1, 4])).value == -3


def test_ranks_against_scipy():
    from scipy import stats

    rng = np.random.default_rng(3)
    f, g = rng.integers(0, 20, 200), rng.integers(0, 20, 200)
    case = toy(f, g)
    assert RankCorrelation()(*case).value == pytest.approx(stats.spearmanr(f, g).statistic)
    assert RankCorrelation(concordance=True)(*case).value == pytest.approx(
        stats.kendalltau(f, g).statistic
    )
    moved = np.abs(stats.rankdata(f) - stats.rankdata(g)).max()
    assert LargestRankMove()(*case).value == moved


def test_ranks_are_taken_within_tables():
    table = dc.Table.from_inner(dc.Design.product({"a": 3}, "a"), np.array([1, 2, 3]))
    release = dc.Release(table.design, np.array([3, 2, 1, 6]), TEST)
    assert RankCorrelation()(table, release).value == pytest.approx(-1)
    with pytest.raises(NotApplicableError, match="rank"):
        RankCorrelation()(*toy([3, 3], [1, 2]))


def test_additivity_of_the_printed_cell_key_table():
    # "The published total for party A is 18, but calculated from the age and sex subtotals it
    # becomes 21 and 16" (Langsrud & Lupp 2021, section 2).
    score = AdditivityError()(party.table(), party.release(party.aggregated(party.TABLE_3)))
    rows = {(r["table"], r["against"]): r for r in score.breakdown.to_pylist()}
    assert rows.keys() == {
        ("party×age", "party"), ("party×sex", "party"), ("party×age", "age"),
        ("party×sex", "sex"), ("party", "total"), ("age", "total"), ("sex", "total"),
    }  # fmt: skip
    assert rows["party×age", "party"]["max"] == 6  # party C: 5 + 11 + 7 against 29
    assert rows["party×sex", "party"]["mean"] == pytest.approx((2 + 3 + 3) / 3)
    assert rows["party", "total"]["disagreeing"] == 0  # 18 + 10 + 29 = 57
    adjusted = party.release(party.aggregated(party.TABLE_6))
    assert AdditivityError()(party.table(), adjusted).value < 2e-4
    scr = party.release(party.aggregated(party.TABLE_4))
    assert AdditivityError()(party.table(), scr).value == 0


def test_additivity_against_released_inner_cells():
    table = party.table()
    release = party.release(table.z + 1, table.y)
    assert AdditivityError()(table, release).value == 1


@settings(max_examples=60)
@given(designs(), st.integers(0, 2**32 - 1))
def test_sums_of_inner_cells_are_additive(design, seed):
    if design.support == "occurring":
        design = design.public().design
    y = np.random.default_rng(seed).integers(0, 9, design.n_inner)
    table = dc.Table.from_inner(design, y)
    try:
        score = AdditivityError()(table, dc.Release(design, table.z, TEST))
    except NotApplicableError:
        return
    assert score.value == 0


TERMS = dc.margins(["a", "b", "c"], order=3)
flat_margins = st.lists(st.sampled_from(TERMS), min_size=2, max_size=5, unique=True)


@settings(max_examples=60)
@given(flat_margins, st.integers(0, 2**32 - 1), st.booleans())
def test_flat_tables_are_additive_exactly_when_some_inner_table_has_them(margins, seed, additive):
    names = sorted({v for term in margins for v in term})
    design = dc.Design.product(
        dict.fromkeys(names, 2) | ({"b": 3} if "b" in names else {}), margins
    )
    rng = np.random.default_rng(seed)
    table = dc.Table.from_inner(design, rng.integers(0, 9, design.n_inner))
    z = table.z + (0 if additive else rng.integers(-1, 2, design.n_published))
    X = design_matrix(design)
    residual = z - X.T @ np.linalg.lstsq(X.T.astype(float), z.astype(float), rcond=None)[0]
    try:
        found = AdditivityError()(table, dc.Release(design, z, TEST)).value > 0
    except NotApplicableError:
        found = False
    assert isinstance(design, ProductDesign)
    assert found == bool(np.abs(residual).max() > 1e-9)


def test_tables_that_only_overlap_are_compared_on_what_they_share():
    design = dc.Design.product({"a": 2, "b": 2, "c": 2}, [("a", "b"), ("b", "c")])
    table = dc.Table.from_inner(design, np.arange(8))
    z = table.z.copy()
    z[0] += 2
    score = AdditivityError()(table, dc.Release(design, z, TEST))
    assert score.breakdown.to_pydict()["sums"] == [2]
    assert score.value == 1.0


def test_every_level_of_a_hierarchy_is_checked_against_the_next():
    tree = dc.Hierarchy.from_dict(
        {"All": {"N": ["n1", "n2"], "S": {"s1": ["s11", "s12"], "s2": []}}}
    )
    frame = {"place": ["n1", "n2", "s11", "s12", "s2"], "n": [1, 2, 3, 4, 5]}
    table = dc.Table.from_counts(frame, count="n", margins="place", hierarchies={"place": tree})
    assert AdditivityError()(table, dc.Release(table.design, table.z, TEST)).value == 0
    for k in range(table.design.n_published):
        z = table.z.copy()
        z[k] += 1
        assert AdditivityError()(table, dc.Release(table.design, z, TEST)).value > 0, k


@pytest.mark.slow
@settings(max_examples=40)
@given(designs(), st.integers(0, 2**32 - 1))
def test_a_disagreement_is_never_a_false_alarm(design, seed):
    if design.support == "occurring":
        design = design.public().design
    rng = np.random.default_rng(seed)
    table = dc.Table.from_inner(design, rng.integers(0, 9, design.n_inner))
    z = table.z.copy()
    z[rng.integers(len(z))] += 1
    X = design_matrix(design)
    residual = z - X.T @ np.linalg.lstsq(X.T.astype(float), z.astype(float), rcond=None)[0]
    try:
        found = AdditivityError()(table, dc.Release(design, z, TEST)).value
    except NotApplicableError:
        found = 0.0
    if found > 0:
        assert np.abs(residual).max() > 1e-9
