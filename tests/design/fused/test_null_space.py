"""The preconditioner on values that no table has, against dense matrices."""

import numpy as np
import pytest

import discreet as dc
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


def crossed():
    """Two groupings of one variable, neither within the other."""
    by = [{"T": {"p": ["1", "2"], "q": ["3", "4"]}}, {"T": {"r": ["1", "3"], "s": ["2", "4"]}}]
    return dc.design.Axis.from_hierarchies("x", [dc.Hierarchy.from_dict(tree) for tree in by])


DESIGNS = {
    "flat": lambda: dc.Design.product({"a": 3, "b": 4, "c": 5}, "a*b + b*c + a*c"),
    "lower margins": lambda: dc.Design.product({"a": 3, "b": 4, "c": 5}, "a*b + b*c + a + 1"),
    "two hierarchies": lambda: dc.Design.product(axes(), "region*age + region*sex + age*sex"),
    "crossed levels": lambda: dc.Design.product([crossed(), *axes()[1:]], "x*age + x*sex"),
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


@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("name", DESIGNS)
def test_it_is_symmetric_positive_and_makes_a_small_ridge_harmless(name, uneven):
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


def answer(design, weights, z):
    """What a ridge with these weights answers to values that no table has."""
    w, X = np.asarray(weights)[design.block_of_cell()], design.matrix().toarray().astype(float)
    y = np.linalg.pinv(np.sqrt(w)[:, None] * X.T, rcond=1e-10) @ (np.sqrt(w) * z)
    return w * (z - X.T @ y)


def null_answer(null, z):
    return null._on_null_space(z, null._contradictions.part(z))


def even_tree(name):
    groups = {f"{name}{i}": [f"{name}{i}{j}" for j in range(2)] for i in range(3)}
    return dc.design.Axis.from_hierarchies(name, [dc.Hierarchy.from_dict({f"all {name}": groups})])


def test_groups_of_one_size_are_answered_to_exactly():
    axes = [even_tree("a"), even_tree("b"), dc.design.Axis.flat("c", ["1", "2", "3"])]
    design, rng = dc.Design.product(axes, "a*b + b*c + a*c"), np.random.default_rng(3)
    weights = rng.uniform(0.1, 10, len(design.blocks))
    z = rng.standard_normal(design.n_published)
    found = null_answer(NullSpace(design.crossing, tuple(weights)), z)
    np.testing.assert_allclose(found, answer(design, weights, z), atol=1e-10)


@pytest.mark.parametrize("name", ["two hierarchies", "one level"])
def test_groups_of_unequal_size_are_answered_to_but_for_a_fifth(name):
    design, rng = DESIGNS[name](), np.random.default_rng(3)
    weights = rng.uniform(0.1, 10, len(design.blocks))
    null, w = NullSpace(design.crossing, tuple(weights)), weights[design.block_of_cell()]
    assert null._uneven > 1.4
    for _ in range(5):
        z = rng.standard_normal(design.n_published)
        wanted, found = answer(design, weights, z), null_answer(null, z)
        np.testing.assert_allclose(design.adjoint(found), 0.0, atol=1e-10)
        size, left = (float(v @ (v / w)) ** 0.5 for v in (wanted, found - wanted))
        assert left <= 0.2 * size


def test_designs_without_their_finest_margins_are_not_known():
    assert not NullSpace.is_known(dc.Design.product(axes(), [("region[1]", "sex"), ("age",)]))
