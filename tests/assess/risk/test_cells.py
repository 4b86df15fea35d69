"""Risks that are seen cell by cell, and those of the mechanism."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet.assessment import NotApplicableError
from discreet.assessment.cells import toy
from discreet.assessment.risk.entropy import (
    EntropyRisk,
    MechanismDelta,
    MechanismEpsilon,
    entropy_risk,
)
from discreet.assessment.risk.unchanged import (
    CertainNonzero,
    ProvenNonzero,
    SmallCells,
    UnchangedCells,
    Uniqueness,
)
from discreet.noise import discrete_laplace, drop_add, perturbation_table, pram
from tests.assess import party
from tests.assess.helpers import TEST


def test_unchanged_cells_of_the_printed_tables():
    # Tables 2, 3 and 4 of Langsrud & Lupp (2021), compared by eye.
    table = party.table()
    ckm = UnchangedCells()(table, party.release(party.aggregated(party.TABLE_3)))
    assert sum(ckm.breakdown["unchanged"].to_pylist()) == 7
    scr = UnchangedCells()(table, party.release(party.aggregated(party.TABLE_4)))
    assert scr.value == pytest.approx(13 / 23)
    small = SmallCells(unchanged=True)(table, party.release(party.aggregated(party.TABLE_4)))
    assert small.value == 0  # both ones of party B were rounded
    assert UnchangedCells(zeros=True)(*toy([0, 1], [0, 2])).value == 0.5


def test_decimals_count_as_the_number_they_round_to():
    assert UnchangedCells()(*toy([3, 3], [3.4, 3.6])).value == 0.5
    assert SmallCells()(*toy([1, 2], [1.2, 2.6])).value == 0.5
    assert Uniqueness()(*toy([1, 2], [0.7, 2.0])).value == 1.0


def test_uniqueness_counts_false_uniques_too():
    score = Uniqueness()(*toy([1, 1, 4, 4], [1, 2, 1, 1]))
    assert score.breakdown.to_pylist()[0] == {
        "true": 2, "released": 3, "both": 1, "unique_records": 0.2
    }  # fmt: skip
    assert score.value == pytest.approx(2 / 5)


@pytest.mark.parametrize(
    "measure", [UnchangedCells(), CertainNonzero(), SmallCells(), SmallCells(unchanged=True)]
)
def test_an_empty_table_gives_nothing_away(measure):
    case = toy([0, 0], [0, 0])
    if isinstance(measure, CertainNonzero):
        assert measure(*case).value == 0
    else:
        with pytest.raises(NotApplicableError):
            measure(*case)


def test_a_positive_value_proves_nothing_when_zeros_are_perturbed():
    noisy = discrete_laplace(1, 5)
    case = toy([1, 4, 9, 0], [1, 5, 9, 2])
    assert ProvenNonzero(mechanism=drop_add())(*case).value == 1
    assert ProvenNonzero(mechanism=noisy)(*case).value == pytest.approx(1 / 3)  # 9 only
    assert CertainNonzero()(*case).value == 0.75
    with pytest.raises(NotApplicableError, match="decimals"):
        ProvenNonzero(mechanism=noisy)(*toy([1], [1.5]))


@pytest.mark.parametrize(
    ("a", "b", "printed"),
    [
        ((6, 4), (4, 6), 0.4325),
        ((1, 1, 1, 1), (4, 0, 0, 0), 0.0),
        ((6, 4, 0), (6, 4, 3), 0.7692),
        ((5, 5, 0), (5, 0, 5), 1.0),
        ((7, 0), (3, 4), 1.0),
    ],
)
def test_entropy_examples(a, b, printed):
    assert entropy_risk(a, b) == pytest.approx(printed, abs=5e-5)


counts = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=8)


def slow_entropy_risk(a, b):
    """The printed formula, term by term."""
    N, M = sum(a), sum(b)
    a, b = [x * M for x in a], [x * N for x in b]
    N = N * M
    m = [min(x, y) for x, y in zip(a, b, strict=True)]
    H = -sum(x / N * math.log(x / N) for x in a if x)
    if H == 0:
        return 1.0
    rest = N - sum(m)
    cond = 0.0
    for x, y, k in zip(a, b, m, strict=True):
        cond -= k / N * math.log(k / y) if k else 0
        cond -= (x - k) / N * math.log((x - k) / rest) if x > k else 0
        cond -= (y - k) / N * math.log((y - k) / y) if y > k else 0
    return 1 - cond / H


@given(counts)
def test_entropy_risk_against_its_formula_and_its_repair(pairs):
    a, b = zip(*pairs, strict=True)
    if not sum(a) or not sum(b):
        with pytest.raises(NotApplicableError):
            entropy_risk(a, b)
        return
    plain, repaired = entropy_risk(a, b), entropy_risk(a, b, repaired=True)
    assert plain == pytest.approx(slow_entropy_risk(a, b), abs=1e-9)
    assert 0 <= repaired <= plain + 1e-12 <= 1 + 1e-9
    filled = any(x == 0 < y for x, y in pairs)
    if not filled and np.count_nonzero(a) > 1:
        assert repaired == pytest.approx(plain, abs=1e-9)
    if filled and np.count_nonzero(a) > 1 and plain > 0:
        assert repaired < plain


def test_the_blind_spot_and_its_repair():
    a, moved, kept = (5, 5, 0), (5, 0, 5), (5, 5, 0)
    assert entropy_risk(a, moved) == entropy_risk(a, kept) == 1
    assert entropy_risk(a, moved, repaired=True) == pytest.approx(0.5)
    assert entropy_risk(a, kept, repaired=True) == 1
    assert entropy_risk((10, 0), (4, 6), repaired=True) == pytest.approx(0.4)


def test_entropy_looks_at_the_finest_tables_and_takes_the_worst():
    design = dc.Design.product({"a": 2, "b": 2, "c": 2}, "a*b + a*c")
    table = dc.Table.from_inner(design, np.arange(1, 9))
    release = dc.Release(design, table.z + np.arange(design.n_published) % 3, TEST)
    score = EntropyRisk()(table, release)
    rows = score.breakdown.to_pylist()
    assert [r["table"] for r in rows] == ["a×b", "a×c"]
    assert score.value == max(r["risk"] for r in rows)
    assert EntropyRisk(repaired=True)(table, release).value <= score.value


def test_mechanisms_of_shlomo_krenzke_and_li():
    case = toy([1], [1])
    laplace = MechanismDelta(mechanism=discrete_laplace(2, 7), epsilon=2)(*case)
    assert laplace.value == pytest.approx(0.000000633, abs=5e-10)  # Table 4
    rows = MechanismDelta(mechanism=pram())(*case).breakdown.to_pylist()
    delta = {(r["first"], r["second"]): r["delta"] for r in rows}
    assert delta[1, 0] == pytest.approx(0.8808, abs=5e-5)  # not 0.1192: zeros stay zero
    rows = MechanismEpsilon(mechanism=pram())(*case).breakdown.to_pylist()
    ratio = {(r["first"], r["second"]): r["epsilon"] for r in rows}
    assert max(ratio[1, 2], ratio[2, 1]) == pytest.approx(2.145, abs=5e-4)
    rows = MechanismDelta(mechanism=drop_add())(*case).breakdown.to_pylist()
    delta = {(r["first"], r["second"]): r["delta"] for r in rows}
    assert delta[2, 1] == pytest.approx(1 / 3)
    assert MechanismEpsilon(mechanism=perturbation_table(D=5, V=3, js=2))(*case).on == "one cell"


def test_a_release_that_states_its_own_guarantee_is_taken_at_its_word():
    """The noise of one cell says nothing about a release of many."""
    table = party.table()
    release = table.simulate(dc.Laplace(epsilon=1.5), seed=1)
    assert MechanismEpsilon(mechanism=drop_add())(table, release).value == pytest.approx(1.5)


def test_without_a_mechanism_or_a_statement_there_is_no_epsilon():
    with pytest.raises(NotApplicableError, match="mechanism"):
        MechanismEpsilon()(*toy([1], [1]))
