r"""Proofs that no table has given margins: a vector `u` with :math:`Xu \le 0 < z^\top u`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from discreet.arrays import Mask, Real
from discreet.design.base import Design
from discreet.design.incidence import Incidence
from discreet.solve.least_squares.least_squares import LeastSquares
from discreet.solve.likelihood.schedule import LOG_LINEAR
from discreet.solve.likelihood.stored import sweep
from discreet.solve.non_negative.non_negative import NonNegative


def refuted(
    design: Design, members: Incidence, z: Real, used: Mask, possible: Mask, goal: float
) -> Real | None:
    r"""A proof that no table comes within the goal of the margins, where one is found.

    A table :math:`y \ge 0` with :math:`|X^\top y - z| \le g` has
    :math:`z^\top u - g\|u\|_1 \le y^\top Xu \le \max(Xu)_+ \sum_k (z_k + g)` for every `u`. One
    that breaks this is lowered until :math:`Xu \le 0`; under published zeros that costs nothing.

    Args:
      design: The design.
      members: Its published cells.
      z: Published values, zero for cells that are not in use.
      used: Which published cells are in use.
      possible: Inner cells that may be positive.
      goal: Deviation that is not yet a contradiction.
    """
    zero = (used & (z == 0)).astype(np.float64)
    closed = possible & (design.adjoint(zero) > 0)
    open_cells = possible & ~closed
    for u in _candidates(design, members, z, used, open_cells):
        highest = float(design.adjoint(u)[open_cells].max(initial=0.0))
        needed = float(z @ u - goal * np.abs(u).sum())
        if needed > highest * float(np.sum(z + goal, where=used)):
            proof = u - highest * used
            return np.asarray(proof - zero * float(design.adjoint(proof)[closed].max(initial=0.0)))
    return None


def _candidates(
    design: Design, members: Incidence, z: Real, used: Mask, open_cells: Mask
) -> Iterator[Real]:
    r"""Vectors that refute contradicting margins, cheap ones first.

    The residuals of least squares have :math:`Xu = 0 < z^\top u`, those of non-negative least
    squares :math:`Xu \le 0 < z^\top u`.
    """
    yield _drift(members.using(used, np.zeros(len(members.nested), dtype=bool)), z, open_cells)
    accuracy, steps, weights = LOG_LINEAR.proof, LOG_LINEAR.proof_steps, used.astype(np.float64)
    for nearest in (
        LeastSquares(tolerance=accuracy, max_steps=steps),
        NonNegative(tolerance=accuracy, max_steps=steps, variance=open_cells.astype(np.float64)),
    ):
        yield np.where(used, z - nearest(design, z, weights=weights).z, 0.0)


def _drift(groups: Incidence, z: Real, open_cells: Mask) -> Real:
    """What a sweep of proportional fitting adds to the multipliers where margins contradict.

    A published cell that no open cell counts in is a proof by itself.
    """
    members = groups.restricted(np.flatnonzero(open_cells))
    empty = np.zeros(len(z), dtype=bool)
    empty[groups.ordered] = members.sizes()[groups.ordered] == 0
    if (empty & (z > 0)).any():
        return (empty & (z > 0)).astype(np.float64)
    y, drift = np.ones(members.n_inner), np.zeros_like(z)
    for _ in range(LOG_LINEAR.sweeps):
        drift = sweep(members, z, y)
    return drift
