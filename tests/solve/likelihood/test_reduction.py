"""What margins settle by themselves, and the proofs that come with it."""

import numpy as np
import pytest

import discreet as dc
from discreet.design import Incidence
from discreet.solve import Status
from discreet.solve.likelihood.stored import reduce_table
from tests.solve.slow import HARD, counts, dense

SQUARE = {"row": 3, "col": 3}


def reduced(design, z):
    everything = np.ones(design.n_published, dtype=bool)
    members = Incidence.of(design)
    groups = members.using(everything, np.zeros(len(members.nested), dtype=bool))
    return groups, reduce_table(groups, np.asarray(z, float), np.arange(design.n_inner), 1e-6)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", HARD)
def test_settled_cells_have_the_only_value_they_can_have(name, seed):
    design = HARD[name]()
    y = counts(design, seed, mean=0.5)
    _, reduction = reduced(design, design.aggregate(y))
    assert reduction.is_possible
    for stage in reduction.stages:
        np.testing.assert_allclose(stage.values, y[stage.inner], atol=1e-9)
    settled = sum(len(stage.inner) for stage in reduction.stages)
    assert settled + len(reduction.left) == design.n_inner
    rest = dense(design)[reduction.left].T @ y[reduction.left]
    np.testing.assert_allclose(reduction.rest, rest, atol=1e-9)
    np.testing.assert_array_equal(reduction.held, dense(design)[reduction.left].any(axis=0))


def test_a_lone_cell_is_settled_and_settles_others():
    design = dc.Design.product(SQUARE, [("row",), ("col",)])
    start = np.array([0, 4, 5, 6, 7, 8])  # row 1 has no second and third cell
    members = Incidence.of(design)
    z = design.aggregate(np.array([2, 0, 0, 1, 3, 4, 5, 6, 7])).astype(float)
    reduction = reduce_table(members, z, start, 1e-6)
    assert {int(i) for stage in reduction.stages for i in stage.inner} >= {0}


@pytest.mark.parametrize("z", [[3, 0, 0, 1, 1, 2], [0, 0, 0, 0, 0, 1], [1, 0, 0, 2, 0, 0]])
def test_contradictions_are_seen(z):
    design = dc.Design.product(SQUARE, [("row",), ("col",)])
    _, reduction = reduced(design, z)
    assert not reduction.is_possible
    fit = dc.LogLinear()(design, z)
    assert fit.status is Status.inconsistent
    u = fit.notes["conflict"]
    assert (dense(design) @ u).max() <= 1e-12
    assert np.asarray(z) @ u > 0


@pytest.mark.parametrize("name", ["two totals", "tree by flat", "structural zeros"])
def test_multipliers_reproduce_settled_cells(name):
    design = HARD[name]()
    y = counts(design, 3, mean=0.4)
    groups, reduction = reduced(design, design.aggregate(y))
    ones = np.ones(design.n_inner)
    nu = reduction.multipliers(groups, ones, np.zeros(np.count_nonzero(reduction.held)))
    model = np.exp(dense(design) @ nu)
    for stage in reduction.stages:
        np.testing.assert_allclose(model[stage.inner], stage.values, atol=1e-9)
