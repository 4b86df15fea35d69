"""The part of published values that no table has."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.design.fused.null_space import Contradictions

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


@pytest.mark.parametrize(("level", "expected"), [("region[1]", False), ("region[leaves]", True)])
def test_blocks_above_single_categories_are_left_out(level, expected):
    tree = dc.Hierarchy.from_dict({"All": {"north": ["n1", "n2"], "south": ["s1"]}})
    axis = dc.design.Axis.from_hierarchies("region", [tree])
    design = dc.Design.product(
        [axis, dc.design.Axis.flat("sex", ["f", "m"])], margins=[(level, "sex")]
    )
    assert (0 in Contradictions.flat_blocks(design)) is expected
