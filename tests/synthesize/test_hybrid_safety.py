"""Clusters and rows that hybrid data would give back, found without looking at the values."""

import numpy as np
import pytest

from discreet.synthesis.hybrid import hybrid
from discreet.synthesis.hybrid_safety import unsafe_clusters


def example(sizes, seed=0):
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(size=(len(clusters), 2)), clusters, rng


def is_mirrored(Y, found):
    """Whether deviations from the mean are as they were but for a sign."""
    a, b = Y - Y.mean(axis=0), found - found.mean(axis=0)
    return np.allclose(abs(a), abs(b)) and np.allclose(Y.mean(axis=0), found.mean(axis=0))


def test_one_or_two_persons_come_out_as_they_went_in_or_mirrored_and_are_named():
    Y, clusters, rng = example([1, 2, 3, 8])
    found = hybrid(Y, None, None, clusters, rng=rng).Y
    mirrored = [is_mirrored(Y[clusters == c], found[clusters == c]) for c in range(4)]
    assert mirrored == [True, True, False, False]
    unsafe = unsafe_clusters(None, None, clusters)
    assert unsafe
    np.testing.assert_array_equal(unsafe.names, [0, 1])
    np.testing.assert_array_equal(unsafe.degrees, [0, 1])
    np.testing.assert_array_equal(unsafe.rows, clusters <= 1)


def test_regressors_within_clusters_use_up_degrees_of_freedom():
    _, clusters, rng = example([4, 5, 6])
    X = np.column_stack([np.ones(15), rng.normal(size=(15, 2))])
    unsafe = unsafe_clusters(X, None, clusters)
    np.testing.assert_array_equal(unsafe.names, [0])
    np.testing.assert_array_equal(unsafe.degrees, [1])


def test_safe_clusters_are_not_named():
    _, clusters, rng = example([5, 6, 9])
    unsafe = unsafe_clusters(None, rng.normal(size=(20, 1)), clusters)
    assert not unsafe
    assert len(unsafe.names) == 0


def test_a_shared_column_that_varies_in_one_cluster_alone_belongs_to_it():
    Y, clusters, rng = example([3, 6, 6])
    X_B = np.where(clusters == 0, np.arange(15.0), 1.0)[:, None]
    np.testing.assert_array_equal(unsafe_clusters(None, X_B, clusters).names, [0])
    found = hybrid(Y, None, X_B, clusters, rng=rng).Y
    fitted = hybrid(Y, None, X_B, clusters, rng=rng, residuals="zero").Y
    np.testing.assert_allclose(abs(found - fitted)[:3], abs(Y - fitted)[:3], atol=1e-12)


@pytest.mark.parametrize(("slopes", "safe"), [(2, False), (4, True)])
def test_residuals_between_clusters_protect_only_if_they_have_two_dimensions(slopes, safe):
    Y, clusters, rng = example([3] * slopes)
    X_B = rng.normal(size=(len(Y), 1))
    unsafe = unsafe_clusters(None, X_B, clusters)
    assert bool(unsafe) != safe
    found = hybrid(Y[:, :1], None, X_B, clusters, rng=rng).Y
    fitted = hybrid(Y[:, :1], None, X_B, clusters, rng=rng, residuals="zero").Y
    between = [
        abs(np.polyfit(X_B[clusters == c, 0], (A - fitted)[clusters == c, 0], 1)[0])
        for A in (Y[:, :1], found)
        for c in range(slopes)
    ]
    assert np.allclose(between[:slopes], between[slopes:]) != safe


def test_a_row_of_leverage_one_comes_out_as_it_went_in_and_is_marked():
    Y, clusters, rng = example([6, 7])
    pieces = np.zeros(13, dtype=int)
    pieces[4] = 1
    found = hybrid(Y, None, None, clusters, pieces=pieces, rng=rng).Y
    np.testing.assert_array_equal(np.isclose(found, Y).all(axis=1), np.arange(13) == 4)
    unsafe = unsafe_clusters(None, None, clusters, pieces=pieces)
    np.testing.assert_array_equal(unsafe.rows, np.arange(13) == 4)
    assert len(unsafe.names) == 0
    assert unsafe


def test_groups_have_columns_of_their_own():
    _, clusters, rng = example([3, 4, 4, 4])
    groups = np.minimum(clusters, 1)
    X_B = rng.normal(size=(15, 1))
    np.testing.assert_array_equal(unsafe_clusters(None, X_B, clusters, groups=groups).names, [0])
    assert not unsafe_clusters(None, X_B, clusters)


def test_labels_and_rows_come_back_in_the_order_of_the_data():
    _, clusters, rng = example([2, 5, 1, 5])
    order = rng.permutation(13)
    names = np.array(["d", "c", "b", "a"])
    unsafe = unsafe_clusters(None, None, names[clusters][order])
    assert sorted(unsafe.names.tolist()) == ["b", "d"]
    np.testing.assert_array_equal(unsafe.rows, np.isin(clusters, [0, 2])[order])
