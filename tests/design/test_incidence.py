"""Index arrays against the matrix of the design."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.design import Incidence
from tests.solve.slow import HARD, dense
from tests.strategies import designs


def check(design, seed):
    members, rng = Incidence.of(design), np.random.default_rng(seed)
    y, u = rng.normal(size=design.n_inner), rng.normal(size=design.n_published)
    np.testing.assert_allclose(members.aggregate(y), dense(design).T @ y, atol=1e-9)
    np.testing.assert_allclose(members.adjoint(u), dense(design) @ u, atol=1e-9)


@pytest.mark.parametrize("name", HARD)
def test_passes_over_groups_and_nested_blocks_are_the_matrix(name):
    check(HARD[name](), 1)


@given(designs(kinds=("product",)), st.integers(0, 99))
@settings(max_examples=60)
def test_random_designs(design, seed):
    check(design, seed)


@pytest.mark.parametrize("name", HARD)
def test_rows_of_all_blocks_together_are_the_matrix(name):
    design = HARD[name]()
    members = Incidence.of(design)
    X = np.zeros((design.n_inner, design.n_published + 1))
    for number in range(len(members.cells) + len(members.nested)):
        X[np.arange(design.n_inner), members.row(number)] += 1
    np.testing.assert_array_equal(X[:, :-1], dense(design))


@pytest.mark.parametrize("name", HARD)
def test_using_keeps_the_cells_in_use_and_drops_implied_blocks(name):
    design = HARD[name]()
    members = Incidence.of(design)
    used = np.random.default_rng(2).random(design.n_published) < 0.6
    some = members.using(used, np.zeros(len(members.nested), dtype=bool))
    y = np.arange(1.0, design.n_inner + 1)
    np.testing.assert_allclose(some.aggregate(y), np.where(used, dense(design).T @ y, 0))
    everything = np.ones(design.n_published, dtype=bool)
    finest = members.using(everything, np.ones(len(members.nested), dtype=bool))
    assert len(finest.cells) == len(members.cells)


def test_many_overlapping_columns_are_packed_into_many_groups():
    design = dc.Design.from_matrix(np.ones((2, 150), dtype=int))
    members = Incidence.of(design)
    assert len(members.cells) == 150
    check(design, 3)


def test_restriction_keeps_the_cells_chosen():
    design = HARD["tree linked"]()
    chosen = np.array([0, 5, 7])
    some = Incidence.of(design).restrict(chosen)
    np.testing.assert_allclose(some.aggregate(np.ones(3)), dense(design)[chosen].sum(axis=0))


@pytest.mark.parametrize("name", HARD)
def test_chosen_cells_come_with_the_published_cells_that_they_reach(name):
    design, rng = HARD[name](), np.random.default_rng(5)
    chosen = np.flatnonzero(rng.random(design.n_inner) < 0.3)
    some, X = Incidence.of(design, chosen), dense(design)[chosen]
    np.testing.assert_array_equal(np.sort(some.position), np.flatnonzero(X.any(axis=0)))
    y, u = rng.normal(size=len(chosen)), rng.normal(size=len(some.position))
    np.testing.assert_allclose(some.aggregate(y), X[:, some.position].T @ y, atol=1e-9)
    np.testing.assert_allclose(some.adjoint(u), X[:, some.position] @ u, atol=1e-9)


@pytest.mark.parametrize("name", HARD)
def test_published_cells_without_inner_cells_can_be_left_out(name):
    design, rng = HARD[name](), np.random.default_rng(4)
    chosen = np.flatnonzero(rng.random(design.n_inner) < 0.3)
    live = dense(design)[chosen].any(axis=0)
    keep = live | (rng.random(design.n_published) < 0.3)
    some = Incidence.of(design).restrict(chosen).compact(keep, live)
    y, u = rng.normal(size=len(chosen)), rng.normal(size=design.n_published)
    np.testing.assert_allclose(some.aggregate(y), dense(design)[chosen][:, keep].T @ y, atol=1e-9)
    np.testing.assert_allclose(some.adjoint(u[keep]), dense(design)[chosen] @ u, atol=1e-9)
    np.testing.assert_array_equal(np.sort(some.group_cells), np.unique(some.group_cells))


@pytest.mark.parametrize("name", HARD)
def test_cells_are_restricted_to_in_the_order_given(name):
    design = HARD[name]()
    members, rng = Incidence.of(design), np.random.default_rng(1)
    everything = np.arange(design.n_inner)
    assert members.restrict(everything) is members
    for cells in (everything[::-1], rng.permutation(everything)[: design.n_inner // 2]):
        u = rng.normal(size=design.n_published)
        found = members.restrict(cells).adjoint(u)
        np.testing.assert_allclose(found, (dense(design) @ u)[cells], atol=1e-9)


def test_a_full_crossing_needs_no_index_as_long_as_the_table():
    axes = {"a": 40, "b": 50, "c": 20, "d": 30}
    members = Incidence.of(dc.Design.product(axes, dc.margins(list(axes), 2)))
    assert members.n_inner == 1_200_000
    assert members.head.size + members.tail.size < 0.02 * members.n_inner
    chosen = np.array([7, 1_199_999, 30_000])
    np.testing.assert_array_equal(members.restrict(chosen).index, members.index[:, chosen])
