"""Inner cells hidden in the margins: against every table there is, and against fits."""

import itertools

import numpy as np
import pytest

import discreet as dc
from discreet.assessment import perfect_fits

PAIRS = "a*b + a*c + b*c"


def table_of(y, sizes, margins):
    return dc.Table.from_inner(dc.Design.product(sizes, margins), np.asarray(y))


def determined(table):
    """Inner cells with one value in all tables of whole numbers that have these margins."""
    design, z = table.design, table.z
    most = [int(z[np.flatnonzero(column)].min()) for column in design.matrix().toarray()]
    found = [
        y
        for y in itertools.product(*(range(m + 1) for m in most))
        if (design.aggregate(np.array(y)) == z).all()
    ]
    return np.ptp(np.array(found), axis=0) == 0


@pytest.mark.parametrize("seed", range(12))
def test_cells_that_are_named_have_one_value_in_every_table(seed):
    """Two by two by two under all pairs: whole and real tables are determined alike here."""
    rng = np.random.default_rng(seed)
    table = table_of(rng.poisson(0.8, 8), {"a": 2, "b": 2, "c": 2}, PAIRS)
    found = perfect_fits(table)
    assert found.is_complete
    np.testing.assert_array_equal(found.values, table.y[found.cells])
    expected = determined(table)
    assert expected[found.cells].all()
    # with one free direction, an interval of real tables has whole ends: nothing is missed
    np.testing.assert_array_equal(np.flatnonzero(expected), found.cells)


def test_every_fit_gets_them_right_and_others_wrong():
    y = np.array([0, 1, 0, 2, 3, 0, 5, 6, 2, 0, 0, 1])
    table = table_of(y, {"a": 3, "b": 2, "c": 2}, "a*b + a*c")
    found = perfect_fits(table)
    fits = [f(table.design, table.z.astype(float)).y for f in (dc.NonNegative(), dc.LogLinear())]
    assert 0 < len(found) < table.design.n_inner
    for fitted in fits:
        np.testing.assert_allclose(fitted[found.cells], table.y[found.cells], atol=1e-5)
    others = np.setdiff1d(np.arange(12), found.cells)
    assert np.abs(fits[0][others] - fits[1][others]).max() > 0.05
    small = found.below(3)
    assert set(small.values) <= {1.0, 2.0}
    assert "are determined: a=" in repr(found)
    assert all(set(cell) == {"a", "b", "c"} for cell, _ in found.named)


def test_a_margin_that_is_not_published_hides_them():
    """The planted fault: without the margin nothing is named."""
    y = np.array([0, 3, 2, 5])
    table = table_of(y, {"a": 2, "b": 2}, [("a",), ("b",)])
    assert len(perfect_fits(table)) == 0
    zero = table_of([0, 0, 2, 5], {"a": 2, "b": 2}, [("a",), ("b",)])
    assert perfect_fits(zero).cells.tolist() == [0, 1, 2, 3]


def test_a_suppressed_release_is_looked_at_beyond_its_own_cells():
    rng = np.random.default_rng(2)
    table = table_of(rng.poisson(1.2, 12), {"a": 3, "b": 2, "c": 2}, "a*b + a*c")
    release = table.with_secret(dc.Secret.demo()).protect(dc.Suppress(dc.rules.Threshold(2)))
    outside, inside = perfect_fits(release), perfect_fits(release, table)
    np.testing.assert_array_equal(outside.cells, inside.cells)
    np.testing.assert_array_equal(outside.values, table.y[outside.cells])
    found = dc.audit(release, table)
    assert set(found.perfect.cells) <= set(inside.cells)
    assert dc.audit(release, table, intervals="all").perfect.is_complete
    if len(found.perfect):
        assert "inner cells that no table shows" in found.text


def test_large_tables_are_told_by_equations_alone():
    """Where programs would take too long, cells of equations and zeros are found still."""
    rng = np.random.default_rng(4)
    sizes = {"a": 4, "b": 3, "c": 2}
    table = table_of(rng.poisson(0.7, 24), sizes, PAIRS)
    quick, complete = perfect_fits(table, programs=False), perfect_fits(table)
    assert set(quick.cells) <= set(complete.cells)
    np.testing.assert_array_equal(quick.values, table.y[quick.cells])
    assert not quick.is_complete or len(quick) == len(complete)
