"""Non-negative fits by Newton's method on the dual, against active sets and the conditions."""

import itertools

import numpy as np
import pytest

import discreet as dc
from discreet.solve.least_squares import dual_fit
from discreet.solve.least_squares.dual_fit import suits_dual_fit
from discreet.solve.non_negative import non_negative

SIZES = {"a": 4, "b": 5, "c": 6}
PAIRS = list(itertools.combinations(SIZES, 2))
OPTIONS = {
    "plain": {},
    "exact": {"exact": [("a", "b")]},
    "ridge": {"ridge": 2.0},
}


@pytest.fixture
def by_dual(monkeypatch):
    """The dual for tables of any size, even where few cells are positive."""
    monkeypatch.setattr(non_negative, "NEVER_STORED", 0)
    monkeypatch.setattr(dual_fit, "MOST_DEGENERATE", dual_fit.MOST_GRADIENTS)


def noisy(scale, exact=()):
    """Margins of a sparse table with noise; exact ones without."""
    design = dc.Design.product(SIZES, PAIRS)
    rng = np.random.default_rng(5)
    counts = scale * rng.poisson(rng.gamma(0.3, 3.0, design.n_inner)).astype(float)
    truth = design.aggregate(counts)
    z = truth + rng.laplace(scale=4.0, size=design.n_published)
    for k, block in enumerate(design.blocks):
        if block.name in exact:
            z[design.slice_of(k)] = truth[design.slice_of(k)]
    return design, z


def independent_check(design, z, w, fit, ridge, held):
    """The conditions of Karush, Kuhn and Tucker, from the result alone."""
    residuals = w * (z - design.aggregate(fit.y))
    residuals[held] = fit.notes["multipliers"]
    g = ridge**2 * fit.y - design.adjoint(residuals)
    assert fit.y.min() >= 0
    assert np.abs(np.minimum(fit.y, g)).max() < 2e-3 * np.sqrt(w.sum() / (1 / w).sum())


@pytest.mark.parametrize("scale", [1.0, 1e6])
@pytest.mark.parametrize("option", OPTIONS)
def test_the_conditions_hold_and_the_fit_is_that_of_active_sets(by_dual, option, scale):
    design, z = noisy(scale, exact=("a×b",) if option == "exact" else ())
    fitter = dc.NonNegative(**OPTIONS[option])
    found = fitter(design, z).require()
    if scale == 1.0:  # beyond, exact margins may be left to active sets
        assert found.notes["solver"] == "Newton on the dual"
    independent_check(design, z, np.ones_like(z), found, fitter.ridge or 0.0, found.notes["held"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(non_negative, "NEVER_STORED", 10**9)
        other = fitter(design, z).require()
    np.testing.assert_allclose(found.z, other.z, atol=0.01)
    np.testing.assert_allclose(found.y, other.y, atol=0.5, rtol=1e-5)


def test_weights_may_differ_between_and_within_margins(by_dual):
    design, z = noisy(10.0)
    w = np.random.default_rng(2).uniform(0.2, 5.0, design.n_published)
    found = dc.NonNegative()(design, z, weights=w).require()
    assert found.notes["solver"] == "Newton on the dual"
    independent_check(design, z, w, found, 0.0, [])


def test_exact_margins_are_met(by_dual):
    design, z = noisy(1e6, exact=("a×b",))
    found = dc.NonNegative(exact=[("a", "b")])(design, z).require()
    place = design.slice_of([block.name for block in design.blocks].index("a×b"))
    assert np.abs(found.z - z)[place].max() < 1e-3


def test_hierarchies_give_the_fit_of_active_sets(by_dual, monkeypatch):
    monkeypatch.setattr(dual_fit, "MOST_WITH_LEVELS", np.inf)
    tree = dc.Hierarchy.from_dict({"All": {"north": ["n1", "n2", "n3"], "south": ["s1", "s2"]}})
    axes = [dc.design.Axis.from_hierarchies("region", [tree])]
    axes += [
        dc.design.Axis.flat("sex", ["f", "m"]),
        dc.design.Axis.flat("age", ["0", "1", "2", "3"]),
    ]
    design = dc.Design.product(axes, "region*sex + region*age + sex*age")
    rng = np.random.default_rng(5)
    z = design.aggregate(rng.poisson(rng.gamma(0.3, 9.0, design.n_inner)))
    z = z + rng.laplace(scale=4.0, size=len(z))
    found = dc.NonNegative()(design, z).require()
    assert found.notes["solver"] == "Newton on the dual"
    independent_check(design, z, np.ones_like(z), found, 0.0, found.notes["held"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(non_negative, "NEVER_STORED", 10**9)
        other = dc.NonNegative()(design, z).require()
    np.testing.assert_allclose(found.z, other.z, atol=0.01)


def _groups(name, sizes):
    """A variable whose categories stand in groups of unequal size, in two areas."""
    codes = iter(range(sum(sizes)))
    groups = [[f"{name}{next(codes)}" for _ in range(size)] for size in sizes]
    half = len(groups) // 2
    areas = {f"{name} {i}": part for i, part in enumerate((groups[:half], groups[half:]))}
    tree = {
        area: {f"{area} {i}": group for i, group in enumerate(part)} for area, part in areas.items()
    }
    return dc.design.Axis.from_hierarchies(name, [dc.Hierarchy.from_dict({f"all {name}": tree})])


def test_levels_cost_few_steps():
    """321 steps before answers to levels were exact and the next optimum foreseen."""
    axes = [dc.design.Axis.flat("a", list("1234")), dc.design.Axis.flat("b", list("123456"))]
    axes += [_groups("c", (1, 2, 3, 6, 9, 19)), _groups("d", (1, 1, 4, 8, 30, 56))]
    design = dc.Design.product(axes, list(itertools.combinations("abcd", 2)))
    rng = np.random.default_rng(1)
    z = design.aggregate(rng.poisson(rng.gamma(0.3, 4, design.n_inner)))
    fit = dc.NonNegative(device="cpu")(design, z + rng.laplace(0, 20, len(z))).require()
    assert fit.notes["solver"] == "Newton on the dual"
    assert fit.iterations < 250


def test_designs_that_publish_inner_cells_or_levels_are_left_to_other_methods():
    tree = dc.Hierarchy.from_dict({"All": {"north": ["n1", "n2"], "south": ["s1"]}})
    axes = [
        dc.design.Axis.from_hierarchies("region", [tree]),
        dc.design.Axis.flat("sex", ["f", "m"]),
    ]
    for design in (
        dc.Design.product({"a": 2, "b": 3}, "a*b"),
        dc.Design.product(axes, [("region[1]",), ("sex",)]),
    ):
        assert not suits_dual_fit(design, np.ones(design.n_published))
    design = dc.Design.product(SIZES, PAIRS)
    assert suits_dual_fit(design, np.ones(design.n_published))
    assert not suits_dual_fit(design, np.zeros(design.n_published))
