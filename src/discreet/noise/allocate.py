"""Frequencies kept in the table at hand, not only on average.

Independent draws from an invariant matrix keep frequencies in expectation. Here the expected flows
are first rounded to whole numbers of cells with the right sums, and cells are then picked for them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.arrays import Whole
from discreet.errors import DataError, DesignError, ParameterError
from discreet.noise.invariant import tridiagonal, two_stage
from discreet.noise.lookup import whole_counts
from discreet.noise.transport import round_transport


def controlled_flows(R: npt.ArrayLike, t: npt.ArrayLike) -> Whole:
    """Whole numbers of cells that go from state to state, near `diag(t) R`.

    Promise: row sums are `t`; every flow and every column sum is its expected value rounded down
    or up, so with an invariant `R` the frequencies stay exactly as they are.
    """
    frequencies = whole_counts(t)
    expected = frequencies[:, None] * np.asarray(R, dtype=float)
    return round_transport(expected, row_sums=frequencies)


def allocate(
    states: npt.ArrayLike,
    flows: npt.ArrayLike,
    *,
    keys: npt.ArrayLike | None = None,
    rng: np.random.Generator | None = None,
) -> Whole:
    """The new state of every cell, so that exactly `flows[i, j]` cells go from `i` to `j`.

    Args:
      states: State of every cell.
      flows: Whole numbers whose row sums are the frequencies of the states.
      keys: Cell keys; within a state, cells take their targets in the order of their keys.
      rng: A generator, instead of keys.
    """
    old, flow = whole_counts(states).ravel(), whole_counts(flows)
    if (keys is None) == (rng is None):
        raise ParameterError("give either keys or rng, to say which cells of a state move.")
    if not np.array_equal(np.bincount(old, minlength=len(flow)), flow.sum(axis=1)):
        raise DesignError("row sums of the flows must be the frequencies of the states.")
    order_by = np.asarray(keys).ravel() if rng is None else rng.permutation(old.size)
    if order_by.shape != old.shape:
        raise DataError(f"there are {old.size} cells but {order_by.size} keys.")
    targets = np.repeat(np.tile(np.arange(flow.shape[1]), len(flow)), flow.ravel())
    new = np.empty_like(old)
    new[np.lexsort((order_by, old))] = targets
    return new.reshape(np.shape(states))


def blurred_deviations(
    deviations: npt.ArrayLike,
    *,
    q: float = 0.15,
    alpha: float = 0.4,
    keys: npt.ArrayLike | None = None,
    rng: np.random.Generator | None = None,
) -> Whole:
    """Perturbed perturbations: a measure of cell quality that can be published as `|·|`.

    The deviations of a protected table go through an invariant matrix on those that occur, in
    increasing order; how often each deviation occurs is kept exactly.

    Args:
      deviations: Whole deviations of the cells.
      q: Probability of a move to each neighbour in the starting matrix.
      alpha: Strength.
      keys: Numbers that decide which cells of a state move.
      rng: A generator, instead of keys.

    See Giessing & Höhne (2011), section 7.
    """
    d = whole_counts(deviations)
    occurring, state = np.unique(d, return_inverse=True)
    if len(occurring) < 2:
        return d.copy()
    t = np.bincount(state.ravel())
    R = two_stage(tridiagonal(len(t), q), t, alpha)
    new = allocate(state.ravel(), controlled_flows(R, t), keys=keys, rng=rng)
    return np.asarray(occurring[new].reshape(d.shape))
