"""Which unknowns every whole table has in common, against enumeration."""

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csc_array

import discreet as dc
from discreet.assessment.audit.equations import DisagreementError
from discreet.attacks.reconstruction import IntegerReconstruction, solution_variability
from discreet.design.sparse import MatrixDesign
from discreet.errors import InfeasibleError
from tests.attack.weak_and_sound import plain
from tests.attacks.victims import country


def vary(X, low, high, most=3, **options):
    n = len(X)
    ends = np.asarray(low, float), np.asarray(high, float), np.zeros(n), np.full(n, float(most))
    return solution_variability(csc_array(X), *ends, rng=np.random.default_rng(1), **options)


@pytest.mark.parametrize("seed", range(40))
def test_fixed_and_free_as_by_enumeration(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(3, 7), rng.integers(2, 5)
    X = (rng.random((n, m)) < 0.5).astype(int)
    sums = X.T @ rng.integers(0, 3, n)
    slack = rng.integers(0, 2, m) * (seed % 2)
    tables = np.array(
        [
            y
            for y in product(range(4), repeat=n)
            if (X.T @ y >= sums - slack).all() and (X.T @ y <= sums + slack).all()
        ]
    )
    is_fixed = (tables == tables[0]).all(axis=0)
    found = vary(X, sums - slack, sums + slack)
    np.testing.assert_array_equal(found.is_fixed, is_fixed)
    np.testing.assert_array_equal(found.is_free, ~is_fixed)
    assert tuple(found.table.tolist()) in set(map(tuple, tables.tolist()))
    assert found.undecided == 0


def test_whole_numbers_fix_what_real_ones_leave_open():
    """A triangle of pairs: 2 = a+b = b+c = a+c with a+b+c at most 3 has one table of ones."""
    X = np.array([[1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1]])
    found = vary(X, [2, 2, 2, 0], [2, 2, 2, 3])
    assert found.table.tolist() == [1, 1, 1]
    assert found.is_fixed.all()
    odd = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1]])
    with pytest.raises((InfeasibleError, DisagreementError)):
        vary(odd, [1, 1, 1], [1, 1, 1])  # halves only


def test_a_budget_of_programs_leaves_unknowns_undecided():
    rng = np.random.default_rng(2)
    X = (rng.random((16, 10)) < 0.3).astype(int)
    sums = X.T @ rng.integers(0, 3, 16)
    some = vary(X, sums, sums, programs=1)
    assert some.programs <= 1
    assert some.undecided > 0
    assert vary(X, sums, sums).undecided == 0
    assert not (some.is_fixed & ~vary(X, sums, sums).is_fixed).any()  # no proof without programs


def test_a_release_fixes_what_it_publishes_and_noise_fixes_nothing():
    table = country(mean=2.0)
    attack, rng = IntegerReconstruction(), np.random.default_rng(1)
    found = attack.vary(plain(table), rng)
    assert found.is_fixed.all()
    np.testing.assert_array_equal(found.table, table.y)
    noisy = attack.vary(table.simulate(dc.DiscreteLaplace(1.0), seed=1), rng)
    assert not noisy.is_fixed.any()
    hidden = table.simulate("suppress", seed=1)
    seen = attack.vary(hidden, rng)
    shown = hidden.design.inner_in_published()
    under = hidden.hidden[shown]
    assert seen.is_fixed[~under].all()
    np.testing.assert_array_equal(seen.table[seen.is_fixed], table.y[seen.is_fixed])


def test_cells_that_are_left_undecided_are_told():
    """Nobody found is not nobody certain: the limit on programs stands in the finding."""
    rng = np.random.default_rng(1)
    table = dc.Table.from_inner(dc.Design.product({"a": 6, "b": 6, "c": 4}, "a*b + a*c + b*c"),
                                rng.poisson(1.0, 144))  # fmt: skip
    trial = table.simulate(dc.DropAdd(), seed=1)
    few, many = (dc.attack(None, trial, IntegerReconstruction(programs=n)) for n in (1, 300))
    assert few.undecided > many.undecided
    assert "others may be certain too" in few.text
    assert "judged against the truth" not in few.text
    assert few.provably_fixed <= many.provably_fixed


def test_sums_that_bind_nothing_join_nobody():
    """Noise without a bound leaves everybody free, however many cells hang together."""
    table = dc.Table.from_inner(
        dc.Design.product({"a": 25, "b": 20, "c": 9}, "a*b + a*c + b*c"), np.ones(4500, int)
    )
    trial = table.simulate(dc.DiscreteLaplace(1.0), seed=1)
    found = IntegerReconstruction().vary(trial, np.random.default_rng(1))
    assert found.is_free.all()
    assert found.programs == 0


def test_a_sum_over_two_parts_that_follows_from_their_floors_proves_nothing():
    X = np.array([[1, 0, 1], [1, 0, 1], [0, 1, 1], [0, 1, 1]])
    ends = np.array([3.0, 3.0, 4.0]), np.array([4.0, 4.0, 99.0])  # 4 is what four floors give
    found = solution_variability(
        csc_array(X), *ends, np.ones(4), np.full(4, 3.0), rng=np.random.default_rng(1)
    )
    assert found.is_free.all()


def overlapping(rng):
    """Twelve blocks by sex, published by district and by school zones that cut across them."""
    districts = [range(4), range(4, 8), range(8, 12)]
    zones = [range(3), range(3, 8), range(8, 12)]
    areas = [[block in area for block in range(12)] for area in (*districts, *zones)]
    X = np.kron(np.array(areas, dtype=int), np.eye(2, dtype=int)).T
    return dc.Table.from_inner(MatrixDesign(X), rng.poisson(2.0, 24) + 1)


def test_areas_that_overlap_tell_their_difference():
    """District less zone is one block; neither shows it."""
    table = overlapping(np.random.default_rng(1))
    found = IntegerReconstruction().vary(plain(table), np.random.default_rng(1))
    assert np.flatnonzero(found.is_fixed).tolist() == [6, 7], "both sexes of the fourth block"
    np.testing.assert_array_equal(found.table[6:8], table.y[6:8])
    assert found.is_free.sum() == 22
    told = dc.attack(None, plain(table), ["integer-reconstruction"])
    assert told.provably_fixed == table.y[6:8].sum()
    noisy = table.simulate(dc.ControlledRounding(5), seed=1)
    assert dc.attack(None, noisy, ["integer-reconstruction"]).provably_fixed == 0
