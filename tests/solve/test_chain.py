"""Chains of fits, and the automatic choice."""

import numpy as np
import pytest

import discreet as dc
from discreet.errors import ParameterError, UnknownNameError
from discreet.solve import Status

MARGINS = dc.Design.product({"a": 3, "b": 3}, [("a",), ("b",), ()])
COUNTS = np.array([3, 6, 2, 1, 4, 7, 5, 8, 27])


@pytest.mark.parametrize(
    ("design", "z", "options", "expected"),
    [
        (
            MARGINS,
            [11, 13, 45, 11, 18, 38, 61],
            {},
            [1.443, 2.459, 5.364, 1.754, 2.990, 6.522, 6.736, 11.484, 25.047],
        ),
        (
            dc.Design.product({"a": 3, "b": 3}, [("a",), ("b",)]),
            [19.757, 14.542, 40.470, -2.429, 25.266, 34.867],
            {},
            [0.106, 7.178, 9.629, 0.073, 4.965, 6.660, 0.236, 15.968, 21.422],
        ),
        (
            MARGINS,
            [11, 12, 40, 3.286, 21.633, 35.433, 63],
            {"exact": ["a", ()]},
            [0.728, 3.931, 6.341, 0.794, 4.289, 6.917, 2.646, 14.296, 23.058],
        ),
    ],
    ids=["Table 5", "Table 6", "Table 7"],
)
def test_log_linear_estimates_of_langsrud_to_three_decimals(design, z, options, expected):
    chain = dc.solve.Chain([dc.NonNegative(**options), "log-linear"])
    np.testing.assert_allclose(chain(design, np.array(z)).require().y, expected, atol=1.1e-3)


def test_a_chain_keeps_the_sums_of_its_first_fit():
    z = np.array([11, 13, 45, 11, 18, 38, 61.0])
    first = dc.NonNegative()(MARGINS, z)
    np.testing.assert_allclose(dc.solve.Chain()(MARGINS, z).z, first.z, atol=1e-5)


def test_cells_left_out_of_the_first_fit_stay_out():
    design = dc.Design.product({"a": 3, "b": 3}, "a*b")
    z = design.aggregate(COUNTS).astype(float)
    weights = np.ones(len(z))
    hidden = [design.position({"a": i, "b": j}) for i in (1, 2) for j in (1, 3)]
    z[hidden], weights[hidden] = np.nan, 0
    fit = dc.solve.Chain()(design, z, weights=weights).require()
    known = np.flatnonzero(weights)
    np.testing.assert_allclose(fit.z[known], z[known], atol=2e-3)
    a, b, c, d = fit.z[hidden]
    assert a * d == pytest.approx(b * c, rel=1e-3)


def test_a_link_that_fails_stops_the_chain_and_says_so():
    chain = dc.solve.Chain([dc.NonNegative(max_steps=1), "log-linear"])
    fit = chain(MARGINS, np.array([11, 13, 45, 11, 18, 38, 61.0]))
    assert fit.status is Status.max_steps
    assert len(fit.notes["links"]) == 1


def test_a_chain_needs_fitters():
    with pytest.raises(ParameterError, match="list of fitters"):
        dc.solve.Chain([])
    with pytest.raises(ParameterError, match="list of fitters, got 3"):
        dc.solve.Chain(3)
    with pytest.raises(ParameterError, match="or their names, got 3"):
        dc.solve.Chain([3])
    with pytest.raises(UnknownNameError, match="non-negative"):
        dc.solve.Chain(["non-negativ"])


@pytest.mark.parametrize(
    ("margins", "noise", "fitter"),
    [
        ("a + b", 0, "log-linear"),
        ("a + b", 2, "chain"),
        ("a*b", 0, "non-negative"),
        ("a*b", 2, "non-negative"),
    ],
)
def test_the_automatic_choice_follows_the_published_cells(margins, noise, fitter):
    design = dc.Design.product({"a": 3, "b": 3}, margins)
    noisy = np.random.default_rng(2).normal(0, noise, design.n_published)
    z = design.aggregate(COUNTS) + noisy
    fit = dc.solve.Auto()(design, z).require()
    assert fit.notes["fitter"] == fitter
    assert "publish" in fit.notes["why"]
    chosen = dc.solve.Auto(tolerance=1e-4).choose(design, z)
    assert (chosen.fitter.name, chosen.why) == (fitter, fit.notes["why"])
    np.testing.assert_allclose(chosen.fitter(design, z).y, fit.y, atol=0.05)
    assert (fit.y >= 0).all()


TREE = dc.Hierarchy.from_dict({"all": {"north": ["n1", "n2", "n3"], "south": ["s1", "s2"]}})
CROSSED = {
    "flat": dc.Design.product({"a": 3, "b": 4, "c": 2}, "a*b + a*c + b*c"),
    "hierarchical": dc.Design.product({"a": TREE, "b": 4, "c": 2}, "a*b + a*c"),
}


@pytest.mark.parametrize("crossing", CROSSED)
@pytest.mark.parametrize("wrong", [0, 1])
def test_whether_cells_add_up_is_seen_wherever_one_of_them_is_off(crossing, wrong):
    design = CROSSED[crossing]
    truth = design.aggregate(np.random.default_rng(4).poisson(3.0, design.n_inner)).astype(float)
    for k in range(design.n_published):
        z = truth + wrong * (np.arange(design.n_published) == k)
        chosen = dc.solve.Auto().choose(design, z).fitter.name
        nearest = dc.LeastSquares(tolerance=1e-9)(design, z).z
        assert (np.abs(nearest - z).max() < 1e-6) == (chosen == "log-linear") == (wrong == 0)


def test_the_choice_for_a_table_too_large_to_store_takes_no_table():
    design = dc.Design.product({"a": 700, "b": 800, "c": 900}, "a + b + c")
    z = np.concatenate([np.full(n, 504e6 / n) for n in np.diff(design.offsets)])
    assert dc.solve.Auto().choose(design, z).fitter.name == "log-linear"
    assert dc.solve.Auto().choose(design, z + np.arange(len(z)) % 2).fitter.name == "chain"


def test_the_automatic_choice_with_suppressed_cells_sees_that_inner_cells_are_open():
    design = dc.Design.product({"a": 3, "b": 3}, "a*b")
    weights = np.ones(design.n_published)
    weights[[design.position({"a": i, "b": j}) for i in (1, 2) for j in (1, 3)]] = 0
    fit = dc.solve.Auto()(design, design.aggregate(COUNTS), weights=weights).require()
    assert fit.notes["fitter"] == "log-linear"
    chosen = dc.solve.Auto().choose(design, design.aggregate(COUNTS), weights=weights)
    assert chosen.fitter.name == "log-linear"


def test_the_automatic_choice_turns_to_the_chain_where_only_a_negative_table_has_the_cells():
    design = dc.Design.product({"a": 2, "b": 2, "c": 2}, "a*b + a*c + b*c")
    z = design.aggregate(np.array([-1, 1, 1, 1, 1, 1, 1, 0]))
    assert (z >= 0).all()
    fit = dc.solve.Auto()(design, z).require()
    assert fit.notes["fitter"] == "chain"
    assert "negative inner cells" in fit.notes["why"]
    assert (fit.y >= 0).all()
    np.testing.assert_allclose(fit.z, dc.NonNegative()(design, z).z, atol=1e-4)


def test_the_automatic_choice_checks_its_options():
    with pytest.raises(ParameterError, match="tolerance"):
        dc.solve.Auto(tolerance=2)
