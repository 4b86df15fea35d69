"""Utility of synthetic records: slow references, known cases, and laws."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

import discreet as dc
from discreet.assessment.cells import hellinger
from discreet.assessment.microdata.utility import (
    IntervalOverlap,
    MarginUtility,
    PropensityError,
    PropensityRatio,
    fitted_probabilities,
    intervals,
)
from discreet.errors import ParameterError
from tests.assess.microdata.population import draw


def values(score):
    return {row["figure"]: row["value"] for row in score.breakdown.to_pylist()}


def test_the_logistic_regression_has_the_largest_likelihood():
    rng = np.random.default_rng(1)
    X = np.column_stack([np.ones(80), rng.normal(size=(80, 3))])
    t = rng.random(80) < 1 / (1 + np.exp(-X @ [0.3, 1, -1, 0.5]))

    def lost(b):
        return np.logaddexp(0, X @ b).sum() - t @ (X @ b)

    slow = optimize.minimize(lost, np.zeros(4), tol=1e-12).x
    np.testing.assert_allclose(
        fitted_probabilities(X, t), 1 / (1 + np.exp(-X @ slow)), rtol=0, atol=1e-5
    )


@pytest.mark.parametrize(("n", "m"), [(300, 300), (400, 200)])
def test_correct_synthesis_has_the_expected_propensity_error(n, m):
    """Records drawn from the original itself are correct synthesis; the mean ratio is one."""
    ratios = []
    for seed in range(60):
        original = draw(n, seed)
        made = original.sample(m, replace=True, random_state=seed)
        ratios.append(PropensityRatio(order=1)(original, made).value)
    error = np.std(ratios, ddof=1) / math.sqrt(len(ratios))
    assert abs(np.mean(ratios) - 1) < 4 * error + 0.05
    assert error < 0.15


def test_records_that_can_be_told_apart_have_the_largest_error():
    original = draw(200, 1)
    made = original.assign(income=original["income"] + 1e6)
    assert PropensityError(order=1)(original, made).value == pytest.approx(0.25, abs=1e-3)
    assert PropensityRatio(order=1)(original, made).value > 20


def test_a_lost_correlation_is_seen_by_products_alone():
    original = draw(2_000, 1)
    made = original.assign(income=np.random.default_rng(2).permutation(original["income"]))
    assert PropensityRatio(order=1)(original, made).value < 1e-6
    assert PropensityRatio(order=2)(original, made).value > 3


def test_the_original_itself_cannot_be_told_from_the_original():
    score = PropensityError()(draw(300, 1), draw(300, 1).sample(frac=1, random_state=3))
    assert score.value < 1e-12
    assert set(values(score)) == {"pMSE", "expected", "ratio", "parameters"}


def test_too_many_products_say_what_to_do():
    wide = pd.DataFrame(np.random.default_rng(1).normal(size=(50, 12))).rename(columns=str)
    result = dc.assess(wide, wide, ["pmse"])
    assert "order=1" in result.skipped[0].reason
    with pytest.raises(ParameterError, match="order"):
        PropensityError(order=3)(wide, wide)


def test_margins_are_those_of_cross_tabulation():
    original, made = draw(400, 1), draw(300, 2)
    score = MarginUtility(columns=("region", "ill"))(original, made)
    f, g = (
        pd.crosstab(frame["region"], frame["ill"]).sort_index().to_numpy(float).ravel()
        for frame in (original, made)
    )
    assert score.value == pytest.approx(1 - hellinger(f, g * 400 / 300) / 20)
    assert score.breakdown.to_pylist()[0]["table"] == "region × ill"


def test_numbers_are_cut_at_quantiles_of_the_original():
    original, made = draw(500, 1), draw(500, 2)
    cuts = np.quantile(original["age"], [0.2, 0.4, 0.6, 0.8])
    f, g = (
        np.bincount(np.searchsorted(cuts, x["age"]), minlength=5).astype(float)
        for x in (original, made)
    )
    found = MarginUtility(columns=("age",), way=1)(original, made)
    assert found.value == pytest.approx(1 - hellinger(f, g) / math.sqrt(500))


def test_margins_of_all_orders_and_of_the_same_records():
    original = draw(200, 1)
    score = MarginUtility(way=2)(original, original)
    assert score.value == 1
    assert len(score.breakdown) == math.comb(4, 2)
    assert len(MarginUtility(way=9)(original, original).breakdown) == 1


def test_intervals_are_those_of_least_squares():
    rng = np.random.default_rng(1)
    X = np.column_stack([np.ones(30), rng.normal(size=(30, 2)), np.zeros(30)])
    y = X[:, 1] + rng.normal(size=30)
    low, high = intervals(X, y, 0.95)
    kept = X[:, :3]
    b = np.linalg.solve(kept.T @ kept, kept.T @ y)
    s2 = ((y - kept @ b) ** 2).sum() / 27
    reach = 2.0518305164802833 * np.sqrt(s2 * np.diag(np.linalg.inv(kept.T @ kept)))
    np.testing.assert_allclose(low[:3], b - reach)
    np.testing.assert_allclose(high[:3], b + reach)
    assert np.isnan(low[3])


def test_what_ipso_preserves_overlaps_entirely_and_shuffled_records_do_not():
    original = draw(500, 1)
    made = dc.synthesize(original, "income ~ age + region + ill", simulate=True, seed=1)
    kept = IntervalOverlap(targets=("income",))
    assert kept(original, made).value == pytest.approx(1)
    shuffled = original.assign(income=np.random.default_rng(1).permutation(original["income"]))
    rows = kept(original, shuffled).breakdown.to_pylist()
    assert next(r for r in rows if r["coefficient"] == "age")["overlap"] == 0


def test_a_code_that_is_lost_overlaps_nowhere():
    original = draw(300, 1)
    made = original.assign(region=original["region"].replace("south", "north"))
    rows = IntervalOverlap(targets=("income",))(original, made).breakdown.to_pylist()
    lost = [r["overlap"] for r in rows if r["synthetic_low"] != r["synthetic_low"]]
    assert lost == [0]
