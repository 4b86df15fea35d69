"""Roundings that are made in no time: next to the fit everywhere, with sums that stay near."""

import numpy as np
import pytest

import discreet as dc
from discreet.solve import whole_and_fraction
from discreet.solve.integer.kernels import diffuse
from discreet.solve.integer.rounding import choose_independently, round_near


def loss(design, y, u):
    return float(((design.aggregate(u) - design.aggregate(y)) ** 2).sum())


def stays_near(design, y, u):
    off = np.abs(design.aggregate(u) - design.aggregate(y))
    return (off >= 1).mean() < 0.05 and off.max() < 3


@pytest.mark.parametrize("margins", ["a*b + b*c + a*c", "a*b*c"])
def test_sums_of_three_way_tables_stay_near(margins):
    design = dc.Design.product({"a": 20, "b": 12, "c": 10}, margins)
    y = np.random.default_rng(1).gamma(0.7, 3.0, design.n_inner)
    u = round_near(design, y, rng=np.random.default_rng(2))
    assert np.abs(u - y).max() < 1
    assert stays_near(design, y, u)
    # By chance alone sums wander off as roots of their sizes do: the test can fail.
    whole, fraction = whole_and_fraction(y)
    chance = whole + choose_independently(fraction, np.random.default_rng(3))
    assert not stays_near(design, y, chance)


def test_no_single_cell_that_changes_its_mind_helps():
    design = dc.Design.product({"a": 7, "b": 6, "c": 6}, "a*b + b*c")
    y = np.random.default_rng(5).random(design.n_inner)
    up, error = np.zeros(len(y), dtype=np.int64), np.zeros(design.n_published + 1)
    diffuse(design.members(np.arange(len(y))), y, up, error, 1000)
    np.testing.assert_allclose(error[:-1], design.aggregate(up - y), atol=1e-9)
    least = loss(design, y, up)
    for j in range(len(y)):
        other = up.copy()
        other[j] = 1 - other[j]
        assert loss(design, y, other) >= least - 1e-9


def test_whole_cells_and_zeros_stay():
    design = dc.Design.product({"a": 30, "b": 30, "c": 3}, "a*b + b*c")
    y = np.random.default_rng(7).gamma(0.5, 2.0, design.n_inner)
    y[::2] = np.rint(y[::2])
    u = round_near(design, y, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(u[::2], y[::2])


def test_a_default_fit_of_half_a_million_cells_is_whole():
    """Programs over so many cells took longer than the tests have."""
    design = dc.Design.product({"a": 400, "b": 50, "c": 25}, "a*b + b*c + a*c")
    counts = np.random.default_rng(1).poisson(1.0, design.n_inner)
    fitted = dc.Table.from_inner(design, counts).protect(dc.DiscreteLaplace(epsilon=1)).fit()
    assert fitted.y.dtype == np.int64
    exact = fitted.fit_result.z
    assert (np.abs(fitted.z - exact) >= 1).mean() < 0.05
