"""The compiled search against recomputation: deviations and energies carried along are exact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import DesignError
from discreet.solve.integer.annealing import SearchStage, compile_problem, restart
from discreet.solve.integer.kernels import (
    below,
    change,
    energy_of,
    is_allowed,
    move,
    partner,
    step_down,
    step_up,
    sweep,
)
from discreet.solve.integer.search import keep_limits
from tests.solve.integer.problems import problem_on, small_design
from tests.strategies import designs

SEED = np.uint64(7)


def chain_of(problem, start):
    form = compile_problem(problem)
    return form, form.chain(start[problem.rows].astype(np.int32), SEED)


@given(designs(), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_after_many_sweeps_deviations_and_energy_are_those_recomputed(design, seed):
    rng = np.random.default_rng(seed)
    problem, start = problem_on(design, rng)
    form, chain = chain_of(problem, start)
    sweep(form.model, chain, np.geomspace(5 * form.scale, 0.01 * form.scale, 30), 0.5)
    form.require_exact(chain)
    energy = energy_of(form.model.cells, form.model.rule, chain.deviation)
    np.testing.assert_allclose(chain.energy[0], energy, atol=1e-6)
    assert problem.domain.contains(form.full(chain.y)).all()
    assert problem.domain.contains(form.full(chain.best)).all()
    np.testing.assert_allclose(problem.loss(form.deviation(chain.best)[:-1]), chain.energy[1])


@given(designs(), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_with_limits_and_forbidden_values_the_energy_is_carried_along_too(design, seed):
    rng = np.random.default_rng(seed)
    m = design.n_published
    problem, start = problem_on(design, rng, low=np.full(m, -2.0), high=np.full(m, 1.0), blocked=3)
    form, chain = chain_of(problem, start)
    sweep(form.model, chain, np.geomspace(5 * form.scale, 0.01 * form.scale, 20), 0.5)
    form.require_exact(chain)
    energy = energy_of(form.model.cells, form.model.rule, chain.deviation)
    np.testing.assert_allclose(chain.energy[0], energy, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("seed", range(30))
def test_the_change_of_one_step_is_the_difference_of_two_energies(seed):
    rng = np.random.default_rng(seed)
    problem, start = problem_on(small_design(rng), rng)
    form, chain = chain_of(problem, start)
    members, places, cells, rule = form.model
    for j in range(len(chain.y)):
        for step in (step_up, step_down):
            s = step(places, j, chain.y[j])
            before = energy_of(cells, rule, chain.deviation)
            rise = change(members, places, cells, rule, chain.deviation, j, s)
            move(members, chain.y, chain.deviation, j, s)
            np.testing.assert_allclose(energy_of(cells, rule, chain.deviation) - before, rise)
            assert is_allowed(places, j, chain.y[j])


def test_a_chain_with_wrong_deviations_is_caught():
    rng = np.random.default_rng(1)
    problem, start = problem_on(small_design(rng), rng)
    form, chain = chain_of(problem, start)
    chain.deviation[0] += 1
    with pytest.raises(DesignError, match="differ from recomputed ones"):
        form.require_exact(chain)
    restart(form, chain, chain.y.copy())
    form.require_exact(chain)


@pytest.mark.parametrize("seed", range(20))
def test_repair_stays_exact_and_never_adds_violations(seed):
    rng = np.random.default_rng(seed)
    problem, start = problem_on(small_design(rng), rng)
    form, chain = chain_of(problem, start)
    m = problem.design.n_published
    limits = np.full(m, -2.0), np.full(m, 2.0)
    before = int((np.abs(chain.deviation[:-1]) > 2).sum())
    left = keep_limits(form, chain, limits, SearchStage(len(chain.y), 1e5, None))
    form.require_exact(chain)
    assert left == int((np.abs(chain.deviation[:-1]) > 2).sum()) <= before
    assert problem.domain.contains(form.full(chain.y)).all()


def test_random_numbers_below_a_limit_are_even():
    random = np.array([SEED], dtype=np.uint64)
    drawn = np.array([below(random, 7) for _ in range(7000)])
    assert set(drawn) == set(range(7))
    assert np.abs(np.bincount(drawn) - 1000).max() < 5 * np.sqrt(1000)


def test_partners_lie_within_the_table():
    random = np.array([SEED], dtype=np.uint64)
    for j in (0, 5, 9):
        drawn = {int(partner(random, j, 10)) for _ in range(2000)}
        assert drawn == set(range(10))
