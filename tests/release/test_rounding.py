"""Whole-number releases of fits: what each way promises, and how it is written down."""

import numpy as np
import pytest

import discreet as dc
from discreet import Release
from discreet.errors import DataError, DesignError, ParameterError
from discreet.protect import mean_p
from discreet.tables import Statement, Step
from tests.protect.tables import keyed_party

METHODS = ["margins", "near", "unbiased", "total", "cube", "multinomial"]
PTABLE = dc.perturbation_table(D=5, V=3, js=2)


def release(shape=(5, 6), margins="a*b", seed=2, **parts):
    design = dc.Design.product(dict(zip("abc", shape, strict=False)), margins)
    y = np.random.default_rng(seed).gamma(0.8, 4.0, design.n_inner)
    statement = Statement((Step("protect:toy"),), version="1")
    return Release(design, design.aggregate(y), statement, y=y, **parts)


@pytest.mark.parametrize("method", METHODS)
def test_whole_inner_cells_next_to_the_fitted_ones_and_their_sums(method):
    fitted = release((4, 5, 6), "a*b + b*c")
    whole = fitted.round(method, seed=1)
    assert whole.y.dtype == whole.z.dtype == np.int64
    assert (whole.y > fitted.y - 1).all()
    assert (np.abs(whole.y - fitted.y).max() < 1) or method == "multinomial"
    np.testing.assert_array_equal(whole.design.aggregate(whole.y), whole.z)


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_decides(method):
    fitted = release((8, 9))
    one, again, other = (fitted.round(method, seed=s).y for s in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("method", METHODS)
def test_the_step_and_its_meaning_are_recorded(method):
    whole = release().round(method, seed=1)
    assert [step.name for step in whole.statement.steps] == ["protect:toy", f"round:{method}"]
    for kind in ("rounded", "adds-up", "whole-numbers", "not-negative"):
        assert whole.statement.says(kind)
    assert whole.fit_result is None
    assert whole.status is None


def test_a_multinomial_draw_spreads_the_decimals_that_were_cut_off():
    """Langsrud (2019b), section 5: the remainder has the moments of a multinomial draw."""
    fitted = release((3, 4))
    whole = np.floor(fitted.y)
    fraction = fitted.y - whole
    drawn = np.array([fitted.round("multinomial", seed=s).y for s in range(3000)]) - whole
    total = fraction.sum()
    assert set(drawn.sum(axis=1)) <= {np.floor(total), np.ceil(total)}
    assert drawn.min() == 0
    assert drawn.max() > 1  # several may fall into one cell
    p = fraction / total
    rest = total - np.floor(total)
    variance = total * p * (1 - p) + rest * (1 - rest) * p**2
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.15, atol=0.003)
    # the planted fault: a draw that goes up by one at most has another variance
    capped = np.minimum(drawn, 1)
    assert not np.allclose(capped.mean(axis=0), fraction, atol=0.02)


@pytest.mark.parametrize("method", ["unbiased", "total", "cube", "multinomial"])
def test_unbiased_ways_have_the_fitted_values_as_means(method):
    fitted = release((3, 4))
    drawn = np.array([fitted.round(method, seed=s).z for s in range(1200)])
    far = np.abs(fitted.z - np.rint(fitted.z)) > 0.02
    p = [mean_p(drawn[:, k], fitted.z[k]) for k in np.flatnonzero(far)]
    assert min(p) * len(p) > 1e-4


def test_the_total_is_kept_by_all_but_the_independent_way():
    fitted = release((20, 20))
    total = fitted.design.position({})
    for method in ("margins", "total", "cube"):
        whole = fitted.round(method, seed=3)
        assert abs(whole.z[total] - fitted.z[total]) < 1
    spread = [fitted.round("unbiased", seed=s).z[total] - fitted.z[total] for s in range(30)]
    assert np.abs(spread).max() > 2


@pytest.mark.parametrize("seed", range(10))
def test_two_way_margins_are_always_within_one(seed):
    fitted = release((6, 13), seed=seed)
    assert np.abs(fitted.round(seed=seed).z - fitted.z).max() < 1


def test_a_protected_table_fitted_and_rounded():
    protected = keyed_party("party*age + party*sex").protect(dc.CellKey(PTABLE))
    whole = protected.fit(dc.NonNegative(), decimals=True).round(seed=1)
    assert (whole.y >= 0).all()
    names = [step.name for step in whole.statement.steps]
    assert names == ["data", "protect:cell-key", "fit:non-negative", "round:margins"]
    records = whole.to_microdata()
    assert records.num_rows == whole.y.sum()


def test_weighted_releases_stay_weighted():
    assert release(unit="weight").round(seed=1).unit == "weight"


def test_wrong_use_is_explained():
    fitted = release()
    with pytest.raises(ParameterError, match="'margins', 'near', 'unbiased', 'total', 'cube'"):
        fitted.round("nearest", seed=1)
    with pytest.raises(TypeError):
        fitted.round()
    hidden = Release(fitted.design, fitted.z, fitted.statement)
    with pytest.raises(DesignError, match="fit them before rounding"):
        hidden.round(seed=1)
    negative = Release(fitted.design, -fitted.z, fitted.statement, y=-fitted.y)
    with pytest.raises(DataError, match="NonNegative"):
        negative.round(seed=1)
