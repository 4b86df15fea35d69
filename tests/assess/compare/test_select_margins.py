"""Expected errors against dense algebra and against simulation."""

import math

import numpy as np
import pytest

import discreet as dc
from discreet.assessment import select_margins
from discreet.assessment.compare.select_margins import MarginPlan, Workload
from discreet.errors import DesignError, ParameterError

SIZES = {"a": 3, "b": 4, "c": 2}
PLANS = [
    MarginPlan((("a", "b", "c"),)),
    MarginPlan((("a", "b"), ("b", "c"), ("a",))),
    MarginPlan((("a", "b"), ("a", "c"), ("b", "c")), (("a",), ())),
    MarginPlan((("a",), ("b",), ("c",), ())),
    MarginPlan((("a", "b", "c"),), (("a", "b"),)),
    MarginPlan((), (("a", "b"), ("c",))),
]


def table(margins="a*b*c", seed=1):
    design = dc.Design.product(SIZES, margins)
    return dc.Table.from_inner(design, np.random.default_rng(seed).poisson(5, design.n_inner))


def columns(axes, terms):
    """Distinct columns of the design of some margins."""
    if not terms:
        return set()
    X = dc.Design.product(axes, list(terms)).matrix().toarray()
    return {tuple(column) for column in X.T}


def slow_error(table, plan, variance):
    """Root mean squared error of the published cells from noise and bias, by pseudo-inverses."""
    n = table.design.n_inner
    exact = columns(table.design.axes, plan.exact)
    noisy = columns(table.design.axes, plan.perturbed) - exact
    E, A = (np.array(sorted(found)).reshape(-1, n).T for found in (exact, noisy))
    free = np.eye(n) - E @ np.linalg.pinv(E)
    precision = free @ A @ A.T @ free / variance
    covariance = np.linalg.pinv(precision, rcond=1e-10)
    lost = (free - covariance @ precision) @ table.y
    target = table.design.matrix().toarray().T
    noise = np.trace(target @ covariance @ target.T) / len(target)
    return math.sqrt(max(noise, 0)), math.sqrt(np.mean((target @ lost) ** 2))


@pytest.mark.parametrize("margins", ["a*b*c", "a*b + c", "a:b"])
@pytest.mark.parametrize("plan", PLANS, ids=lambda p: p.label)
def test_errors_agree_with_pseudo_inverses(margins, plan):
    given = table(margins)
    found = select_margins(given, [plan], variance=2.0).plans[0].error
    noise, bias = slow_error(given, plan, 2.0)
    assert found.noise == pytest.approx(noise, abs=1e-9)
    assert found.bias == pytest.approx(bias, abs=1e-9)
    assert found.rmse == pytest.approx(math.hypot(noise, bias))


@pytest.mark.parametrize("plan", PLANS, ids=lambda p: p.label)
def test_the_closed_form_agrees_with_dense_matrices(plan, monkeypatch):
    quick = select_margins(table(), [plan], epsilon=1.0).plans[0]
    monkeypatch.setattr(Workload, "effects", None)
    dense = select_margins(table(), [plan], epsilon=1.0).plans[0]
    assert quick.error.noise == pytest.approx(dense.error.noise)
    assert quick.error.bias == pytest.approx(dense.error.bias)
    assert quick.sensitivity == dense.sensitivity


def test_simulated_fits_have_the_expected_error():
    given = table()
    plan = PLANS[1]
    error = select_margins(given, [plan], epsilon=1.0).plans[0].error
    noisy = dc.Design.product(SIZES, list(plan.perturbed))
    X = noisy.matrix().toarray()
    rng = np.random.default_rng(2)
    noise = rng.laplace(0, noisy.sensitivity() / 1.0, (3000, noisy.n_published))
    fitted = (X.T @ given.y + noise) @ np.linalg.pinv(X)
    moved = (fitted - given.y) @ given.design.matrix().toarray()
    assert math.sqrt((moved**2).mean()) == pytest.approx(error.rmse, rel=0.03)


def test_a_design_alone_gives_public_facts():
    found = select_margins(table().design, epsilon=1.0)
    assert not found.is_confidential
    assert "public facts" in repr(found)
    assert [p.error.bias for p in found.plans] == [0.0, None, None]
    assert found.best == MarginPlan((("a", "b", "c"),))
    assert found.frame["rmse"].to_pylist()[1:] == [None, None]
    known = select_margins(table(), epsilon=1.0)
    assert known.is_confidential
    assert [p.error.noise for p in known.plans if p.plan == found.best] == [
        found.plans[0].error.noise
    ]


def test_the_smallest_error_comes_first():
    found = select_margins(table(), epsilon=0.2, exact=[()])
    errors = [p.error.rmse for p in found.plans]
    assert errors == sorted(errors)
    assert found.frame["rank"].to_pylist() == list(range(1, 7))


def test_exact_margins_are_tried_beside_noisy_ones():
    found = select_margins(table(), ["a:b:c"], epsilon=1.0, exact="a")
    assert [p.plan.exact for p in found.plans] == [(("a",), ()), ()]
    assert found.plans[0].error.rmse < found.plans[1].error.rmse


def test_sensitivity_counts_margins_and_equal_cells_once():
    two = select_margins(table(), [[("a", "b"), ("a", "c")]], epsilon=1.0).plans[0]
    assert (two.sensitivity, two.cells) == (2, 18)
    assert two.variance == pytest.approx(2 * 2**2)
    design = dc.Design.product({"a": 3, "one": 1}, [("a",), ("one",)])
    same = select_margins(design, [[("a",), ("a", "one")]], epsilon=1.0).plans[0]
    assert (same.sensitivity, same.cells) == (1, 3)
    exact = select_margins(design, [MarginPlan((("a",), ()), ((),))], epsilon=1.0).plans[0]
    assert (exact.sensitivity, exact.cells) == (1, 3)


def test_noise_that_shares_no_budget_gains_from_every_margin():
    found = select_margins(table(), ["a:b:c", "a*b*c"], variance=3.0)
    assert found.best.perturbed == tuple(dc.margins(list(SIZES), 3))


def test_unequal_groups_are_decomposed_as_matrices():
    tree = dc.Hierarchy.from_dict({"All": {"N": ["n1", "n2", "n3"], "S": ["s1"]}})
    frame = {"place": ["n1", "n2", "n3", "s1"] * 2, "sex": ["f"] * 4 + ["m"] * 4}
    frame["n"] = [3, 1, 4, 1, 5, 9, 2, 6]
    given = dc.Table.from_counts(frame, count="n", margins="place*sex", hierarchies={"place": tree})
    plan = MarginPlan((("place",), ("sex",)), ((),))
    error = select_margins(given, [plan], variance=2.0).plans[0].error
    noise, bias = slow_error(given, plan, 2.0)
    assert (error.noise, error.bias) == pytest.approx((noise, bias))  # S and s1 are drawn once


def test_declared_zeros_are_decomposed_as_matrices():
    design = dc.Design.sparse({"a": 2, "b": 2}, "a*b", [[0, 0, 1], [0, 1, 1]])
    given = dc.Table.from_inner(design, np.array([3, 4, 5]))
    error = select_margins(given, [[("a",), ("b",)]], variance=1.0).plans[0].error
    X = dc.Design.sparse({"a": 2, "b": 2}, [("a",), ("b",)], [[0, 0, 1], [0, 1, 1]])
    X = X.matrix().toarray()
    target = design.matrix().toarray().T
    noise = np.trace(target @ np.linalg.pinv(X @ X.T) @ target.T) / len(target)
    assert error.noise == pytest.approx(math.sqrt(noise))
    assert error.bias == 0


def test_support_read_from_the_records_is_not_used():
    frame = {"a": ["x", "y"], "b": ["u", "v"], "n": [4, 6]}
    tables = [
        dc.Table.from_counts(frame, count="n", margins="a*b", support=s)
        for s in ("occurring", "all")
    ]
    found = [select_margins(t, epsilon=1.0).frame.to_pylist() for t in tables]
    assert found[0] == found[1]


def test_half_a_million_inner_cells_take_seconds():
    sizes = {"a": 7, "b": 19, "c": 12, "d": 52, "e": 6}
    design = dc.Design.product(sizes, dc.margins(list(sizes), 3, lower=False))
    pairs = dc.margins(list(sizes), 2, lower=False)
    found = select_margins(design, epsilon=0.5, exact=pairs)
    sizes = {(p.sensitivity, p.cells) for p in found.plans if not p.plan.exact}
    assert {(10, 39_262), (10, 2_961), (1, 497_952)} <= sizes
    assert all(p.error.noise > 0 for p in found.plans if not p.plan.exact)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"epsilon": 1.0, "variance": 1.0},
        {"epsilon": 0.0},
        {"variance": -1.0},
        {"epsilon": 1.0, "candidates": "a*b"},
        {"epsilon": 1.0, "candidates": []},
    ],
)
def test_wrong_requests_are_refused(wrong):
    with pytest.raises(ParameterError):
        select_margins(table(), **wrong)


def test_designs_without_margins_or_too_large_are_refused():
    with pytest.raises(DesignError, match="matrix"):
        select_margins(dc.Design.from_matrix(np.eye(3)), epsilon=1.0)
    side = np.arange(3001)
    large = dc.Design.sparse({"a": 3001, "b": 2}, "a*b", [side, side % 2])
    with pytest.raises(DesignError, match="3,000"):
        select_margins(large, epsilon=1.0)
