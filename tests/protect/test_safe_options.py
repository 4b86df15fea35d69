"""SAFE with allowances inside the maximum, and with zeros that may open."""

from itertools import product

import numpy as np
import pytest

import discreet as dc
from discreet.errors import ParameterError
from discreet.protect import SeededDraws
from discreet.protect.safe import over_support
from tests.protect.tables import SECRET

EFFORT = {"proposals": 3e5}


def census(seed=1, shape=(6, 5, 4), mean=6.0):
    rng = np.random.default_rng(seed)
    design = dc.Design.product(dict(zip("abc", shape, strict=True)), "a*b + a*c + b*c")
    return dc.Table.from_inner(design, rng.poisson(rng.gamma(0.4, mean / 0.4, design.n_inner)))


def deviations(table, method, seed=1):
    found = method.search(table, rng=np.random.default_rng(seed))
    _, order = over_support(table.design, method._support(table), None)
    return np.abs(found.deviation), order, found


def test_allowances_by_number_of_variables_go_to_the_cells_that_have_them():
    table = census(mean=2.0)
    plain, order, _ = deviations(table, dc.Safe(**EFFORT))
    wide, _, found = deviations(table, dc.Safe(allowances={2: 3}, weights={1: 64, 0: 64}, **EFFORT))
    # What cells of two variables may deviate further, those of one and the total need not.
    assert wide[order <= 1].sum() <= plain[order <= 1].sum()
    assert wide[order == 2].max() <= plain[order == 2].max() + 3
    assert found.violations == 0


def test_larger_cells_may_move_further():
    table = census(seed=2, shape=(8, 7, 6), mean=12.0)
    bounds = {"bounds": {1: 0, 2: 0}, **EFFORT}
    size, _, found = deviations(table, dc.Safe(allowance_share=0.1, **bounds))
    target = found.z - found.deviation
    assert found.violations == 0
    assert (size <= np.floor(0.1 * target)).all()
    # The test can fail: without allowances the same bounds are broken.
    assert deviations(table, dc.Safe(**bounds))[2].violations > 0


def test_the_weighted_maximum_is_that_of_an_exact_program():
    design = dc.Design.product({"a": 2, "b": 3}, "a*b")
    for seed in range(4):
        table = dc.Table.from_inner(design, np.random.default_rng(seed).integers(0, 6, 6))
        method = dc.Safe(allowances={2: 1}, **EFFORT)
        support = np.flatnonzero(table.y)
        problem = method._problem(table, support)
        found = method.search(table, rng=np.random.default_rng(seed))
        reached = problem.largest(found.deviation)
        every = _every(problem)
        best = min(problem.largest(problem.deviation(y))[0] for y in every)
        assert reached[0] == best


def _every(problem):
    domain, values = problem.domain, []
    for j in range(len(domain)):
        own = list(range(int(domain.first[j]), int(domain.high[j]) + 1))
        values.append([0, *own] if domain.zero[j] else own)
    return [np.array(y) for y in product(*values)]


def test_zeros_open_only_where_it_is_asked_for():
    table = census(seed=3, mean=1.0)
    closed = dc.Safe(**EFFORT)(table, draws=SeededDraws(1))
    opened = dc.Safe(opens_zeros=True, **EFFORT)(table, draws=SeededDraws(1))
    empty = np.asarray(table.y) == 0
    assert not np.asarray(closed.y)[empty].any()
    risen = np.asarray(opened.y)[empty]
    assert risen.any()
    for release in (closed, opened):
        assert not np.isin(release.y, [1, 2]).any()
        assert np.abs(release.y - table.y).max() <= 3
    assert closed.statement.says("zeros-stay")
    assert not opened.statement.says("zeros-stay")
    found = dc.audit(opened, table)
    assert (found.low <= table.z).all()
    assert (found.high >= table.z).all()


def test_structural_zeros_stay_closed():
    zeros = [{"a": ["1"], "b": ["2"]}]
    design = dc.Design.product({"a": 3, "b": 3}, "a*b", structural_zeros=zeros)
    table = dc.Table.from_inner(design, np.arange(design.n_inner) % 3)
    release = dc.Safe(opens_zeros=True, **EFFORT)(table, draws=SeededDraws(2))
    assert release.design.n_inner == design.n_inner < 9


def test_options_come_from_short_lists_and_survive_a_recipe():
    table = census(shape=(3, 3, 2)).with_secret(SECRET)
    for options in ({"allowances": {2: 2.5}}, {"allowance_share": 0.033}):
        with pytest.raises(ParameterError, match="without a ledger"):
            table.protect(dc.Safe(**options))
    release = table.protect("safe", allowances={"2": 1}, allowance_share=0.02, opens_zeros=True)
    told = release.statement.steps[-1].parameters
    assert told["allowances"] == {"2": 1.0}
    assert told["opens_zeros"]
    with pytest.raises(ParameterError, match="allowance_share"):
        dc.Safe(allowance_share=2)
    with pytest.raises(ParameterError, match="allowances must not be negative"):
        dc.Safe(allowances={1: -1})
