"""Domains against the sets they stand for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import DataError, InfeasibleError, ParameterError
from discreet.solve import Domain, LimitError
from discreet.solve.integer.problem import LARGEST

HIGH = 14


def values_of(domain, j):
    """The values of one cell, by trying all small numbers."""
    tried = np.arange(2 * HIGH)
    one = domain.take(np.array([j]))
    return tried[[bool(one.contains(np.array([v]))[0]) for v in tried]].tolist()


@pytest.mark.parametrize(
    ("domain", "values"),
    [
        (Domain.interval([2], [5]), [2, 3, 4, 5]),
        (Domain.gapped(3, [6]), [0, 3, 4, 5, 6]),
        (Domain(0, [HIGH], 4, False), [0, 4, 8, 12]),
        (Domain.pair([3], [6]), [3, 6]),
        (Domain.pair([3], [3]), [3]),
        (Domain.interval([7], [7]), [7]),
        (Domain.gapped(3, [2]), [0]),
    ],
)
def test_each_kind_of_domain_has_its_values(domain, values):
    assert values_of(domain, 0) == values
    assert (int(domain.low[0]), int(domain.high[0])) == (values[0], values[-1])
    assert bool(domain.is_free[0]) == (len(values) > 1)


@given(
    first=st.integers(0, 6),
    length=st.integers(0, 8),
    step=st.integers(1, 4),
    zero=st.booleans(),
    wanted=st.floats(-5, 25),
)
def test_the_nearest_value_is_the_nearest_of_all(first, length, step, zero, wanted):
    domain = Domain(*(np.array([v]) for v in (first, first + length, step, zero)))
    values = values_of(domain, 0)
    nearest = int(domain.nearest([wanted])[0])
    assert nearest in values
    assert abs(nearest - wanted) == pytest.approx(min(abs(v - wanted) for v in values))


def test_cells_can_have_domains_of_their_own():
    mixed = Domain([3, 1, 2], [9, 1, 2], 1, [True, False, False])
    assert [values_of(mixed, j) for j in range(3)] == [[0, 3, 4, 5, 6, 7, 8, 9], [1], [2]]
    mixed.require(np.array([4, 1, 2]))
    with pytest.raises(InfeasibleError, match=r"inner cell 1 a value outside its domain \(1\)"):
        mixed.require(np.array([4, 2, 2]))


def test_an_empty_domain_names_the_cell_and_its_bounds():
    with pytest.raises(LimitError, match="inner cell 1 .* lower bound 5 .* upper bound 4") as why:
        Domain.interval([0, 5], [3, 4])
    assert not any(character.isdigit() for character in why.value.public())


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        (([-1], [3], [1], [False]), "negative"),
        (([0], [3], [0], [False]), "at least 1 apart"),
        (([0.5], [3], [1], [False]), "whole numbers"),
        ((0, 3, 1, False), "cell by cell"),
    ],
)
def test_nonsense_is_refused(parts, why):
    with pytest.raises(ParameterError, match=why):
        Domain(*(np.asarray(p) for p in parts))


@pytest.mark.parametrize("high", [LARGEST + 1, 2**40])
def test_counts_that_do_not_fit_are_refused_and_not_clipped(high):
    with pytest.raises(DataError, match=f"{high:,}, but whole-number methods hold up to 2,147"):
        Domain.gapped(3, [5, high])
    with pytest.raises(DataError, match="hold up to"):
        Domain.pair([high - 1], [high])


def test_a_domain_speaks_of_its_values():
    domain = Domain.gapped(3, [LARGEST, 3, 8])
    assert [domain.describe(j) for j in range(3)] == [
        "0, or 3, 4, … up to …",
        "0, or 3",
        "0, or 3, 4, … up to 8",
    ]
