"""Clamp and refit against its definition and the party example of Langsrud & Lupp (2021)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.errors import ParameterError
from discreet.solve.least_squares import least_squares
from tests.strategies import designs

PARTY = {"party": ["A", "B", "C"], "age": ["young", "middle", "old"], "sex": ["male", "female"]}
PERTURBED = {
    "party:age": [[0, 16, 5], [0, 10, 3], [5, 11, 7]],
    "party:sex": [[12, 4], [3, 4], [10, 16]],
    "party": [18, 10, 29],
    "age": [5, 37, 15],
    "sex": [31, 29],
    "1": [57],
}
TABLE_6 = {
    "party:age": [[0, 14.9688, 3.9688], [0, 8.8438, 1.8438], [5.8182, 12.9119, 8.9119]],
    "party:sex": [[13.5938, 5.3438], [4.9688, 5.7188], [10.9460, 16.6960]],
    "party": [18.9375, 10.6875, 27.6420],
    "age": [5.8182, 36.7244, 14.7244],
    "sex": [29.5085, 27.7585],
    "1": [57.2670],
}
TABLE_7 = [
    [[0, 0], [10.7449, 4.2239], [2.8489, 1.1199]],
    [[0, 0], [4.1116, 4.7322], [0.8572, 0.9866]],
    [[2.3040, 3.5142], [5.1130, 7.7989], [3.5291, 5.3829]],
]


def party():
    axes = [dc.design.Axis.flat(name, codes) for name, codes in PARTY.items()]
    return dc.Design.product(axes, "party:age + party:sex + age + sex + party + 1")


def in_order(design, margins):
    """Margins given by name as one vector in the design's order."""
    z = np.empty(design.n_published)
    for k, block in enumerate(design.blocks):
        used = [a.name for a, level in zip(design.axes, block.levels, strict=True) if level]
        z[design.slice_of(k)] = np.ravel(margins[":".join(used) or "1"])
    return z


def slow(X, z, used, limit=1e-10):
    """The scheme word by word, with pseudo-inverses."""
    z = z.astype(float).copy()
    fit = X.T @ np.linalg.pinv(X.T[used].astype(float)) @ z[used]
    low = fit < limit
    if not low.any():
        return fit
    while True:
        z[low] = 0
        zero = low | (used & (z == 0))
        rows = ~X[:, zero].any(axis=1)
        rest, known = X[rows].T.astype(float), used & ~zero
        fit = rest @ np.linalg.pinv(rest[known]) @ z[known]
        more = low | (fit < limit)
        if more.sum() == low.sum():
            return fit
        low = more


@given(designs(), st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=200)
def test_the_fit_is_the_scheme_word_by_word(design, seed, complete):
    rng = np.random.default_rng(seed)
    counts = design.aggregate(rng.poisson(2, design.n_inner))
    z = np.round(counts + rng.laplace(0, 3, design.n_published))
    used = np.ones(design.n_published, dtype=bool) if complete else rng.random(len(z)) < 0.7
    fit = dc.Additive()(design, z, weights=used).require()
    np.testing.assert_allclose(fit.z, slow(design.matrix().toarray(), z, used), atol=1e-6)
    assert (fit.z > -1e-6).all()


def test_cells_of_weight_zero_do_not_come_out_negative_either():
    design = dc.Design.product({"a": 3}, "a")
    fit = dc.Additive()(design, np.array([4, 4, 0, 5]), weights=[1, 1, 0, 1]).require()
    np.testing.assert_allclose(fit.z, [3, 3, 0, 6], atol=1e-8)
    positive = dc.Additive()(design, np.array([4, 4, 0, 9]), weights=[1, 1, 0, 1]).require()
    np.testing.assert_allclose(positive.z, [4, 4, 1, 9], atol=1e-8)


def test_table_6_of_langsrud_and_lupp_to_four_decimals():
    design = party()
    fit = dc.Additive()(design, in_order(design, PERTURBED)).require()
    np.testing.assert_allclose(fit.z, in_order(design, TABLE_6), atol=6e-5)
    assert fit.notes["rounds"] == 2


def test_tables_7_and_8_follow_by_the_chain():
    design = party()
    fit = dc.solve.Chain(["additive", "log-linear"])(design, in_order(design, PERTURBED)).require()
    np.testing.assert_allclose(fit.y.reshape(3, 3, 2), TABLE_7, atol=6e-5)
    assert [link["fitter"] for link in fit.notes["links"]] == ["additive", "log-linear"]


@pytest.mark.slow
def test_rounds_that_store_nothing_give_the_same_fit(monkeypatch):
    rng = np.random.default_rng(3)
    design = dc.Design.product({"a": 6, "b": 7, "c": 8}, "a*b + a*c + b*c")
    z = design.aggregate(rng.poisson(0.5, design.n_inner)) + rng.laplace(0, 2, design.n_published)
    stored = dc.Additive()(design, z).require()
    monkeypatch.setattr(least_squares, "FEW_PUBLISHED", np.inf)
    monkeypatch.setattr(least_squares, "NEVER_STORED", 0)
    found = dc.Additive()(design, z).require()
    assert stored.notes["rounds"] == found.notes["rounds"] > 1
    assert found.notes["solver"] == "Newton on the dual"
    assert stored.notes["solver"] == "dense factors"
    np.testing.assert_allclose(found.z, stored.z, atol=1e-5)
    np.testing.assert_allclose(found.y, stored.y, atol=1e-4)


def test_without_a_negative_cell_it_is_least_squares():
    design = dc.Design.product({"a": 2, "b": 2}, "a + b")
    z = np.array([5.0, 6.0, 4.0, 8.0, 12.0])
    np.testing.assert_allclose(dc.Additive()(design, z).z, dc.LeastSquares()(design, z).z)


def test_bad_options_are_refused():
    with pytest.raises(ParameterError, match="limit"):
        dc.Additive(limit=2)
