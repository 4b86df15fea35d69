r"""Transition matrices that keep the expected frequencies of the states they act on.

For states with frequencies `t` and any transition matrix `P`,

.. math:: Q_{ks} = \frac{t_s P_{sk}}{\sum_r t_r P_{rk}},\qquad R = PQ,\qquad
          R^* = \alpha R + (1 - \alpha) I

satisfies :math:`t R^* = t`, and the expected flows :math:`\mathrm{diag}(t) R^*` are symmetric.
Independent draws keep frequencies in expectation. `controlled_flows` and `allocate` keep them in
the table at hand: expected flows are rounded to whole numbers of cells with the right sums, and
cells are then picked for them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.arrays import Real, Whole
from discreet.errors import (
    DataError,
    DesignError,
    InfeasibleError,
    NotConvergedError,
    ParameterError,
    within,
)
from discreet.noise.lookup import whole_counts
from discreet.noise.matrix import TransitionMatrix

_MAX_STATES = 1_000  # the matrix is dense: a million probabilities
# beyond it an inverse in float64 keeps fewer than four digits
_SINGULAR = 1e12
# expected flows are products of floats; what is this near to whole counts as whole
_WHOLE = 1e-7
# Counts that are states of their own without small cells, and residues of those that are larger: a
# census table has few cells at each large count, and alone at its count a cell would never move.
SINGLE, RESIDUES = 100, 15
# how far two stages of one step each lead
_REACH = 2
# of the probability of leaving the joint state, down to a millionth of it
_HALVINGS = 20


def two_stage(P: npt.ArrayLike, t: npt.ArrayLike, alpha: float = 1.0) -> Real:
    """The invariant matrix `R*` of `P` for the frequencies `t`.

    States that do not occur are left alone: their rows are those of the identity.
    Cost: one product of square matrices.

    See Willenborg & De Waal (2001), Shlomo & Young (2008).
    """
    P, t = np.asarray(P, dtype=float), np.asarray(t, dtype=float)
    if P.shape != (len(t), len(t)):
        raise DesignError(f"{len(t)} frequencies need a square matrix, got shape {P.shape}.")
    within("alpha", alpha, 1)
    if np.any(t < 0) or not np.all(np.isfinite(t)):
        raise DataError("frequencies must be finite and at least 0.")
    if np.any(P < 0) or np.any(np.abs(P.sum(axis=1) - 1) > 1e-8):
        raise ParameterError("P must be non-negative with rows that sum to one.")
    reached = t @ P
    share = np.divide(1.0, reached, out=np.zeros_like(reached), where=reached > 0)
    Q = (t[:, None] * P * share).T
    R = np.where(t[:, None] > 0, P @ Q, np.eye(len(t)))
    return alpha * R + (1 - alpha) * np.eye(len(t))


def tridiagonal(size: int, q: float, first: float | None = None) -> Real:
    """A starting matrix that moves to each neighbour with probability `q`.

    The two end states have one neighbour; the first leaves with probability `first`, or `q`.
    """
    if size < 2 or not 0 < q <= 0.5 or not 0 <= (first or 0) <= 1:
        raise ParameterError(f"need two states and q in (0, 0.5], got size={size}, q={q}.")
    P = np.diag(np.full(size - 1, q), 1) + np.diag(np.full(size - 1, q), -1)
    P[0, 1] = q if first is None else first
    return P + np.diag(1 - P.sum(axis=1))


def invariant_matrix(
    matrix: TransitionMatrix, counts: npt.ArrayLike, alpha: float = 1.0, *, zeros: bool = False
) -> TransitionMatrix:
    """`matrix` made invariant for the counts of a table.

    States are the counts 0 to the largest at hand; moves beyond it are replaced by no change.
    Counts that are larger still stay as they are.

    Promise: the expected number of cells at every count is unchanged. The matrix depends on the
    table, so the same cell may move otherwise in another table.

    Args:
      matrix: The matrix to start from.
      counts: The counts of the table.
      alpha: Strength; a share `1 - alpha` of the identity is mixed in.
      zeros: Whether zero is a state like the others. When not, zeros stay and no other count
        becomes zero; when it is, some zeros become positive to make up for new ones.
    """
    n = whole_counts(counts).ravel()
    if not n.size or n.min() < 0:
        raise DataError("an invariant matrix needs counts, all of them at least 0.")
    size = int(n.max()) + 1
    if size > _MAX_STATES:
        raise ParameterError(
            f"the table has counts up to {size - 1}, more than the {_MAX_STATES} states that an "
            "invariant matrix is made for. Use invariant_pram, which works on residues."
        )
    P = matrix.dense(size)
    P[np.diag_indices(size)] += 1 - P.sum(axis=1)  # what would leave the table stays where it is
    R = np.zeros((size + 1, size + 1))
    t = np.bincount(n)
    t[0] *= zeros
    R[:size, :size] = two_stage(P, t, alpha)
    # the last row serves all larger counts, which stay
    R[size, size] = 1.0
    parameters = {**matrix.parameters, "alpha": alpha, "zeros": zeros}
    return TransitionMatrix.from_targets(f"invariant {matrix.name}", R, parameters=parameters)


def moment_estimate(t_star: npt.ArrayLike, M: npt.ArrayLike) -> Real:
    r"""The unbiased estimate :math:`\hat t = t^* M^{-1}` of the frequencies before perturbation.

    Args:
      t_star: Frequencies of the states after perturbation.
      M: The transition matrix that was used, on the same states.

    See Shlomo, Krenzke & Li (2019), section 2.2.
    """
    M, t = np.asarray(M, dtype=float), np.asarray(t_star, dtype=float)
    if M.shape != (len(t), len(t)):
        raise DesignError(f"{len(t)} frequencies need a square matrix, got shape {M.shape}.")
    condition = float(np.linalg.cond(M))
    if not condition < _SINGULAR:
        raise ParameterError(
            f"the matrix cannot be inverted (condition number {condition:.2g}): two states have "
            "the same law, so their frequencies cannot be told apart. Merge such states."
        )
    return np.linalg.solve(M.T, t)


def no_small_cells(
    frequencies: npt.ArrayLike, q: float = 0.15, alpha: float = 0.40, first: float | None = None
) -> TransitionMatrix:
    r"""An almost invariant matrix that publishes no 1 and no 2.

    With frequencies :math:`V_1, V_2, \dots` of the counts 1, 2, … and expected flows
    :math:`o_j` from the joint state {1, 2, 3} to `j ≥ 4`, all of them charged to the threes:
    :math:`n_{33} = (1-\alpha)V_3`, :math:`n_{30} = \alpha V_3 - \sum_j o_j`, and with
    :math:`\beta = 3 n_{30}/(V_1+V_2)` a one becomes 3 with probability :math:`(1+\beta)/3`, a two
    with :math:`(2+\beta)/3`, otherwise 0.

    Promise: zeros stay; the expected number of cells at every count of four or more, the expected
    number of cells that are positive and below four before (zero or three after), and their
    expected sum are unchanged. Counts beyond the last frequency stay as they are.

    Args:
      frequencies: Number of cells with count 1, 2, 3, …
      q: Probability of a step to each neighbour in the starting matrix.
      alpha: Strength of the perturbation.
      first: Probability of leaving the joint state; when absent `q / 2`, halved until the flows
        can be shared out.

    Raises:
      InfeasibleError: The flows out of the joint state cannot be charged to the threes.

    See Giessing & Höhne (2011), Tables 2 and 3.
    """
    V = np.asarray(frequencies, dtype=float)
    if V.ndim != 1 or len(V) < 4 or np.any(V < 0) or not np.all(np.isfinite(V)):
        raise DataError("frequencies of the counts 1 to at least 4 are needed, none negative.")
    flows = _joint_flows(V, q, alpha, first)
    size = len(V)
    P = np.zeros((size + 2, size + 2))
    P[0, 0] = P[size + 1, size + 1] = 1.0
    P[1:4] = _split(V, alpha, flows[0, 1:], size + 2)
    for i in range(4, size + 1):
        P[i, 3 : size + 1] = flows[i - 3] / V[i - 1] if V[i - 1] else np.eye(size - 2)[i - 3]
    parameters = {"q": q, "alpha": alpha}
    return TransitionMatrix.from_targets(
        "invariant matrix without small cells", P, blocked=2, parameters=parameters
    )


def without_small_cells(
    counts: npt.ArrayLike, q: float = 0.15, alpha: float = 0.40
) -> TransitionMatrix:
    """`no_small_cells` for the counts of a table, however large they are.

    Counts below 100 change as by `no_small_cells`; from there on they change with their residue of
    15, by the two-stage construction on residues, and never leave their block of 15 counts.

    Promise: zeros stay; values 1 and 2 do not occur; the expected number of cells at every count
    from 4 to 99, and among larger counts at every residue, is unchanged, and so are the expected
    number and sum of the cells that were 1, 2 or 3. No count moves by more than 3.
    Cost: two products of small matrices, whatever the counts.

    Raises:
      InfeasibleError: The flows out of counts below four cannot be charged to the threes.
    """
    n = whole_counts(counts).ravel()
    if n.size and n.min() < 0:
        raise DataError("an invariant matrix needs counts, all of them at least 0.")
    small = np.bincount(n[n < SINGLE], minlength=SINGLE)[1:]
    first = no_small_cells(small, q, alpha) if small.any() else None
    residues = np.bincount((n[n >= SINGLE] - SINGLE) % RESIDUES, minlength=RESIDUES)
    large = two_stage(tridiagonal(RESIDUES, q), residues, alpha)
    reach = _REACH if first is None else max(_REACH, first.max_move)
    law = np.zeros((SINGLE + RESIDUES, 2 * reach + 1))
    law[:SINGLE, reach] = 1.0
    if first is not None:
        inside = slice(reach - first.max_move, reach + first.max_move + 1)
        law[:SINGLE] = 0.0
        law[:SINGLE, inside] = first.law[first.row_of(np.arange(SINGLE))]
    for r in range(RESIDUES):
        for v in range(-_REACH, _REACH + 1):
            if 0 <= r + v < RESIDUES:
                law[SINGLE + r, reach + v] = large[r, r + v]
    parameters = {"q": q, "alpha": alpha, "small_cells": False}
    name = "invariant matrix without small cells"
    return TransitionMatrix.from_law(
        name, law, period=RESIDUES, blocked=2 if first is not None else 0, parameters=parameters
    )


def _joint_flows(V: Real, q: float, alpha: float, first: float | None) -> Real:
    """Expected flows between the states {1, 2, 3}, 4, 5, … that can be shared out."""
    t = np.concatenate([[V[:3].sum()], V[3:]])
    tries = [q / 2 ** (k + 1) for k in range(_HALVINGS)] if first is None else [first]
    for leave in tries:
        flows = t[:, None] * two_stage(tridiagonal(len(t), q, leave), t, alpha)
        spare = alpha * V[2] - flows[0, 1:].sum()
        if spare < 0:  # more leave than there are threes to bear it
            continue
        if 3 * spare > V[0] + V[1]:
            raise InfeasibleError(
                f"the threes that must become zero ({spare:.4g} cells) cannot be balanced by "
                f"{V[0] + V[1]:g} ones and twos. Lower alpha."
            )
        return flows
    raise InfeasibleError(
        f"the flows out of counts below four exceed alpha times the {V[2]:g} threes that must "
        f"bear them. Lower q (now {q:g}){'' if first is None else ' or first'}."
    )


def _split(V: Real, alpha: float, out: Real, size: int) -> Real:
    """The rows of the counts 1, 2 and 3."""
    rows = np.zeros((3, size))
    to_zero = alpha * V[2] - out.sum()
    small = V[0] + V[1]
    bias = 3 * to_zero / small if small else 0.0
    for k in (0, 1):
        rows[k, 3] = (k + 1 + bias) / 3
        rows[k, 0] = 1 - rows[k, 3]
    if V[2]:
        rows[2, 4 : 4 + len(out)] = out / V[2]
        rows[2, 0], rows[2, 3] = to_zero / V[2], 1 - alpha
    else:
        rows[2, 3] = 1.0
    return rows


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


def round_transport(x: npt.ArrayLike, *, row_sums: npt.ArrayLike) -> Whole:
    r"""The nearest controlled rounding of a non-negative matrix.

    Promise: every entry and every column sum is rounded down or up (so it moves by less than
    one), row sums are exact; among all such matrices the sum of :math:`|n - x|` is least.
    Cost: one sparse linear program in the fractional entries.

    Args:
      x: A non-negative matrix.
      row_sums: Whole numbers, the row sums of `x`.
    """
    real, rows = np.asarray(x, dtype=float), np.asarray(row_sums)
    _check_transport(real, rows)
    base = np.floor(real + _WHOLE)
    fraction = np.where(real - base > _WHOLE, real - base, 0.0)
    i, j = np.nonzero(fraction)
    up = _choose(fraction[i, j], i, j, rows - base.sum(axis=1), real.sum(axis=0) - base.sum(axis=0))
    result = base.astype(np.int64)
    result[i, j] += up
    moved = np.abs(result.sum(axis=0) - real.sum(axis=0))
    if not np.array_equal(result.sum(axis=1), rows) or np.any(moved >= 1):
        raise NotConvergedError("the linear program did not return whole numbers.")
    return result


def _choose(fraction: Real, i: Whole, j: Whole, rows: Real, columns: Real) -> Whole:
    """Which fractional entries are rounded up, by linear programming."""
    import scipy.sparse as sp
    from scipy.optimize import Bounds, LinearConstraint, milp

    if not len(fraction):
        return np.zeros(0, dtype=np.int64)
    ones, place = np.ones(len(fraction)), np.arange(len(fraction))
    per_row = sp.csr_array((ones, (i, place)), shape=(len(rows), len(place)))
    per_column = sp.csr_array((ones, (j, place)), shape=(len(columns), len(place)))
    low, high = np.floor(columns + _WHOLE), np.ceil(columns - _WHOLE)
    sums = LinearConstraint(
        sp.vstack([per_row, per_column]), np.concatenate([rows, low]), np.concatenate([rows, high])
    )
    # rows and columns of a bipartite graph: the matrix is totally unimodular, so the linear program
    # has whole solutions at its corners, and no integrality needs to be asked for
    found = milp(1 - 2 * fraction, constraints=sums, bounds=Bounds(0, 1))
    if found.x is None:
        raise NotConvergedError(f"the transport problem was not solved: {found.message}")
    return np.rint(np.asarray(found.x)).astype(np.int64)


def _check_transport(x: Real, rows: npt.NDArray[np.generic]) -> None:
    if x.ndim != 2 or rows.shape != (len(x),):
        raise DesignError(f"a matrix of shape {x.shape} needs one sum per row, got {rows.shape}.")
    if rows.dtype.kind not in "iu":
        raise DataError(f"row sums must be whole numbers of an integer type, got {rows.dtype}.")
    if not np.all(np.isfinite(x)) or np.any(x < 0):
        raise DataError("the matrix must be finite and non-negative.")
    wrong = np.abs(x.sum(axis=1) - rows.astype(float))
    if np.any(wrong > 1e-6 * np.maximum(1.0, rows.astype(float))):
        worst = int(np.argmax(wrong))
        raise DesignError(
            f"row {worst} of the matrix sums to {x[worst].sum():g}, not to {rows[worst]}."
        )
