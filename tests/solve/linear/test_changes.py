"""Changes of sums against a program that is written out in full."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csc_array

from discreet.solve.linear.changes import Changes, MoveGoal, Tied, Ties, movable


@st.composite
def systems(draw):
    """A small table with its margins: sums × equations, values, open sums, costs."""
    rows, columns = draw(st.integers(2, 3)), draw(st.integers(2, 4))
    inner = rows * columns
    parts = [[r * columns + c for c in range(columns)] for r in range(rows)]
    parts += [[r * columns + c for r in range(rows)] for c in range(columns)]
    n = inner + len(parts)
    equations = np.zeros((n, len(parts)))
    for k, cells in enumerate(parts):
        equations[inner + k, k] = 1
        equations[cells, k] = -1
    value = np.array(draw(st.lists(st.integers(0, 5), min_size=inner, max_size=inner)), float)
    value = np.concatenate([value, [value[cells].sum() for cells in parts]])
    is_open = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    cost = np.array(draw(st.lists(st.integers(1, 9), min_size=n, max_size=n)), float)
    return csc_array(equations), value, is_open, cost


def tied(equations, value):
    """Sums that go down to zero, and up as far as they like."""
    return Tied(equations, value, np.full(len(value), np.inf))


def on_all(change, n):
    """The moves of all sums."""
    full = np.zeros(n)
    full[change.places] = change.values
    return full


def written_out(equations, value, is_open, cost, goal, held):
    """The smallest cost by another program, or nothing."""
    n = len(value)
    still = ~is_open
    still[held] = True
    up = [(0.0, 0.0 if still[k] else None) for k in range(n)]
    down = [(0.0, 0.0 if still[k] else value[k]) for k in range(n)]
    row = np.zeros(2 * n)
    row[goal.total], row[n + goal.total] = 1.0, -1.0
    A = equations.toarray().T
    A = np.vstack([np.hstack([A, -A]), row])
    b = np.append(np.zeros(A.shape[0] - 1), goal.sign * goal.reach)
    found = linprog(np.tile(cost, 2), A_eq=A, b_eq=b, bounds=up + down)
    return found.fun if found.status == 0 else None


@settings(max_examples=80, deadline=None)
@given(systems(), st.data())
def test_the_cheapest_change_costs_what_a_program_written_out_says(system, data):
    equations, value, is_open, cost = system
    changes = Changes(tied(equations, value), is_open, cost)
    places = st.integers(0, len(value) - 1)
    for _ in range(3):
        goal = MoveGoal(data.draw(places), data.draw(st.sampled_from([1.0, -1.0])), 1.0)
        held = np.array(data.draw(st.lists(places, max_size=2)), dtype=np.intp)
        expected = written_out(equations, value, is_open, cost, goal, held)
        change = changes.cheapest(goal, held)
        if expected is None:
            assert change is None
            continue
        change = on_all(change, len(value))
        assert change[goal.total] == goal.sign * goal.reach
        assert np.abs(change) @ cost == np.round(expected, 6)
        assert np.allclose(equations.T @ change, 0)
        assert (value + change >= -1e-9).all()
        assert not change[held].any()
        assert not change[~is_open].any()


@settings(max_examples=50, deadline=None)
@given(systems())
def test_what_cannot_move_is_alone_in_an_equation_in_the_end(system):
    equations, value, is_open, _ = system
    moves = movable(equations, is_open)
    assert not (moves & ~is_open).any()
    count = (equations != 0).T @ moves.astype(int)
    assert (count != 1).all()
    for total in np.flatnonzero(is_open & ~moves):
        goal = MoveGoal(int(total), 1.0, 1.0)
        none = np.empty(0, np.intp)
        assert written_out(equations, value, is_open, np.ones(len(value)), goal, none) is None


def test_a_sum_that_is_closed_moves_again_when_it_is_opened():
    equations = csc_array(np.array([[1.0], [-1.0], [-1.0]]))
    changes = Changes(tied(equations, np.array([5.0, 2.0, 3.0])), np.ones(3, dtype=bool))
    goal, held = MoveGoal(0, 1.0, 2.0), np.array([2])
    assert on_all(changes.cheapest(goal, held), 3).tolist() == [2.0, 2.0, 0.0]
    changes.close(1)
    assert changes.cheapest(goal, held) is None
    changes.close(1, closed=False)
    changes.price(np.array([1]), 9.0)
    assert on_all(changes.cheapest(goal, held[:0]), 3).tolist() == [2.0, 0.0, 2.0]


@settings(max_examples=80, deadline=None)
@given(systems(), st.integers(2, 12), st.data())
def test_sums_near_a_goal_lead_to_a_change_that_holds_everywhere(system, near, data):
    equations, value, is_open, cost = system
    everywhere = Changes(tied(equations, value), is_open, cost)
    changes = Changes(tied(equations, value), is_open, cost, near=near)
    changes.price(np.flatnonzero(is_open)[::2], 0.5)
    goal = MoveGoal(data.draw(st.integers(0, len(value) - 1)), 1.0, 1.0)
    none = np.empty(0, np.intp)
    found = changes.cheapest(goal, none)
    assert (found is None) == (everywhere.cheapest(goal, none) is None)
    if found is not None:
        change = on_all(found, len(value))
        assert change[goal.total] == 1.0
        assert np.allclose(equations.T @ change, 0)
        assert (value + change >= -1e-9).all()
        assert not change[~is_open].any()


def test_a_part_holds_the_sums_with_which_a_change_closes():
    """A cell of a large square moves along a rectangle, and few of its cells are looked at."""
    n = 40
    parts = [[r * n + c for c in range(n)] for r in range(n)]
    parts += [[r * n + c for r in range(n)] for c in range(n)]
    equations = np.zeros((n * n + 2 * n, 2 * n))
    for k, cells in enumerate(parts):
        equations[n * n + k, k] = 1
        equations[cells, k] = -1
    cost = np.arange(len(equations), dtype=float) + 1
    ties = Ties(csc_array(equations), cost, 90)
    inner = np.arange(len(equations)) < n * n
    sums, is_all = ties.around(5 * n + 5, inner, np.zeros(len(equations), dtype=bool))
    assert len(sums) <= 90
    assert not is_all
    rows, columns = sums // n, sums % n
    assert {(5, 5), (5, 0), (0, 5), (0, 0)} <= set(
        zip(rows.tolist(), columns.tolist(), strict=True)
    )


def test_nothing_is_found_when_all_effort_is_spent():
    equations = csc_array(np.array([[1.0], [-1.0], [-1.0]]))
    value, none = np.array([5.0, 2.0, 3.0]), np.empty(0, np.intp)
    goal, is_open = MoveGoal(0, 1.0, 2.0), np.ones(3, dtype=bool)
    free = Changes(tied(equations, value), is_open)
    assert free.cheapest(goal, none) is not None
    assert free.spent > 0
    changes = Changes(tied(equations, value), is_open, effort=free.spent)
    found = [changes.cheapest(goal, none) is not None for _ in range(3)]
    assert found == [True, False, False]
    assert changes.spent == free.spent  # steps, not seconds: the same each time
