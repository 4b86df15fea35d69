"""The preconditioner on values that no table has, against dense matrices."""

import numpy as np
import pytest

import discreet as dc
from discreet.design.fused import null_space
from discreet.design.fused.null_space import NullSpace


def axes():
    tree = dc.Hierarchy.from_dict(
        {"All": {"north": {"n": ["n1", "n2"], "m": ["m1", "m2", "m3"]}, "south": {"s": ["s1"]}}}
    )
    bands = dc.Hierarchy.from_dict({"Any": {"young": ["0", "1", "2"], "old": ["3", "4"]}})
    return [
        dc.design.Axis.from_hierarchies("region", [tree]),
        dc.design.Axis.from_hierarchies("age", [bands]),
        dc.design.Axis.flat("sex", ["f", "m"]),
    ]


DESIGNS = {
    "flat": lambda: dc.Design.product({"a": 3, "b": 4, "c": 5}, "a*b + b*c + a*c"),
    "lower margins": lambda: dc.Design.product({"a": 3, "b": 4, "c": 5}, "a*b + b*c + a + 1"),
    "two hierarchies": lambda: dc.Design.product(axes(), "region*age + region*sex + age*sex"),
    "one level": lambda: dc.Design.product(axes(), "region*sex + region[leaves]*age[leaves]"),
}


def precondition(design, ridge, weights):
    """Preconditioner and Hessian with all cells positive, as dense matrices."""
    X = design.matrix().toarray()
    variance = 1.0 / np.asarray(weights)[design.block_of_cell()]
    hessian = ridge * np.diag(variance) + X.T @ X
    null, inverse = NullSpace(design.crossing, tuple(weights)), 1.0 / np.diag(hessian)
    columns = [null.precondition(e, inverse, ridge) for e in np.eye(design.n_published)]
    return np.array(columns).T, hessian


@pytest.mark.parametrize("most", [0, 500_000])
@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("name", DESIGNS)
def test_it_is_symmetric_positive_and_makes_a_small_ridge_harmless(name, uneven, most, monkeypatch):
    monkeypatch.setattr(null_space, "_MOST_FACTORED", most)
    design = DESIGNS[name]()
    assert NullSpace.is_known(design)
    n = len(design.blocks)
    weights = np.linspace(0.5, 2.0, n) if uneven else np.ones(n)
    M, hessian = precondition(design, 1e-6, weights)
    np.testing.assert_allclose(M, M.T, rtol=1e-8, atol=1e-8 * np.abs(M).max())
    root = np.linalg.cholesky(hessian)
    found = np.linalg.eigvalsh(root.T @ M @ root)
    assert found.min() > 0
    assert found.max() / found.min() < 300
    plain = np.linalg.eigvalsh(root.T @ np.diag(1.0 / np.diag(hessian)) @ root)
    assert plain.max() / plain.min() > 1e5


@pytest.mark.parametrize("name", ["two hierarchies", "one level"])
def test_a_factor_answers_exactly_to_what_no_table_has(name):
    design, rng = DESIGNS[name](), np.random.default_rng(3)
    weights = rng.uniform(0.1, 10, len(design.blocks))
    z, w = rng.standard_normal(design.n_published), weights[design.block_of_cell()]
    X = design.matrix().toarray().astype(float)
    y = np.linalg.pinv(np.sqrt(w)[:, None] * X.T, rcond=1e-10) @ (np.sqrt(w) * z)
    found = NullSpace(design.crossing, tuple(weights))._on_null_space(z)
    np.testing.assert_allclose(found, w * (z - X.T @ y), atol=1e-7)


def test_designs_without_their_finest_margins_are_not_known():
    assert not NullSpace.is_known(dc.Design.product(axes(), [("region[1]", "sex"), ("age",)]))
