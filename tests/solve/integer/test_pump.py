"""Roundings near a start that keep all limits: never worse, and found where a program finds one."""

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

import discreet as dc
from discreet.solve import Domain, LatticeProblem, round_to_multiples
from discreet.solve.integer.repair import keep_limits_near

BASE = 3
SHAPES = [({"a": 5, "b": 4, "c": 3}, "a*b + b*c + a*c"), ({"a": 4, "b": 4, "c": 2}, "a*b*c")]


def rounding_of(design, seed):
    """Remainders of random counts in steps of the base, and cells that go up at random."""
    rng = np.random.default_rng(seed)
    part = rng.poisson(3.0, design.n_inner) % BASE
    sums = design.aggregate(part)
    low, high, target = sums // BASE, -(-sums // BASE), sums / BASE
    domain = Domain.interval(np.zeros(len(part), dtype=np.int64), (part > 0).astype(int))
    start = ((rng.random(len(part)) < 0.5) & (part > 0)).astype(np.int64)
    return LatticeProblem(design, target, domain, low=low - target, high=high - target), start


def broken(problem, y):
    return int(problem.violations(problem.deviation(y)).sum())


def is_possible(problem):
    """Whether an integer program over the whole table finds a rounding that keeps all limits."""
    X = problem.design.matrix().astype(float).T
    low, high = (np.rint(problem.target + limit) for limit in problem.limits)
    found = milp(
        np.zeros(problem.design.n_inner),
        constraints=LinearConstraint(X, low, high),
        bounds=Bounds(0, problem.domain.high),
        integrality=np.ones(problem.design.n_inner),
    )
    return found.x is not None


@pytest.mark.parametrize(("shape", "margins"), SHAPES)
def test_a_rounding_is_found_where_an_integer_program_finds_one(shape, margins):
    design, possible = dc.Design.product(shape, margins), 0
    for seed in range(12):
        problem, start = rounding_of(design, seed)
        y = keep_limits_near(problem, start, np.random.default_rng(seed))
        assert problem.domain.contains(y).all()
        assert broken(problem, y) <= broken(problem, start)
        assert (broken(problem, y) == 0) == is_possible(problem)
        possible += is_possible(problem)
    assert possible >= 6


def test_a_start_that_keeps_the_limits_stays():
    problem, start = rounding_of(dc.Design.product({"a": 6, "b": 5}, "a*b"), 1)
    rng = np.random.default_rng(1)
    y = keep_limits_near(problem, start, rng)
    assert broken(problem, y) == 0
    assert broken(problem, start) > 0
    np.testing.assert_array_equal(keep_limits_near(problem, y, rng), y)


def test_the_same_numbers_give_the_same_rounding():
    problem, start = rounding_of(dc.Design.product(*SHAPES[0]), 3)
    one, other = (keep_limits_near(problem, start, np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_limits_that_no_real_table_keeps_are_broken_no_more_than_before():
    """Two cells whose sum must be two and whose second is nothing at most."""
    design = dc.Design.from_matrix(np.array([[1, 0, 1], [1, 1, 0]]))
    domain = Domain.interval([0, 0], [1, 1])
    low, high = np.array([0.0, 0.0, -1.0]), np.array([0.0, 0.0, 0.0])
    problem = LatticeProblem(design, np.array([2, 0, 1]), domain, low=low, high=high)
    y = keep_limits_near(problem, np.array([1, 0]), np.random.default_rng(1))
    assert broken(problem, y) == 1


def test_a_census_by_three_variables_keeps_all_sums_next_to_theirs():
    table = dc.demo.census(persons=4_000).tabulate("district*age*sex")
    found = round_to_multiples(table.design, table.y, BASE, rng=np.random.default_rng(0))
    assert found.violations == 0
    assert np.abs(found.z - table.z).max() < BASE
