"""The nearest additive table: against HiGHS, against the published example, against laws."""

import numpy as np
import pytest

import discreet as dc
from discreet.solve import Domain, LatticeProblem, LatticeSearch
from discreet.solve.integer.programs import Nearest, least_absolute
from tests.assess import party
from tests.solve.integer.exact import solve_exactly

SEARCH = LatticeSearch(proposals=1e5, hot=0.25, cold=0.04, pairs=0.05)
SHAPES = [{"a": 4, "b": 5}, {"a": 3, "b": 3, "c": 2}, {"a": 2, "b": 2, "c": 3}]


def noisy(shape, seed, min_count=3, reach=None):
    """A table whose published cells were all moved, and the problem of making it add up."""
    rng = np.random.default_rng(seed)
    design = dc.Design.product(shape, "*".join(shape))
    y = rng.poisson(rng.gamma(0.8, 5.0, design.n_inner))
    truth = design.aggregate(y)
    moved = np.maximum(truth + rng.integers(-3, 4, len(truth)), 0)
    moved[truth == 0] = 0
    moved[(moved > 0) & (moved < min_count)] = min_count
    high = np.where(y > 0, 10**6, 0)
    domain = Domain.gapped(min_count, high)
    bound = None if reach is None else np.full(len(truth), float(reach))
    low = None if bound is None else np.minimum(truth - bound - moved, 0)
    problem = LatticeProblem(
        design, moved, domain, power=1, low=low,
        high=None if bound is None else np.maximum(truth + bound - moved, 0),
    )  # fmt: skip
    return problem, domain.nearest(moved[design.slice_of(_inner(design))])


def _inner(design):
    return next(k for k, b in enumerate(design.blocks) if b.levels == design.inner_block.levels)


def nearest(problem, start, **options):
    two_way = len(problem.design.axes) == 2
    rng = np.random.default_rng(1)
    return Nearest(SEARCH, **options)(problem, start, is_network=two_way, rng=rng)


def test_tiny_tables_reach_the_exact_optimum():
    gaps = []
    for seed in range(60):
        problem, start = noisy(SHAPES[seed % 3], seed)
        found, best = nearest(problem, start), solve_exactly(problem, start)
        assert problem.domain.contains(found.y).all()
        assert found.lower_bound <= best.loss + 1e-6
        gaps.append(found.loss - best.loss)
    assert min(gaps) >= -1e-6
    assert np.mean(np.array(gaps) < 1e-6) >= 0.97
    assert max(gaps) <= 3


@pytest.mark.parametrize("seed", range(12))
def test_without_gaps_a_two_way_table_is_solved_by_the_network_alone(seed):
    problem, start = noisy({"a": 6, "b": 7}, seed, min_count=1)
    found = nearest(problem, start)
    assert found.is_optimal
    assert found.proposals == 0
    assert found.loss == pytest.approx(solve_exactly(problem, start).loss)


@pytest.mark.parametrize("seed", range(12))
def test_the_network_mends_what_a_poor_search_leaves(seed):
    problem, start = noisy({"a": 9, "b": 9}, seed)
    poor = LatticeSearch(proposals=1, chains=1, hot=1.0, cold=1.0)
    rng = np.random.default_rng(1)
    alone = poor(problem, start, rng=np.random.default_rng(1))
    found = Nearest(poor)(problem, start, is_network=True, rng=rng)
    assert found.loss <= alone.loss
    zero = found.y == 0
    low = np.where(zero, 0.0, np.maximum(problem.domain.first, 0))
    vertex = least_absolute(problem, start, low, np.where(zero, 0.0, 1e4))
    assert found.loss == pytest.approx(problem.loss(problem.deviation(start + vertex)))


def test_the_published_example_costs_23():
    """Table 3 of Langsrud & Lupp (2021), true zeros kept, moves up to 5, weights 50, 5 and 1."""
    design, y = party.DESIGN, np.array(party.TABLE_1).ravel()
    target = party.release(party.aggregated(party.TABLE_3)).z.astype(np.int64)
    truth = design.aggregate(y)
    weights = np.select([target == 0, target == 3], [50.0, 5.0], 1.0)
    empty = design.adjoint((truth == 0).astype(np.int64)) > 0
    domain = Domain.interval(np.zeros(18, dtype=int), np.where(empty, 0, 100))
    five = np.full(len(truth), 5.0)
    problem = LatticeProblem(design, target, domain, power=1, weights=weights, low=-five, high=five)
    assert solve_exactly(problem, domain.low.astype(np.int64)).loss == pytest.approx(23.0)
    found = nearest(problem, domain.low.astype(np.int64), bounded=True)
    assert found.loss == pytest.approx(23.0)
    assert found.lower_bound == pytest.approx(23.0)
    z = design.aggregate(found.y)
    assert not (z[truth == 0]).any()


@pytest.mark.parametrize("seed", range(6))
def test_limits_are_kept_where_that_is_possible(seed):
    problem, start = noisy(SHAPES[seed % 3], seed, reach=4)
    assert nearest(problem, start).violations == 0


@pytest.mark.parametrize("shape", SHAPES)
def test_a_table_that_adds_up_stays_as_it_is(shape):
    problem, _ = noisy(shape, 3)
    rng = np.random.default_rng(2)
    y = problem.domain.nearest(rng.poisson(6.0, problem.design.n_inner))
    additive = LatticeProblem(problem.design, problem.design.aggregate(y), problem.domain, power=1)
    found = nearest(additive, y)
    assert found.loss == 0
    np.testing.assert_array_equal(found.y, y)


def test_impossible_bounds_of_the_program_give_nothing():
    problem, start = noisy(SHAPES[0], 1, reach=1)
    high = np.zeros(len(start))
    assert least_absolute(problem, start, high, high, limited=True) is None
