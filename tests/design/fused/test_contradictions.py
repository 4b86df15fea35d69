"""The part of published values that no table has."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.design.fused.contradictions import Contradictions

SIZES = {"a": 2, "b": 3, "c": 4, "d": 2}
SUBSETS = [s for r in range(4) for s in itertools.combinations(SIZES, r)]


@settings(max_examples=60, deadline=None)
@given(
    margins=st.lists(st.sampled_from(SUBSETS), min_size=1, max_size=6, unique=True),
    seed=st.integers(0, 2**20),
)
def test_it_is_the_orthogonal_projection_onto_the_null_space(margins, seed):
    design = dc.Design.product(SIZES, margins=margins)
    z = np.random.default_rng(seed).standard_normal(design.n_published)
    X = design.matrix().toarray().astype(float)
    projector = np.eye(design.n_published) - np.linalg.pinv(X, rcond=1e-10) @ X
    np.testing.assert_allclose(Contradictions(design).part(z), projector @ z, atol=1e-10)


def test_with_weights_it_is_orthogonal_in_their_metric():
    design = dc.Design.product(SIZES, margins=[*itertools.combinations(SIZES, 2), ("a",)])
    rng = np.random.default_rng(1)
    weights = tuple(rng.uniform(0.1, 100, len(design.blocks)))
    z, w = rng.standard_normal(design.n_published), np.array(weights)[design.block_of_cell()]
    X = design.matrix().toarray().astype(float)
    y = np.linalg.pinv(np.sqrt(w)[:, None] * X.T, rcond=1e-10) @ (np.sqrt(w) * z)
    np.testing.assert_allclose(Contradictions(design, weights).part(z), z - X.T @ y, atol=1e-9)


def test_margins_of_a_table_do_not_contradict_each_other():
    design = dc.Design.product(SIZES, margins=list(itertools.combinations(SIZES, 2)))
    z = design.aggregate(np.arange(design.n_inner, dtype=float))
    assert np.abs(Contradictions(design).part(z)).max() < 1e-10


def tree(name, sizes):
    """Groups of groups; parts of these sizes below each other."""

    def below(path, left):
        if len(left) == 1:
            return [f"{path}.{i}" for i in range(left[0])]
        return {f"{path}.{i}": below(f"{path}.{i}", left[1:]) for i in range(left[0])}

    return dc.design.Axis.from_hierarchies(
        name, [dc.Hierarchy.from_dict({name: below(name, sizes)})]
    )


def uneven():
    groups = {"All": {"n": {"nn": ["1", "2", "3"], "ns": ["4"]}, "s": {"ss": ["5", "6"]}}}
    return dc.design.Axis.from_hierarchies("u", [dc.Hierarchy.from_dict(groups)])


LEVELS = {
    "alike": lambda: dc.Design.product([tree("a", (2, 3)), tree("b", (2, 2, 2))], "a*b"),
    "three variables": lambda: dc.Design.product(
        [tree("a", (2, 2)), uneven(), dc.design.Axis.flat("c", ["1", "2"])], "a*u + u*c + a*c"
    ),
    "all of three": lambda: dc.Design.product(
        [tree("a", (2, 2)), uneven(), dc.design.Axis.flat("c", ["1", "2"])], "a*u*c"
    ),
    "no categories": lambda: dc.Design.product([uneven(), tree("a", (2, 2))], "u[1]*a + u"),
}


@pytest.mark.parametrize("name", LEVELS)
def test_levels_are_projected_in_a_metric_near_by(name):
    design, rng = LEVELS[name](), np.random.default_rng(2)
    weights = tuple(rng.uniform(0.1, 10, len(design.blocks)))
    found, z = Contradictions(design, weights), rng.standard_normal(design.n_published)
    X, root = design.matrix().toarray().astype(float), np.sqrt(found.metric)
    y = np.linalg.pinv(root[:, None] * X.T, rcond=1e-10) @ (root * z)
    np.testing.assert_allclose(found.part(z), z - X.T @ y, atol=1e-10)
    ratio = found.metric / np.asarray(weights)[design.block_of_cell()]
    assert ratio.max() < (1.01 if name == "alike" else 3.0)


def test_blocks_of_levels_that_cross_each_other_are_left_out():
    by = [{"T": {"p": ["1", "2"], "q": ["3", "4"]}}, {"T": {"r": ["1", "3"], "s": ["2", "4"]}}]
    axis = dc.design.Axis.from_hierarchies("x", [dc.Hierarchy.from_dict(groups) for groups in by])
    sex = dc.design.Axis.flat("sex", ["f", "m"])
    design = dc.Design.product([axis, sex], [("x", "sex"), ("sex",)])
    found, flat = Contradictions(design), Contradictions.flat_blocks(design)
    assert not found.is_nested
    assert set(design.block_of_cell()[found.metric > 0]) == flat
    assert len(flat) < len(design.blocks)
    z = design.aggregate(np.arange(design.n_inner, dtype=float))
    assert np.abs(found.part(z)).max() < 1e-10
