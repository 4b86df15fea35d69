"""Covers hold in every pattern that reaches the goal; cheapest choices against all choices."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array

from discreet.errors import NotConvergedError
from discreet.solve.linear.changes import Changes, MoveGoal, Tied
from discreet.suppress.optimal import Covering, Cuts

GRID = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
"""Two rows and two columns of four cells; a sum and its parts."""
EQUATIONS = csc_array(np.vstack([-GRID.T, np.eye(4)]).astype(float))
NOBODY = np.empty(0, np.intp)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=4, max_size=4),
    st.lists(st.sampled_from([0.0, 0.3, 0.5, 1.0]), min_size=7, max_size=7),
    st.sampled_from([-1.0, 1.0]),
)
def test_a_cover_holds_wherever_the_goal_is_reached(cells, share, sign):
    y = np.array(cells, float)
    down = np.concatenate([y, GRID @ y])
    always = np.arange(8) == 0
    choice, share, goal = np.arange(1, 8), np.array(share), MoveGoal(0, sign, 2.0)
    sums = Tied(EQUATIONS, down, np.full(8, np.inf))
    cover = Cuts(sums, always, choice).cut(goal, NOBODY, share)
    reached = []
    for chosen in product([False, True], repeat=7):
        is_open = np.concatenate([[True], chosen])
        if Changes(sums, is_open).cheapest(goal, NOBODY) is not None:
            reached.append(chosen)
    if cover is not None:
        assert cover @ share < 1
        assert (np.array(reached, float).reshape(-1, 7) @ cover >= 1 - 1e-6).all()
    if set(share) <= {0.0, 1.0}:
        assert (cover is None) == (tuple(share > 0) in reached)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=5, max_size=5),
    st.lists(st.lists(st.sampled_from([0.0, 0.4, 1.0]), min_size=5, max_size=5), max_size=4),
)
def test_the_cheapest_choice_is_the_cheapest_of_all(cost, covers):
    cost, rows = np.array(cost, float), np.array(covers).reshape(-1, 5)
    rows[:, 0] = 1.0
    covering = Covering(cost)
    for row in rows:
        covering.add(row)
    every = np.array(list(product([0.0, 1.0], repeat=5)))
    least = min(every[(every @ rows.T >= 1 - 1e-9).all(axis=1)] @ cost)
    found = covering.whole()
    assert found.bound == pytest.approx(least)
    assert cost @ found.share == pytest.approx(least)
    assert covering.relax().bound <= least + 1e-9


def test_covers_that_cannot_be_met_are_an_error():
    covering = Covering(np.ones(2))
    covering.add(np.full(2, 0.1))
    with pytest.raises(NotConvergedError, match="a choice of least cost was not found"):
        covering.whole()


def test_no_choice_is_made_when_all_effort_is_spent():
    covering = Covering(np.array([2.0, 3.0]), effort=15)
    covering.add(np.ones(2))
    assert covering.whole().share.tolist() == [1.0, 0.0]
    assert covering.whole().share is None
    assert covering.relax().bound == 2.0
