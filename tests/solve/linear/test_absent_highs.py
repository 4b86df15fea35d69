"""Where HiGHS is not installed, what needs it says so and names the remedy."""

import sys

import numpy as np
import pytest

import discreet as dc
from discreet.errors import MissingDependencyError
from discreet.solve import round_to_multiples
from discreet.solve.linear.program import solve_mixed


def round_three_way():
    design = dc.Design.product({"a": 9, "b": 8, "c": 7}, "a*b + b*c + a*c")
    counts = np.random.default_rng(2).poisson(4.0, design.n_inner)
    round_to_multiples(design, counts, 3, rng=np.random.default_rng(1))


def search_mixed():
    solve_mixed(np.ones(1), np.ones((1, 1)), (np.ones(1), np.ones(1)), np.ones(1, bool), 1)


@pytest.mark.parametrize("use", [round_three_way, search_mixed])
def test_the_remedy_is_named(use, monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(MissingDependencyError, match="pip install highspy"):
        use()


def test_fits_that_do_not_need_it_run_without_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    design = dc.Design.product({"a": 5, "b": 4, "c": 4}, "a*b + b*c + a*c")
    z = design.aggregate(np.random.default_rng(2).poisson(4.0, design.n_inner))
    dc.LeastSquares()(design, z).require()
