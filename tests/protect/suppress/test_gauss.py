"""Secondary suppression: published examples, and laws on random tables."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet import Design, Table
from discreet.design.sparse import SparseDesign
from discreet.errors import InfeasibleError
from discreet.suppress.gauss import suppress_by_gauss
from discreet.suppress.plan import PublicationPlan
from discreet.testing.laws import retabulate
from tests.protect.suppress import reference
from tests.protect.suppress.reference import RULES, disclosed, square, states, tables, told

SMALL = [[3, 6, 2], [1, 4, 7], [5, 8, 27]]
"""Table 1 of Langsrud (2019b)."""
REGRESSION = [[3, 11, 32, 30], [1, 9, 13, 8], [12, 22, 2, 2], [18, 19, 16, 3]]
"""Table 1 of Langsrud (2019a)."""


@pytest.fixture(autouse=True, scope="module")
def elimination_alone():
    """What elimination does by itself, also in tables that have inner cells."""
    with reference.elimination_alone():
        yield


def gauss(rules, **options):
    return dc.Suppress(rules, secondary="gauss", **options)


def test_the_example_of_nine_cells_is_suppressed_as_printed():
    pattern = gauss(dc.rules.Threshold(3), singletons=False).pattern(square(SMALL))
    assert sorted(pattern.z[pattern.primary]) == [1, 2, 3]
    assert pattern.cells(pattern.secondary) == [{"r": "2", "c": "3"}]


def test_the_example_of_sixteen_cells_needs_no_more_than_three_cells():
    pattern = gauss(dc.rules.Threshold(3), singletons=False).pattern(square(REGRESSION))
    assert pattern.n_primary == 5
    assert pattern.n_secondary <= 3
    assert pattern.z[pattern.secondary].sum() <= 36
    assert disclosed(pattern) == []


def test_someone_alone_in_a_cell_learns_nothing_in_the_examples():
    for counts in (SMALL, REGRESSION):
        careless = gauss(dc.rules.Threshold(3), singletons=False).pattern(square(counts))
        assert told(careless)
        careful = gauss(dc.rules.Threshold(3)).pattern(square(counts))
        assert not told(careful)
        assert not disclosed(careful)


SLOW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@SLOW
@given(tables(), RULES, st.booleans())
def test_no_primary_follows_from_published_cells_nor_for_a_lone_contributor(table, rule, singles):
    method = gauss(rule, singletons=singles)
    pattern = method.pattern(table)
    assert disclosed(pattern, method.zeros_are_public) == []
    if singles:
        assert told(pattern) == []


@SLOW
@given(tables(), RULES)
def test_publishing_any_secondary_opens_a_primary(table, rule):
    method = gauss(rule, singletons=False)
    pattern = method.pattern(table)
    assume(pattern.n_secondary)
    for k in np.flatnonzero(pattern.secondary):
        assert disclosed(pattern.publishing(int(k)), method.zeros_are_public)


@SLOW
@given(tables(), RULES)
def test_the_order_of_axes_changes_nothing_but_labels(table, rule):
    method = gauss(rule)
    here = method.pattern(table)
    there = method.pattern(retabulate(table, table.design.terms))

    assert states(here) == states(there)


def test_rows_that_stand_for_many_give_patterns_that_are_safe_on_all():
    rng = np.random.default_rng(3)
    design = Design.product({"a": 6, "b": 5, "c": 4, "d": 5}, "a*b + c*d + a*d")
    y = rng.poisson(0.25, size=design.n_inner)
    table = Table.from_inner(design, y)
    method = gauss(dc.rules.Threshold(3, zeros=True))
    assert design.n_inner > 4 * design.n_published
    pattern = method.pattern(table)
    assert pattern.n_primary > 0 < pattern.n_secondary
    assert disclosed(pattern) == []
    for k in np.flatnonzero(pattern.secondary):
        assert disclosed(pattern.publishing(int(k)))


def test_tables_with_many_more_rows_and_public_zeros_are_safe_too():
    rng = np.random.default_rng(4)
    design = Design.product({"a": 6, "b": 5, "c": 4, "d": 5}, "a*b + c*d + a*d")
    table = Table.from_inner(design, rng.poisson(0.12, size=design.n_inner))
    pattern = gauss(dc.rules.Threshold(2)).pattern(table)
    assert pattern.n_primary > 0
    assert disclosed(pattern, zeros_are_public=True) == []


def test_a_contributor_alone_in_several_cells_cannot_combine_them():
    design = Design.product({"a": 3, "b": 4}, "a*b")
    table = Table.from_inner(design, np.array([5, 7, 9, 30, 6, 8, 10, 40, 11, 12, 13, 50]))
    primary = np.zeros(design.n_published, dtype=np.int8)
    mine = [{"a": "1", "b": "1"}, {"a": "1", "b": "2"}]
    for cell in [*mine, {"a": "1", "b": "3"}]:
        primary[design.position(cell)] = 1
    lone = np.zeros(12, dtype=bool)
    lone[:2] = True
    pattern = dc.suppress.Pattern(
        design, table.z, primary, y=table.y, lone=lone, owner=np.where(lone, 7, -1)
    )
    order = np.array([k for k in np.argsort(-table.z) if not primary[k]])
    plan = PublicationPlan(np.empty(0, int), order, zeros_are_public=False)
    found = suppress_by_gauss(pattern, plan)
    X = design.matrix().toarray()
    knows = np.column_stack([X[:, ~found.suppressed], np.eye(12)[:, :2]])
    third = X[:, design.position({"a": "1", "b": "3"})]
    before = np.linalg.matrix_rank(knows)
    assert np.linalg.matrix_rank(np.column_stack([knows, third])) == before + 1


def test_cells_that_must_be_shown_and_give_a_primary_away_are_named():
    table = square(SMALL)
    shown = [{"r": "1", "c": "2"}, {"r": "1", "c": "3"}, {"r": "1"}]
    with pytest.raises(InfeasibleError, match="sensitive cell c=1, r=1 cannot be protected"):
        gauss(dc.rules.Threshold(3), forced=shown).pattern(table)


def test_a_table_read_from_records_is_as_safe_where_rows_stand_for_many():
    rng = np.random.default_rng(5)
    design = Design.product({"a": 6, "b": 5, "c": 6, "d": 5}, "a*b + c*d + a*d + b*c")
    full = Table.from_inner(design, rng.poisson(0.08, size=design.n_inner))
    some = np.flatnonzero(full.y)
    codes = [leaf[some] for leaf in design.inner_codes()]
    kept = SparseDesign(design.axes, design.terms, codes, occurring=True)
    occurring = Table.from_inner(kept, full.y[some])
    large = replace(occurring, inner=None)
    for table in (occurring, large, full):
        method = gauss(dc.rules.Threshold(2))
        release = table.protect(method)
        at_full = dc.suppress.Pattern(
            design, full.z, release.hidden * (1 + (full.z > 2)).astype(np.int8)
        )
        assert at_full.n_primary > 0
        assert disclosed(at_full, zeros_are_public=True) == []
