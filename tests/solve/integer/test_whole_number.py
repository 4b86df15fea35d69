"""Fits in whole numbers: against all tables where these can be listed, and against rounding."""

import itertools

import numpy as np
import pytest

import discreet as dc
from discreet import registry
from discreet.errors import DataError, ParameterError
from discreet.solve import Status

SMALL = [({"a": 2, "b": 3}, "a*b"), ({"a": 2, "b": 2, "c": 2}, "a*b + b*c + a*c")]


def noisy(shape, margins, seed=1, mean=1.2, noise=1.0):
    rng = np.random.default_rng(seed)
    design = dc.Design.product(shape, margins)
    z = design.aggregate(rng.poisson(mean, design.n_inner)) + rng.normal(
        0, noise, design.n_published
    )
    return design, z, rng.uniform(0.3, 3.0, design.n_published)


def least(design, z, weights, power, most=None, largest=6):
    """The least loss of all tables with cells up to a largest value."""
    tables = np.array(list(itertools.product(range(largest), repeat=design.n_inner)))
    if most is not None:
        tables = tables[(tables > 0).sum(axis=1) <= most]
    off = np.abs(tables @ design.matrix().toarray() - z) ** power
    return float((off @ weights ** (power / 2)).min())


@pytest.mark.parametrize(("fitter", "power"), [("non-negative", 2), ("least-absolute", 1)])
@pytest.mark.parametrize("seed", range(4))
def test_small_tables_reach_the_least_loss_of_all_whole_tables(seed, fitter, power):
    design, z, weights = noisy(*SMALL[seed % 2], seed)
    fit = dc.solve.WholeNumber(fitter, proposals=1e5)(design, z, weights=weights).require()
    expected = least(design, z, weights, power, largest=8 if design.n_inner == 6 else 5)
    assert fit.y.dtype == np.int64
    assert fit.notes["bound"] <= fit.notes["loss"] == pytest.approx(expected)
    off = np.abs(design.aggregate(fit.y) - z) ** power
    assert fit.notes["loss"] == pytest.approx(float(off @ weights ** (power / 2)))


@pytest.mark.parametrize("most", [0, 1, 3])
def test_a_cap_on_filled_cells_is_kept_at_nearly_the_least_loss(most):
    reached, best = 0.0, 0.0
    for seed in range(6):
        design, z, weights = noisy(*SMALL[seed % 2], seed)
        fit = dc.solve.WholeNumber(max_nonzero=most, proposals=1e5)(
            design, z, weights=weights
        ).require()
        assert np.count_nonzero(fit.y) <= most
        reached += fit.notes["loss"]
        best += least(design, z, weights, 2, most)
    assert reached <= 1.02 * best + 1e-6


@pytest.mark.parametrize("margins", ["a*b*c", "a*b + b*c + a*c"])
def test_the_loss_is_smaller_than_that_of_rounding_afterwards_and_above_the_bound(margins):
    design, z, weights = noisy({"a": 9, "b": 5, "c": 4}, margins, mean=3.0)
    whole = dc.solve.WholeNumber(proposals=1e6)(design, z, weights=weights)
    fitted = dc.NonNegative()(design, z, weights=weights)
    gap, rounded = (whole.notes[n] - whole.notes["bound"] for n in ("loss", "rounded"))
    assert 0 < gap < 0.8 * rounded
    assert whole.notes["bound"] == pytest.approx(float(weights @ (fitted.z - z) ** 2))
    assert whole.certificate.gap == pytest.approx(gap / whole.notes["loss"])
    others = [
        dc.solve.WholeNumber(proposals=1e6, seed=s)(design, z, weights=weights) for s in (1, 2)
    ]
    apart = [np.sqrt(np.mean((fit.y - fitted.y) ** 2)) for fit in (whole, *others)]
    assert np.mean(apart) < 1  # not just any table of that loss


def test_of_tables_that_fit_equally_well_one_near_the_fit_is_taken():
    design = dc.Design.product({"a": 3, "b": 3}, "a + b")
    fit = dc.solve.WholeNumber()(design, design.aggregate(np.full(9, 3.0))).require()
    assert fit.notes["loss"] == 0
    assert set(fit.y) == {3}


@pytest.mark.parametrize("ridge", [None, 2.0])
def test_exact_margins_and_the_ridge_of_the_fitter_are_its_own(ridge):
    design, z, _ = noisy({"a": 2, "b": 3}, "a*b")
    total = design.n_published - 1 - int(np.argmax(design.column_sizes[::-1]))
    z[total] = 11
    fitter = dc.NonNegative(exact=["1"], ridge=ridge)
    fit = dc.solve.WholeNumber(fitter, proposals=1e5)(design, z).require()
    tables = np.array(list(itertools.product(range(8), repeat=6)))
    tables = tables[tables.sum(axis=1) == 11]
    loss = ((tables @ design.matrix().toarray() - z) ** 2).sum(axis=1)
    if ridge is not None:
        loss += ridge**2 * (tables**2).sum(axis=1)
    assert fit.y.sum() == 11
    assert fit.notes["loss"] == pytest.approx(loss.min())
    assert fit.notes["bound"] <= fit.notes["loss"]


def test_counts_beyond_32_bits_are_searched_around_the_fit():
    design, z, weights = noisy({"a": 2, "b": 3}, "a*b", seed=5)
    large = np.append(3_000_000_000, np.zeros(5, dtype=np.int64))
    fit = dc.solve.WholeNumber(proposals=1e5)(design, z + design.aggregate(large), weights=weights)
    assert fit.require().y.dtype == np.int64
    np.testing.assert_array_equal(fit.z, design.aggregate(fit.y))
    off = (fit.z - design.aggregate(large) - z) ** 2
    assert fit.notes["loss"] == pytest.approx(float(weights @ off), rel=1e-6)
    assert fit.notes["loss"] <= least(design, z, weights, 2) + 1e-6
    with pytest.raises(DataError, match="hold up to 2,147,483,647"):
        dc.solve.WholeNumber(max_nonzero=4)(design, z + design.aggregate(large))


def test_an_exact_margin_that_is_not_whole_is_refused_and_one_beyond_reach_is_not_met():
    design = dc.Design.product({"a": 2, "b": 2}, "a*b")
    fitter = dc.solve.WholeNumber(dc.NonNegative(exact=["a"]))
    z = design.aggregate(np.array([1, 2, 3, 4])).astype(float)
    with pytest.raises(DataError, match="whole numbers cannot meet"):
        fitter(design, z + 0.5)
    capped = dc.solve.WholeNumber(dc.NonNegative(exact=["a"]), max_nonzero=1)(design, z)
    assert capped.status is Status.stalled
    assert capped.certificate.feasibility >= 1


def test_cells_that_may_not_move_stay_and_the_same_seed_gives_the_same_table():
    design, z, _ = noisy({"a": 3, "b": 4}, "a*b", mean=3.0)
    variance = np.ones(12)
    variance[:5] = 0
    fitter = dc.solve.WholeNumber(dc.NonNegative(variance=variance), seed=4)
    fit = fitter(design, z)
    assert not fit.y[:5].any()
    np.testing.assert_array_equal(fit.y, fitter(design, z).y)


def test_heavy_margins_are_met_beside_light_ones():
    design, z, _ = noisy({"a": 6, "b": 4, "c": 3}, "a*b*c", mean=3.0)
    heavy = design.column_sizes >= 12
    z[heavy] = np.rint(z[heavy])
    z[design.column_sizes == 72] = z[
        design.slice_of([b.order for b in design.blocks].index(1))
    ].sum()
    fit = dc.solve.WholeNumber(proposals=1e6)(
        design, z, weights=np.where(design.column_sizes == 72, 1e6, 1)
    )
    assert fit.z[design.column_sizes == 72] == z[design.column_sizes == 72]


def test_a_fit_that_does_not_converge_is_whole_as_well():
    design, z, _ = noisy({"a": 5, "b": 4, "c": 3}, "a*b + b*c", noise=30.0)
    fit = dc.solve.WholeNumber(dc.LeastAbsolute(max_steps=1))(design, z)
    assert fit.status is Status.max_steps
    assert fit.y.dtype == np.int64
    assert (fit.y >= 0).all()
    assert fit.notes["bound"] == 0.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fitter": "log-linear"}, "a loss of published cells"),
        ({"max_nonzero": -1}, "max_nonzero"),
        ({"max_nonzero": 1.5}, "max_nonzero"),
        ({"seed": -1}, "seed"),
        ({"proposals": 0}, "proposals"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        dc.solve.WholeNumber(**options)


def test_it_is_built_from_plain_values():
    built = registry.build(
        "fitter",
        "whole-number",
        {"fitter": {"name": "chain", "fitters": ["least-absolute", "log-linear"]}, "seed": 3},
    )
    assert isinstance(built.first, dc.LeastAbsolute)
    assert (built.seed, built.max_nonzero) == (3, None)
