"""Slow, obvious checks of suppression patterns by dense projections."""

import numpy as np
from hypothesis import strategies as st

import discreet as dc
from discreet import Design, Table
from tests.strategies import designs

SMALL = 1e-8
RULES = st.builds(dc.rules.Threshold, st.integers(1, 3), st.booleans())


def square(counts):
    counts = np.array(counts)
    design = Design.product({"r": counts.shape[0], "c": counts.shape[1]}, "r*c")
    return Table.from_inner(design, counts.ravel())


@st.composite
def tables(draw):
    design = draw(designs())
    counts = st.sampled_from([0, 0, 1, 1, 2, 3, 4, 5, 8, 20])
    y = draw(st.lists(counts, min_size=design.n_inner, max_size=design.n_inner))
    return Table.from_inner(design, np.array(y))


def states(pattern):
    """The state of each cell by its codes, whatever the order of the axes."""
    cells = (frozenset(cell.items()) for cell in pattern.cells(pattern.state >= 0))
    return dict(zip(cells, pattern.state.tolist(), strict=True))


def remainder(columns, targets):
    """What is left of dense columns once their projection on others is taken out."""
    if not columns.size:
        return targets.astype(float)
    u, s, _ = np.linalg.svd(columns.astype(float), full_matrices=False)
    u = u[:, s > SMALL * s.max(initial=1.0)]
    return targets - u @ (u.T @ targets)


def rows_of(pattern, zeros_are_public):
    """The dense matrix, on rows that are not known to be empty."""
    X = pattern.design.matrix().toarray()
    return X[X[:, pattern.z == 0].sum(axis=1) == 0] if zeros_are_public else X


def disclosed(pattern, zeros_are_public=False):
    """Positions of the primaries that follow from the published cells."""
    X = rows_of(pattern, zeros_are_public)
    primary = np.flatnonzero(pattern.primary)
    left = remainder(X[:, ~pattern.suppressed], X[:, primary])
    return primary[(left**2).sum(axis=0) < SMALL].tolist()


def told(pattern):
    """Pairs of a lone inner cell and a primary of others that its contributor can compute."""
    X = rows_of(pattern, zeros_are_public=False)
    primary, lone = np.flatnonzero(pattern.primary), np.flatnonzero(pattern.y == 1)
    left = remainder(X[:, ~pattern.suppressed], X[:, primary])
    known = remainder(X[:, ~pattern.suppressed], np.eye(len(X))[:, lone])
    pairs = []
    for i, mine in zip(lone, known.T, strict=True):
        is_own = (X[i, primary] == 1) & (pattern.z[primary] == 1)
        share = left.T @ mine / max(mine @ mine, SMALL)
        missing = ((left - np.outer(mine, share)) ** 2).sum(axis=0)
        pairs += [(int(i), int(k)) for k in primary[(missing < SMALL) & ~is_own]]
    return pairs
