"""Slow and obvious: what tests compare designs and fits with."""

import itertools

import numpy as np


def design_matrix(design):
    """X by its definition: an inner cell counts where each of its codes lies under the cell's."""
    columns = design.published_codes()
    leaves = design.inner_codes()
    X = np.zeros((design.n_inner, design.n_published), dtype=np.int64)
    for i, k in itertools.product(range(design.n_inner), range(design.n_published)):
        X[i, k] = all(
            (code := codes[index[k]]) in axis.total_codes
            or code == axis.leaves[leaf[i]]
            or leaf[i] in axis.node_leaves.get(code, ())
            for axis, (index, codes), leaf in zip(design.axes, columns, leaves, strict=True)
        )
    return X


def minimum_norm(X, z):
    """The least squares solution of X'y = z with the smallest norm."""
    return np.linalg.pinv(X.T.astype(float)) @ z
