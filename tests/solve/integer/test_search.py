"""The search: feasible always, the same for a seed, honest in its report."""

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.errors import InfeasibleError, ParameterError
from discreet.progress import listening
from discreet.solve import Domain, LatticeProblem, LatticeSearch
from discreet.solve.integer.annealing import SearchStage
from tests.solve.integer.problems import problem_on, small_design
from tests.strategies import designs

QUICK = LatticeSearch(proposals=3000)


def rng_of(seed):
    return np.random.default_rng(seed)


@given(designs(), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_whatever_the_design_the_result_is_feasible_and_the_report_is_true(design, seed):
    rng = rng_of(seed)
    problem, start = problem_on(design, rng)
    found = QUICK(problem, start, rng=rng)
    problem.domain.require(found.y)
    z = design.matrix().toarray().T @ found.y
    np.testing.assert_array_equal(found.z, z)
    np.testing.assert_array_equal(found.deviation, z - problem.target)
    size = np.abs(z - problem.target)
    weights = 1.0 if problem.weights is None else problem.weights
    np.testing.assert_allclose(found.loss, (weights * size**problem.power).sum())
    assert found.maximum == size.max(initial=0)
    assert found.loss <= problem.loss(problem.deviation(start))


@pytest.mark.parametrize("seed", range(10))
def test_the_same_seed_gives_the_same_result_and_another_one_need_not(seed):
    rng = rng_of(seed)
    problem, start = problem_on(small_design(rng), rng)
    first, again = (QUICK(problem, start, rng=rng_of(1)) for _ in range(2))
    np.testing.assert_array_equal(first.y, again.y)
    assert first.is_repeatable


def large_problem(smallest=3):
    rng = rng_of(3)
    design = dc.Design.product({"a": 12, "b": 10, "c": 8}, "a*b + a*c + b*c")
    y = rng.poisson(rng.gamma(0.5, 4.0, design.n_inner))
    domain = Domain.gapped(smallest, np.full(design.n_inner, 99))
    return LatticeProblem(design, design.aggregate(y), domain), domain.nearest(y)


def test_other_seeds_and_other_chains_give_other_results():
    problem, start = large_problem()
    results = {tuple(QUICK(problem, start, rng=rng_of(s)).y) for s in range(4)}
    assert len(results) == 4
    found = LatticeSearch(proposals=3000, chains=3)(problem, start, rng=rng_of(1))
    assert len(set(found.chain_losses)) > 1
    assert found.loss == min(found.chain_losses)


def limited_problem():
    """Limits that annealing breaks, so that repair and polish are at work too."""
    problem, start = large_problem()
    m = problem.design.n_published
    return replace(problem, low=np.full(m, -2.0), high=np.full(m, 2.0)), start


def grouped_problem():
    problem, start = large_problem()
    return replace(problem, groups=np.zeros(problem.design.n_published, dtype=np.int8)), start


@pytest.mark.parametrize("make", [large_problem, limited_problem, grouped_problem])
@pytest.mark.parametrize("cores", [1, 2, 7])
def test_threads_and_cores_change_nothing(make, cores, monkeypatch):
    problem, start = make()
    search = LatticeSearch(proposals=2e4, chains=4)
    serial = search(problem, start, rng=rng_of(1))
    monkeypatch.setattr("discreet.solve.integer.search._SERIAL", 0)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cores)), raising=False)
    threaded = search(problem, start, rng=rng_of(1))
    np.testing.assert_array_equal(threaded.y, serial.y)
    assert threaded.chain_losses == serial.chain_losses
    assert threaded.proposals == serial.proposals


def test_a_search_counted_in_proposals_does_not_look_at_the_clock(monkeypatch):
    problem, start = limited_problem()
    first = QUICK(problem, start, rng=rng_of(1))
    ticks = itertools.count()
    monkeypatch.setattr("time.monotonic", lambda: 1000.0 * next(ticks))
    np.testing.assert_array_equal(QUICK(problem, start, rng=rng_of(1)).y, first.y)


def test_more_effort_is_not_worse():
    problem, start = large_problem()
    few, many = (LatticeSearch(proposals=p)(problem, start, rng=rng_of(1)) for p in (2e4, 1e6))
    assert many.loss < few.loss < problem.loss(problem.deviation(start))
    assert many.proposals > few.proposals


def test_seconds_bound_the_time_and_say_so():
    problem, start = large_problem()
    QUICK(problem, start, rng=rng_of(1))
    began = time.monotonic()
    found = LatticeSearch(seconds=0.3)(problem, start, rng=rng_of(1))
    assert time.monotonic() - began < 3
    assert not found.is_repeatable


def test_progress_rises_to_the_end():
    problem, start = large_problem()
    seen = []
    with listening(lambda task, fraction: seen.append((task, fraction))):
        LatticeSearch(proposals=1e5, chains=1)(problem, start, rng=rng_of(1))
    assert {task for task, _ in seen} == {"search"}
    assert len(seen) > 5
    assert seen[-1][1] == 1.0


def test_groups_are_lowered_in_their_order():
    problem, start = large_problem()
    order = np.array([b.order for b in problem.design.blocks])[problem.design.block_of_cell()]
    plain = LatticeSearch(proposals=3e5)(problem, start, rng=rng_of(1))
    for first in (1, 2):
        groups = np.where(order <= 1, first - 1, 2 - first).astype(np.int8)
        grouped = replace(problem, groups=groups)
        found = LatticeSearch(proposals=3e5)(grouped, start, rng=rng_of(1))
        assert grouped.largest(found.deviation)[0] <= grouped.largest(plain.deviation)[0]
        assert found.maximum <= plain.maximum + 1


def test_goals_stop_the_lowering():
    problem, start = large_problem(smallest=6)
    groups = np.zeros(problem.design.n_published, dtype=np.int8)

    def largest(goal, seed):
        aimed = replace(problem, groups=groups, goals=(goal,))
        return LatticeSearch(proposals=1e6, chains=1)(aimed, start, rng=rng_of(seed)).maximum

    pairs = [(largest(0.0, seed), largest(100.0, seed)) for seed in range(4)]
    assert all(low <= left for low, left in pairs)
    assert any(low < left for low, left in pairs)


def test_limits_are_kept_where_they_can_be_and_counted_where_not():
    problem, start = large_problem()
    m = problem.design.n_published
    wide = replace(problem, low=np.full(m, -3.0), high=np.full(m, 3.0))
    assert LatticeSearch(proposals=3e5)(wide, start, rng=rng_of(1)).violations == 0
    tight = replace(problem, low=np.full(m, -0.0), high=np.full(m, 0.0))
    found = LatticeSearch(proposals=3e4)(tight, start, rng=rng_of(1))
    assert found.violations == np.count_nonzero(found.deviation) > 0


def test_forbidden_published_values_are_avoided():
    problem, true = large_problem()
    domain = Domain.pair(true // 3 * 3, true // 3 * 3 + 3)
    problem = LatticeProblem(problem.design, problem.target, domain, blocked=3)
    found = LatticeSearch(proposals=1e5)(problem, domain.nearest(true), rng=rng_of(1))
    assert found.violations == 0
    assert not ((found.z > 0) & (found.z < 3)).any()


def test_real_targets_are_met_as_well_as_whole_ones():
    problem, start = large_problem()
    shifted = replace(problem, target=problem.target + 0.25)
    found = LatticeSearch(proposals=1e5)(shifted, start, rng=rng_of(1))
    np.testing.assert_allclose(found.deviation, found.z - shifted.target)
    assert found.loss < shifted.loss(shifted.deviation(start))


def test_without_a_choice_the_start_is_the_optimum():
    design = dc.Design.product({"a": 2, "b": 2}, "a*b")
    y = np.array([1, 2, 3, 4])
    problem = LatticeProblem(design, design.aggregate(y) + 1, Domain.interval(y, y))
    found = QUICK(problem, y, rng=rng_of(1))
    assert found.is_optimal
    assert found.loss == design.n_published


def test_a_start_outside_the_domain_is_refused():
    problem, start = large_problem()
    with pytest.raises(InfeasibleError, match="outside its domain"):
        QUICK(problem, np.where(start == 0, 1, start), rng=rng_of(1))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"proposals": 0}, "at least one proposal"),
        ({"chains": 0}, "one chain"),
        ({"seconds": 0.0}, "seconds must be positive"),
        ({"hot": 0.01}, "cold <= hot"),
        ({"pairs": 1.5}, "pairs must lie"),
    ],
)
def test_options_are_checked_when_they_are_written(options, why):
    with pytest.raises(ParameterError, match=why):
        LatticeSearch(**options)


def test_a_stage_ends_by_proposals_or_by_the_clock():
    counted = SearchStage(100, 5000, None)
    assert counted.sweeps == 50
    counted.spend(2500)
    assert counted.fraction == 0.5
    counted.spend(2500)
    assert counted.fraction == 1.0
    timed = SearchStage(100, 5000, 0.02)
    timed.spend(10**9)
    assert timed.fraction < 1.0
    time.sleep(0.03)
    assert timed.fraction == 1.0
