"""Proven intervals: laws on random tables, proofs that are checked, and clear refusals."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array

import discreet as dc
from discreet import Design, Table
from discreet.design import SparseDesign
from discreet.errors import DesignError, InfeasibleError, ParameterError
from discreet.suppress import PUBLISHED
from discreet.suppress.interval import IntervalSearch, suppress_by_interval
from discreet.suppress.plan import PublicationPlan
from discreet.suppress.proofs import Proofs
from discreet.testing import retabulate
from tests.protect.suppress.reference import RULES, disclosed, square, states, tables
from tests.protect.tables import party

SLOW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
SQUARE = [[3, 11, 32, 30], [1, 9, 13, 8], [12, 22, 2, 2], [18, 19, 16, 3]]
"""Table 1 of Langsrud (2019a)."""


def suppressed(table, rule, **options):
    return dc.Suppress(rule, secondary="interval", **options).pattern(table)


def test_a_contributor_alone_in_several_cells_cannot_combine_them():
    design = Design.product({"a": 3, "b": 4}, "a*b")
    table = Table.from_inner(design, np.array([5, 7, 9, 30, 6, 8, 10, 40, 11, 12, 13, 50]))
    primary = np.zeros(design.n_published, dtype=np.int8)
    for b in "123":
        primary[design.position({"a": "1", "b": b})] = 1
    lone = np.zeros(12, dtype=bool)
    lone[:2] = True
    need = primary.astype(np.float64)
    who = {"y": table.y, "lone": lone, "owner": np.where(lone, 7, -1)}
    pattern = dc.suppress.Pattern(design, table.z, primary, lower=need, upper=need, **who)
    plan = PublicationPlan(np.empty(0, int), np.flatnonzero(primary == 0), zeros_are_public=False)
    found = suppress_by_interval(pattern, plan)
    X = design.matrix().toarray()
    knows = np.column_stack([X[:, ~found.suppressed], np.eye(12)[:, :2]])
    third = X[:, design.position({"a": "1", "b": "3"})]
    before = np.linalg.matrix_rank(knows)
    assert np.linalg.matrix_rank(np.column_stack([knows, third])) == before + 1


@pytest.mark.parametrize(("zeros", "mean"), [(True, 0.25), (False, 0.12)])
def test_rows_that_stand_for_many_give_patterns_that_are_safe_on_all(zeros, mean):
    design = Design.product({"a": 6, "b": 5, "c": 4, "d": 5}, "a*b + c*d + a*d")
    counts = np.random.default_rng(4).poisson(mean, design.n_inner)
    table = Table.from_inner(design, counts)
    rule = dc.rules.Threshold(2, zeros=zeros)
    with_inner, without = table, replace(table, inner=None)
    for each in (with_inner, without):
        pattern = suppressed(each, rule)
        assert pattern.n_primary > 0
        assert disclosed(pattern, zeros_are_public=not zeros) == []
        assert clean(pattern)


def test_a_table_read_from_records_is_as_safe_where_rows_stand_for_many():
    design = Design.product({"a": 6, "b": 5, "c": 6, "d": 5}, "a*b + c*d + a*d + b*c")
    counts = np.random.default_rng(5).poisson(0.08, design.n_inner)
    some = np.flatnonzero(counts)
    codes = [leaf[some] for leaf in design.inner_codes()]
    kept = SparseDesign(design.axes, design.terms, codes, occurring=True)
    occurring, z = Table.from_inner(kept, counts[some]), design.aggregate(counts)
    for table in (occurring, replace(occurring, inner=None)):
        release = table.protect(dc.Suppress(dc.rules.Threshold(2)))
        states = release.hidden * (1 + (z > 2)).astype(np.int8)
        at_full = dc.suppress.Pattern(design, z, states)
        assert at_full.n_primary > 0
        assert disclosed(at_full, zeros_are_public=True) == []


def clean(pattern, lone="signs"):
    return dc.audit(replace(pattern, proofs=None), lone=lone, workers=1).is_clean


@SLOW
@given(tables(), RULES, st.booleans())
def test_no_primary_is_at_risk_by_linear_programs_nor_for_a_lone_contributor(table, rule, lone):
    pattern = suppressed(table, rule, singletons=lone)
    assert clean(pattern, "signs" if lone else "none")
    assert not len(pattern.proofs.unproven(pattern))


@SLOW
@given(tables(), RULES)
def test_publishing_any_secondary_leaves_a_primary_without_its_interval(table, rule):
    """Without lone contributors the audit sees all that the search does."""
    pattern = suppressed(table, rule, singletons=False)
    for k in np.flatnonzero(pattern.secondary):
        assert not clean(pattern.publishing(int(k)), "none")


@SLOW
@given(tables(), RULES, st.booleans())
def test_swaps_keep_all_intervals_and_never_cost_more(table, rule, lone):
    primary, plan = dc.Suppress(rule)._sensitive(table)
    search = IntervalSearch(primary, plan, singletons=lone, every_row=True)
    for step in (search.prove, search.repair, search.thin):
        step()
    before = search.pattern()
    search.swap()
    after = search.pattern()
    assert after.cost <= before.cost
    assert not len(after.proofs.unproven(after))


@SLOW
@given(tables(), RULES)
def test_the_order_of_the_axes_changes_nothing_but_labels(table, rule):
    here = suppressed(table, rule)
    there = suppressed(retabulate(table, table.design.terms), rule)

    assert states(here) == states(there)
    assert not len(there.proofs.unproven(there))


@SLOW
@given(
    st.lists(st.integers(1, 60), min_size=12, max_size=40),
    st.integers(0, 2**32 - 1),
    st.sampled_from(
        [dc.rules.PPercent(10), dc.rules.Dominance(1, 75), dc.rules.FewContributors(3)]
    ),
)
def test_magnitudes_keep_the_intervals_of_their_rules(values, seed, rule):
    rng = np.random.default_rng(seed)
    n = len(values)
    frame = pd.DataFrame(
        {
            "trade": rng.choice(list("abc"), n),
            "region": rng.choice(list("xyz"), n),
            "firm": rng.integers(0, n // 2, n),
            "turnover": np.array(values, float),
        }
    )
    table = dc.Table.from_contributions(
        frame, "trade*region", value="turnover", contributor="firm", support="occurring"
    )
    pattern = suppressed(table, rule)
    assert clean(pattern)
    assert not len(pattern.proofs.unproven(pattern))


def test_the_audit_checks_the_proofs():
    pattern = suppressed(square(SQUARE), dc.rules.Threshold(3))
    assert dc.audit(pattern).is_clean
    assert "interval not proven: none" in dc.audit(pattern).text
    none = replace(pattern, proofs=Proofs(csc_array(pattern.proofs.changes[:, :0])))
    assert (dc.audit(none).unproven == np.flatnonzero(pattern.primary)).all()


def test_a_proof_that_moves_a_shown_cell_or_makes_one_negative_proves_nothing():
    pattern = suppressed(square(SQUARE), dc.rules.Threshold(3))
    proofs = pattern.proofs
    assert proofs.valid(pattern).all()
    assert not Proofs(proofs.changes * 100.0).valid(pattern).any()
    shown = pattern.with_state(np.full(len(pattern.z), PUBLISHED))
    assert not proofs.valid(shown).any()


def test_wider_intervals_are_given_when_asked_for():
    table = square(SQUARE)
    for width in (2, 4, 8):
        pattern = suppressed(table, dc.rules.Threshold(3, width=width))
        found = dc.audit(pattern, intervals="primary", workers=1)
        inside = np.isfinite(found.low)
        assert (found.high - found.low)[inside].min() >= width - 1e-6


def test_a_level_that_no_suppression_gives_is_refused_by_name():
    table = square([[2, 9], [9, 9]])
    with pytest.raises(InfeasibleError, match="cell c=1, r=1 needs an interval that reaches 1"):
        suppressed(table, dc.rules.Threshold(3), frozen=[{"r": "1"}, {"r": "1", "c": "2"}])


def test_differences_keep_room_as_well():
    table = square([[5, 5, 1], [7, 9, 8], [6, 4, 20]])
    pattern = suppressed(table, dc.rules.KDisclosure(1), zeros=True)
    assert pattern.differences == () or clean(pattern)
    assert not len(pattern.proofs.unproven(pattern))


def test_a_later_table_agrees_with_an_earlier_release():
    counts = {"r": ["1"] * 6 + ["2"] * 6, "c": list("aabbcc") * 2, "s": ["m", "f"] * 6}
    counts["n"] = [1, 6, 9, 8, 9, 12, 14, 2, 7, 15, 9, 8]
    first = dc.Table.from_counts(counts, "n", "r*c")
    method = dc.Suppress(dc.rules.Threshold(8), secondary="interval")
    earlier = first.protect(method)
    assert earlier.hidden.any()
    second = dc.Table.from_counts(counts, "n", "r*c + r*s + c*s")
    later = dc.suppress.consistent(method, second, earlier)
    pattern = later.pattern(second)
    assert clean(pattern)
    for k in range(len(earlier.z)):
        place = second.design.position(first.design.cell(k))
        assert pattern.suppressed[place] == earlier.hidden[k]
    with pytest.raises(DesignError, match="Tabulate the margins of both together"):
        dc.suppress.consistent(method, dc.Table.from_counts(counts, "n", "r*s"), earlier)


def test_a_dear_cell_is_exchanged_for_cheaper_ones():
    design = Design.product({"a": 5, "b": 5}, "a*b")
    counts = np.random.default_rng(45).negative_binomial(1, 0.08, design.n_inner)
    primary, plan = dc.Suppress(dc.rules.Threshold(4))._sensitive(Table.from_inner(design, counts))
    search = IntervalSearch(primary, plan, singletons=True)
    for step in (search.prove, search.repair, search.thin):
        step()
    before = search.pattern().cost
    search.swap()
    assert search.pattern().cost < before
    assert clean(search.pattern())


def test_intervals_are_kept_within_public_bounds():
    table = square(SQUARE)
    rule = dc.rules.Threshold(3, width=6)
    careless = suppressed(table, rule)
    known = [cell for cell in careless.cells(careless.secondary) if len(cell) == 2]
    values = {k: careless.z[careless.position(cell)] for k, cell in enumerate(known)}
    bounds = [(cell, values[k] - 1, values[k] + 1) for k, cell in enumerate(known)]
    careful = suppressed(table, rule, bounds=bounds)
    public = careful.bounds
    assert not dc.audit(replace(careless, proofs=None), bounds=public, workers=1).is_clean
    assert dc.audit(replace(careful, proofs=None), bounds=public, workers=1).is_clean
    assert not len(careful.proofs.unproven(careful))
    assert len(careless.proofs.unproven(replace(careless, bounds=public)))


def test_bounds_that_do_not_hold_are_refused():
    cell = {"r": "1", "c": "1"}
    with pytest.raises(ParameterError, match="its value does not"):
        suppressed(square(SQUARE), dc.rules.Threshold(3), bounds=[(cell, 5, 9)])
    with pytest.raises(ParameterError, match="a smallest and a largest value"):
        dc.Suppress(bounds=[(cell, 9, 5)])


@pytest.mark.parametrize("rule", [dc.rules.Threshold(3), dc.rules.Threshold(2, zeros=True)])
def test_boxes_prove_intervals_where_programs_would_be_too_large(monkeypatch, rule):
    monkeypatch.setattr("discreet.suppress.interval._LARGE", 0)
    monkeypatch.setattr("discreet.suppress.interval._NEAR_COST", 2)
    monkeypatch.setattr("discreet.solve.linear.changes._PartProgram.cheapest", lambda *_: None)
    pattern = suppressed(party("party*age + age*sex + party*sex"), rule)
    assert clean(pattern)
    assert pattern.n_secondary
    assert not len(pattern.proofs.unproven(pattern))


def test_inner_cells_are_in_doubt_unless_an_empty_cell_rules_them_out():
    margins = "party*age + party*sex + age*sex"
    occurring = party(margins, support="occurring")
    pattern = suppressed(occurring, dc.rules.Threshold(1))
    full = party(margins)
    empty = full.design.adjoint((full.z == 0).astype(int)) > 0
    assert occurring.design.n_inner < pattern.design.n_inner == (~empty).sum()
    assert np.array_equal(pattern.z, occurring.z)
    assert np.array_equal(pattern.design.aggregate(pattern.y), pattern.z)
    assert clean(pattern)
