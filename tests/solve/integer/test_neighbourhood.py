"""Exact repair: what can be kept is kept, nothing gets worse, and only the input decides."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

import discreet as dc
from discreet.solve import Domain, LatticeProblem, round_to_multiples
from discreet.solve.integer import repair
from discreet.solve.integer.repair import repair_limits
from tests.solve.integer.problems import KINDS, domain_of, small_design


def excess(problem, y):
    """By how much limits are broken in sum."""
    deviation = problem.design.matrix().toarray().T @ y - problem.target
    return (
        np.maximum(deviation - problem.high, 0).sum() + np.maximum(problem.low - deviation, 0).sum()
    )


def rounding_problem(design, seed, base=3):
    """Cells that go up or not so that every sum is next to its value, and a random start."""
    rng = np.random.default_rng(seed)
    over = rng.integers(0, base, design.n_inner)
    target = design.aggregate(over) / base
    domain = Domain.interval(np.zeros(design.n_inner, dtype=int), (over > 0).astype(int))
    limits = {"low": np.floor(target) - target, "high": np.ceil(target) - target}
    start = (rng.random(design.n_inner) < over / base).astype(np.int64)
    return LatticeProblem(design, target, domain, **limits), start


def is_feasible(problem):
    """A general solver on the whole problem; slow and obvious."""
    X = problem.design.matrix().toarray().T
    low, high = (np.rint(problem.target + limit) for limit in problem.limits)
    n = problem.design.n_inner
    found = milp(
        np.zeros(n),
        integrality=np.ones(n),
        constraints=LinearConstraint(X, low, high),
        bounds=Bounds(problem.domain.low, problem.domain.high),
    )
    return found.status == 0


@pytest.mark.parametrize("seed", range(40))
def test_limits_are_kept_exactly_where_a_general_solver_finds_it_possible(seed):
    rng = np.random.default_rng(seed)
    design = dc.Design.from_matrix((rng.random((9, 14)) < 0.45).astype(int))
    problem, start = rounding_problem(design, seed, base=2 + seed % 2)
    y = repair_limits(problem, start)
    assert (excess(problem, y) < 1e-9) == is_feasible(problem)


def test_both_kinds_are_among_those_problems():
    kinds = set()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        design = dc.Design.from_matrix((rng.random((9, 14)) < 0.45).astype(int))
        kinds.add(is_feasible(rounding_problem(design, seed, base=2 + seed % 2)[0]))
    assert kinds == {True, False}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_domains_are_kept_and_nothing_gets_worse(kind, seed):
    rng = np.random.default_rng(seed)
    design = small_design(rng)
    y = rng.poisson(3.0, design.n_inner)
    domain = domain_of(kind, y)
    wide = {"low": np.full(design.n_published, -1.0), "high": np.full(design.n_published, 1.0)}
    problem, start = LatticeProblem(design, design.aggregate(y), domain, **wide), domain.nearest(y)
    found = repair_limits(problem, start)
    domain.require(found)
    assert excess(problem, found) <= excess(problem, start)
    if excess(problem, start) == 0:
        np.testing.assert_array_equal(found, start)


@pytest.mark.parametrize("sizes", [(20, 60, 20_000), (20_000,)])
def test_neighbourhoods_grow_until_every_limit_is_kept(sizes):
    design = dc.Design.product({"a": 9, "b": 8, "c": 7}, "a*b + b*c + a*c")
    problem, start = rounding_problem(design, 5)
    assert problem.violations(problem.deviation(start)).sum() > 50
    y = repair_limits(problem, start, sizes)
    assert not problem.violations(problem.deviation(y)).any()


def test_the_effort_is_bounded(monkeypatch):
    monkeypatch.setattr(repair, "_EFFORT", 300)
    design = dc.Design.product({"a": 9, "b": 8, "c": 7}, "a*b + b*c + a*c")
    problem, start = rounding_problem(design, 5)
    y = repair_limits(problem, start, (60,))
    assert 0 < excess(problem, y) < excess(problem, start)


def test_four_linked_tables_of_census_records_are_rounded_without_exception():
    """The search alone leaves sums away from the multiples next to them."""
    formula = "age*sex + age*marital + sex*education + marital*education"
    table = dc.demo.census(10_000).tabulate(formula)
    found = round_to_multiples(table.design, table.y, 3, rng=np.random.default_rng(1))
    assert found.violations == 0
    assert np.abs(found.z - table.z).max() < 3
    assert not (found.z != table.z)[table.z % 3 == 0].any()


SCRIPT = """
import os, sys, zlib
if sys.argv[1] == "one":
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
if sys.argv[1] == "threads":
    import highspy
    other = highspy.Highs()
    for name, value in {"output_flag": False, "threads": 2, "parallel": "on"}.items():
        other.setOptionValue(name, value)
    for k in range(30):
        other.addVar(0, 1)
        other.changeColIntegrality(k, highspy.HighsVarType.kInteger)
        other.changeColCost(k, -1 - k % 7)
    for r in range(9):
        weights = [1 + (r * k) % 5 for k in range(10)]
        other.addRow(-10, 1.5 + r % 3, 10, list(range(r, r + 10)), weights)
    other.run()
import numpy as np
from tests.solve.integer.test_neighbourhood import rounding_problem
from discreet.solve.integer.repair import repair_limits
import discreet as dc
design = dc.Design.product({"a": 12, "b": 9, "c": 8}, "a*b + b*c + a*c")
print(zlib.crc32(repair_limits(*rounding_problem(design, 5)).tobytes()))
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs processor affinity")
def test_cores_and_threads_change_nothing():
    def run(where):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, where], capture_output=True, text=True, check=True
        )
        return done.stdout

    assert run("one") == run("all") == run("threads")


@pytest.mark.parametrize("seed", range(20))
def test_cells_with_a_gap_are_switched_where_that_is_what_it_takes(seed):
    """Against all tables of cells that are zero or three to six."""
    rng = np.random.default_rng(seed)
    design = dc.Design.from_matrix((rng.random((6, 9)) < 0.5).astype(int))
    domain = Domain.gapped(3, np.full(6, 6))
    target = design.aggregate(rng.integers(0, 7, 6)).astype(float)
    problem = LatticeProblem(design, target, domain, low=np.full(9, -1.0), high=np.full(9, 1.0))
    tables = np.array(list(itertools.product([0, 3, 4, 5, 6], repeat=6)))
    off = np.abs(tables @ design.matrix().toarray() - target).max(axis=1)
    y = repair_limits(problem, domain.nearest(rng.integers(0, 7, 6)))
    assert domain.contains(y).all()
    assert (excess(problem, y) < 1e-9) == bool((off <= 1).any())
