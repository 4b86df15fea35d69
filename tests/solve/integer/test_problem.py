"""Problems: what they check, and the index arrays made from designs."""

import numpy as np
import pytest
from hypothesis import given, settings

import discreet as dc
from discreet.errors import ParameterError
from discreet.solve import Domain, LatticeProblem, LimitError
from tests.strategies import designs

DESIGN = dc.Design.product({"a": 2, "b": 2}, "a*b")


def problem(**changes):
    m, n = DESIGN.n_published, DESIGN.n_inner
    given = {"target": np.full(m, 4), "domain": Domain.gapped(3, np.full(n, 9)), **changes}
    return LatticeProblem(DESIGN, **given)


@given(designs())
@settings(max_examples=60)
def test_members_are_the_rows_of_the_matrix(design):
    rows = np.arange(0, design.n_inner, 2)
    expected = design.matrix().toarray()[rows]
    for members in (design.members(rows), as_matrix(design).members(rows)):
        counts = np.zeros((len(rows), design.n_published + 1), dtype=np.int64)
        np.add.at(counts, (np.arange(len(rows))[:, None], members), 1)
        np.testing.assert_array_equal(counts[:, :-1], expected)


def as_matrix(design):
    return dc.Design.from_matrix(design.matrix())


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"power": 0.5}, "power must be at least 1"),
        ({"domain": Domain.gapped(3, [9])}, "4 inner cells, but domains were given for 1"),
        ({"target": np.zeros(3)}, "9 published cells, but `target` has 3"),
        ({"weights": np.full(9, -1.0)}, "weights must not be negative"),
        ({"target": np.full(9, np.nan)}, "finite"),
        ({"target": np.full(9, 0.5), "blocked": 3}, "whole targets"),
        ({"blocked": 3, "groups": np.zeros(9, dtype=np.int8)}, "exclude each other"),
    ],
)
def test_what_does_not_fit_is_refused(changes, why):
    with pytest.raises(ParameterError, match=why):
        problem(**changes)


def test_crossed_limits_name_the_cell_inside_and_not_outside():
    low, high = np.full(9, -1.0), np.full(9, 1.0)
    low[3], high[3] = 0.2, 0.8
    with pytest.raises(LimitError, match="may deviate by 0.2 to 0.8") as caught:
        problem(low=low, high=high)
    assert DESIGN.name_of(3) in str(caught.value)
    assert DESIGN.name_of(3) not in caught.value.public()


def test_breaches_and_forbidden_values_are_counted():
    limited = problem(low=np.full(9, -2.0), high=np.full(9, 1.0), blocked=3)
    deviation = np.array([0, 1, 2, -2, -3, -4, 0, 0, 0])
    np.testing.assert_array_equal(np.flatnonzero(limited.violations(deviation)), [2, 3, 4, 5])


def test_cells_have_names():
    assert DESIGN.name_of(DESIGN.position({})) == "the total"
    assert DESIGN.name_of(DESIGN.position({"a": "1"})) == "a=1"
    assert as_matrix(DESIGN).name_of(2) == "number 2"
