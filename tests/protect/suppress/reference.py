"""Slow, obvious checks of suppression patterns: ranks of dense matrices."""

import numpy as np


def rank(matrix):
    """Rank of a small matrix of whole numbers."""
    return int(np.linalg.matrix_rank(matrix)) if matrix.size else 0


def follows(columns, target):
    """Whether a column is a linear combination of others."""
    return rank(np.column_stack([columns, target])) == rank(columns)


def shown_columns(pattern, zeros_are_public=False):
    """Dense columns of the published cells, on rows that are not known to be empty."""
    X = pattern.design.matrix().toarray()
    if zeros_are_public:
        X = X[X[:, pattern.z == 0].sum(axis=1) == 0]
    return X, X[:, ~pattern.suppressed]


def disclosed(pattern, zeros_are_public=False):
    """Positions of the primaries that follow from the published cells."""
    X, shown = shown_columns(pattern, zeros_are_public)
    return [int(k) for k in np.flatnonzero(pattern.primary) if follows(shown, X[:, k])]


def told(pattern):
    """Pairs of a lone inner cell and a primary of others that its contributor can compute."""
    X, shown = shown_columns(pattern)
    pairs = []
    for i in np.flatnonzero(pattern.y == 1):
        mine = np.column_stack([shown, np.eye(len(pattern.y))[i]])
        for k in np.flatnonzero(pattern.primary):
            is_own = X[i, k] and pattern.z[k] == 1
            if not is_own and follows(mine, X[:, k]):
                pairs.append((int(i), int(k)))
    return pairs
