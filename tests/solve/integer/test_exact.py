"""The search against the exact optimum of small problems, and that against all points."""

import itertools

import numpy as np
import pytest

import discreet as dc
from discreet.errors import InfeasibleError
from discreet.solve import Domain, LatticeProblem, LatticeSearch
from tests.solve.integer.exact import solve_exactly
from tests.solve.integer.problems import problem_on, small_design

CASES = 100
SHARE_OPTIMAL = 0.98


def case(seed):
    rng = np.random.default_rng(seed)
    return (*problem_on(small_design(rng), rng), rng)


def by_enumeration(problem):
    """The least loss among all points of a tiny problem that keep the limits."""
    values = [
        [v for v in range(int(h) + 1) if one_allows(problem.domain, j, v)]
        for j, h in enumerate(problem.domain.high)
    ]
    losses = [np.inf]
    for point in itertools.product(*values):
        deviation = problem.deviation(np.array(point))
        if not problem.violations(deviation).any():
            losses.append(problem.loss(deviation))
    return min(losses)


def one_allows(domain, j, v):
    return bool(domain.take(np.array([j])).contains(np.array([v]))[0])


def tiny(seed, **options):
    rng = np.random.default_rng(seed)
    design = dc.Design.product({"a": 2, "b": 2}, "a*b")
    y = rng.integers(0, 6, 4)
    domain = Domain.gapped(3, np.full(4, 9)) if seed % 2 else Domain.interval(y // 2, y + 2)
    target = design.aggregate(y) + rng.integers(-2, 3, design.n_published)
    power = float(rng.choice([1, 1.5, 2, 3]))
    weights = rng.uniform(0, 3, design.n_published)
    problem = LatticeProblem(design, target, domain, power=power, weights=weights, **options)
    return problem, domain.nearest(y)


@pytest.mark.parametrize("seed", range(12))
def test_the_exact_optimum_is_that_of_all_points(seed):
    problem, start = tiny(seed)
    found = solve_exactly(problem, start)
    assert found.is_optimal
    np.testing.assert_allclose(found.loss, by_enumeration(problem), atol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_the_exact_optimum_keeps_limits_and_forbidden_values(seed):
    limits = {"low": np.full(9, -4.0), "high": np.full(9, 4.0), "blocked": 3}
    problem, start = tiny(seed, **limits)
    least = by_enumeration(problem)
    if np.isinf(least):
        with pytest.raises(InfeasibleError):
            solve_exactly(problem, start)
    else:
        np.testing.assert_allclose(solve_exactly(problem, start).loss, least, atol=1e-6)


def test_the_search_reaches_the_optimum_in_nearly_all_small_problems(record_property):
    """At least 98 of 100 small problems are solved exactly; no search beats the optimum."""
    gaps = []
    for seed in range(CASES):
        problem, start, rng = case(seed)
        exact = solve_exactly(problem, start)
        found = LatticeSearch(proposals=1e5)(problem, start, rng=rng)
        assert found.loss >= exact.loss - 1e-6
        gaps.append((found.loss - exact.loss) / max(exact.loss, 1.0))
    gaps = np.array(gaps)
    record_property("largest gaps", np.sort(gaps)[-10:].round(3).tolist())
    assert (gaps < 1e-9).mean() >= SHARE_OPTIMAL
    assert gaps.mean() < 0.05


@pytest.mark.parametrize("seed", range(12))
def test_the_least_maximum_is_found_by_both(seed):
    rng = np.random.default_rng(seed)
    design = dc.Design.product({"a": 3, "b": 3}, "a + b")
    y = rng.integers(0, 7, 9)
    problem = LatticeProblem(
        design,
        design.aggregate(y),
        Domain.gapped(3, np.full(9, 20)),
        groups=np.zeros(design.n_published, dtype=np.int8),
    )
    start = problem.domain.nearest(y)
    exact = solve_exactly(problem, start)
    found = LatticeSearch(proposals=1e5)(problem, start, rng=rng)
    assert (found.maximum, found.loss) == (exact.maximum, exact.loss)


def test_infeasible_limits_are_explained():
    design = dc.Design.product({"a": 2, "b": 2}, "a*b")
    domain = Domain.pair(np.zeros(4, dtype=int), np.full(4, 3))
    limits = {"low": np.full(9, -0.5), "high": np.full(9, 0.5)}
    problem = LatticeProblem(design, np.full(9, 4), domain, **limits)
    with pytest.raises(InfeasibleError, match="no whole numbers of the domain keep the limits"):
        solve_exactly(problem, np.zeros(4, dtype=int))
