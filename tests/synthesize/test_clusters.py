"""Microaggregation against slow loops over plain lists, which look at every row every time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.synthesis.microaggregation import mdav


def apart(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def centroid(points):
    return [sum(column) / len(points) for column in zip(*points, strict=True)]


def farthest(points, left, centre):
    return min(left, key=lambda i: (-apart(points[i], centre), i))


def nearest(points, left, centre, count):
    return sorted(left, key=lambda i: (apart(points[i], centre), i))[:count]


def slow_fixed(points, size):
    left, groups = list(range(len(points))), []

    def cut(row):
        groups.append(nearest(points, left, points[row], size))
        for i in groups[-1]:
            left.remove(i)

    while len(left) >= 3 * size:
        row = farthest(points, left, centroid([points[i] for i in left]))
        other = farthest(points, left, points[row])
        cut(row)
        cut(other)
    if len(left) >= 2 * size:
        cut(farthest(points, left, centroid([points[i] for i in left])))
    return labels_of([*groups, left] if left else groups, len(points))


def slow_variable(points, size, gain):
    left, groups = list(range(len(points))), []
    centre = centroid(points)
    while len(left) >= size:
        row = farthest(points, left, centre)
        group = nearest(points, left, points[row], size)
        left = [i for i in left if i not in group]
        while left and len(group) < 2 * size - 1:
            gaps = {i: min(apart(points[i], points[j]) for j in group) for i in left}
            near = min(left, key=lambda i: (gaps[i], i))
            outside = [apart(points[near], points[i]) for i in left if i != near]
            if outside and gaps[near] >= gain**2 * min(outside):
                break
            group.append(near)
            left.remove(near)
        groups.append(group)
    centroids = [centroid([points[i] for i in group]) for group in groups]
    for i in left:
        groups[min(range(len(centroids)), key=lambda g: apart(points[i], centroids[g]))].append(i)
    return labels_of(groups, len(points))


def labels_of(groups, n):
    labels = np.empty(n, dtype=int)
    for number, group in enumerate(groups):
        labels[group] = number
    return labels


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [7, 40, 301])
def test_groups_of_fixed_size_are_those_of_the_slow_loop(n, size):
    values = np.random.default_rng(n + size).normal(size=(n, 3))
    labels = mdav(values, size, standardise=False)
    np.testing.assert_array_equal(labels, slow_fixed(values.tolist(), size))


@pytest.mark.parametrize("gain", [0.0, 0.2, 1.1, 3.0])
@pytest.mark.parametrize("size", [2, 3, 6])
def test_groups_of_variable_size_are_those_of_the_slow_loop(size, gain):
    rng = np.random.default_rng(size)
    values = rng.normal(size=(250, 2)) + 9.0 * rng.integers(0, 4, size=(250, 1))
    labels = mdav(values, size, gain=gain, standardise=False)
    np.testing.assert_array_equal(labels, slow_variable(values.tolist(), size, gain))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.sampled_from([None, 0.5, 1.0]))
def test_ties_go_to_the_first_row(seed, size, gain):
    values = np.random.default_rng(seed).integers(0, 4, size=(64, 2)).astype(float)
    labels = mdav(values, size, gain=gain, standardise=False)
    slow = slow_fixed if gain is None else lambda p, s: slow_variable(p, s, gain)
    np.testing.assert_array_equal(labels, slow(values.tolist(), size))


@pytest.mark.parametrize("n", [100, 5000])
def test_every_group_has_its_size(n):
    values = np.random.default_rng(n).normal(size=(n, 4))
    fixed = np.bincount(mdav(values, 7))
    assert (fixed[:-1] == 7).all()
    assert 7 <= fixed[-1] < 14
    variable = np.bincount(mdav(values, 7, gain=0.9))
    assert variable.min() >= 7
    assert len(set(variable.tolist())) > 2


def test_equal_rows_are_grouped_too():
    labels = mdav(np.ones((3000, 2)), 10)
    assert (np.bincount(labels) == 10).all()


def test_standardised_columns_count_alike():
    values = np.random.default_rng(3).normal(size=(200, 3))
    np.testing.assert_array_equal(mdav(values, 4), mdav(values * [1.0, 1024.0, 2.0**-20], 4))


def test_a_larger_gain_makes_larger_groups():
    values = np.random.default_rng(8).normal(size=(2000, 2))
    groups = [mdav(values, 5, gain=gain).max() for gain in (0.0, 0.5, 1.0, 2.0)]
    assert groups == sorted(groups, reverse=True)
    assert groups[0] > groups[-1]


@pytest.mark.parametrize(
    ("values", "options", "text"),
    [
        (np.ones((5, 1)), {"size": 6}, "between 1 and the number of rows, 5, got 6"),
        (np.ones((5, 1)), {"size": 0}, "between 1 and"),
        (np.ones((5, 1)), {"size": 2, "gain": -1.0}, "gain must not be negative"),
        (np.ones((5, 0)), {"size": 2}, "without any column"),
    ],
)
def test_wishes_that_make_no_sense_are_refused(values, options, text):
    with pytest.raises(ParameterError, match=text):
        mdav(values, **options)
