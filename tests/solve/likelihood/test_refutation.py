"""Proofs that no table has given margins, each way to one on its own."""

import numpy as np
import pytest

import discreet as dc
from discreet.design import Incidence
from discreet.solve.likelihood import stored as refutation
from tests.solve.slow import HARD, counts, dense, has_table

WAYS = ("drift", "least squares", "non-negative")


def proof_of(design, z, possible, monkeypatch=None, only=None):
    used = np.ones(design.n_published, dtype=bool)
    if only is not None:
        every = refutation._candidates
        monkeypatch.setattr(refutation, "_candidates", lambda *given: [[*every(*given)][only]])
    return refutation.find_refutation(design, Incidence.of(design), z, used, possible, 1e-6)


def check(design, z, u, possible):
    assert (dense(design) @ u)[possible].max() <= 1e-9 * np.abs(u).max()
    assert z @ u > 0


@pytest.mark.parametrize("only", range(3), ids=WAYS)
def test_sums_that_contradict_each_other_are_refuted_in_every_way(monkeypatch, only):
    design, possible = dc.Design.product({"a": 3, "b": 3}, "a + b"), np.ones(9, dtype=bool)
    z = np.array([5.0, 0, 3, 4, 2, 1, 6])
    check(design, z, proof_of(design, z, possible, monkeypatch, only), possible)


@pytest.mark.parametrize("only", [0, 2], ids=["drift", "non-negative"])
def test_margins_out_of_reach_are_refuted(monkeypatch, only):
    design = dc.Design.product({"a": 3, "b": 3}, [("a",), ("b",)])
    possible = np.arange(9) > 2
    z = np.array([1.0, 1, 1, 1, 1, 1])
    check(design, z, proof_of(design, z, possible, monkeypatch, only), possible)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", HARD)
def test_there_is_a_proof_where_there_is_no_table_and_none_where_there_is_one(name, seed):
    design, rng = HARD[name](), np.random.default_rng(seed)
    z = design.aggregate(counts(design, seed)).astype(float)
    possible = np.ones(design.n_inner, dtype=bool)
    assert proof_of(design, z, possible) is None
    z = np.maximum(z + rng.integers(-1, 2, len(z)), 0)
    if not has_table(dense(design), z, np.ones(len(z), dtype=bool)):
        check(design, z, proof_of(design, z, possible), possible)
