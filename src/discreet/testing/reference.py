"""Slow and obvious versions of what the package does fast; never optimised."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from discreet.arrays import Array, Real, Whole
from discreet.design.structured import StructuredDesign


def design_matrix(design: StructuredDesign) -> Whole:
    """X by its definition: an inner cell counts where each of its codes lies under the cell's."""
    columns = design.published_codes()
    leaves = design.inner_codes()
    X = np.zeros((design.n_inner, design.n_published), dtype=np.int64)
    for i, k in itertools.product(range(design.n_inner), range(design.n_published)):
        X[i, k] = all(
            _lies_under(axis, codes[index[k]], leaf[i])
            for axis, (index, codes), leaf in zip(design.axes, columns, leaves, strict=True)
        )
    return X


def _lies_under(axis: Any, code: str, leaf: int) -> bool:
    if code in axis.total_codes:
        return True
    return code == axis.leaves[leaf] or leaf in axis.node_leaves.get(code, ())


def minimum_norm(X: Array, z: Array) -> Real:
    """The least squares solution of X'y = z with the smallest norm."""
    solution: Real = np.linalg.pinv(X.T.astype(float)) @ z
    return solution
