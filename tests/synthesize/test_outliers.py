"""Outlying rows are found where they were put, and are synthesized by themselves."""

import numpy as np
import pytest

from discreet.errors import ParameterError
from discreet.synthesis.hybrid import hybrid
from discreet.synthesis.microaggregation import outlying, split_off
from tests.synthesize.cases import assert_preserved


def contaminated(rng, n=2000, share=0.1):
    mixing = rng.normal(size=(4, 4)) + 2 * np.eye(4)
    values = rng.normal(size=(n, 4)) @ mixing
    away = np.arange(n) < share * n
    values[away] += 30 * np.array([1.0, -1.0, 1.0, 1.0])
    return values, away


def test_a_tenth_of_the_rows_far_away_is_found_and_hides_nothing():
    values, away = contaminated(np.random.default_rng(1))
    found = outlying(values)
    assert found[away].all()
    assert found[~away].mean() < 0.01


def test_normal_rows_are_outlying_as_often_as_was_asked_for():
    values = np.random.default_rng(2).normal(size=(40_000, 3)) * [1.0, 100.0, 1e-3]
    for quantile in (0.9, 0.99):
        assert outlying(values, quantile=quantile).mean() == pytest.approx(1 - quantile, rel=0.1)


def test_scales_and_columns_that_do_not_vary_change_nothing():
    values, _ = contaminated(np.random.default_rng(3))
    more = np.column_stack([values * [1e6, 1.0, 1e-6, 8.0], np.full(len(values), 7.0)])
    np.testing.assert_array_equal(outlying(values), outlying(more))


def test_mostly_equal_values_are_no_reason_to_fail():
    values = np.zeros((100, 2))
    values[:3] = 50.0
    np.testing.assert_array_equal(outlying(values), np.arange(100) < 3)
    assert not outlying(np.ones((10, 2))).any()


def test_outlying_rows_are_synthesized_by_themselves():
    rng = np.random.default_rng(4)
    values, _ = contaminated(rng, n=400)
    region = rng.integers(0, 3, 400)
    away = outlying(values)
    clusters, groups = split_off(region, away)
    assert len(np.unique(clusters)) == 6
    found = hybrid(values, None, None, clusters, groups=groups, rng=rng).Y
    for part in (away, ~away):
        for r in range(3):
            own = part & (region == r)
            assert_preserved(values[own], np.ones((own.sum(), 1)), found[own])


def test_a_quantile_that_is_none_is_refused():
    with pytest.raises(ParameterError, match="quantile must lie between 0 and 1, got 1"):
        outlying(np.ones((3, 1)), quantile=1)
