r"""What the equations alone disclose, found in three independent ways that must agree.

A hidden sum :math:`t^\top y` follows from published ones exactly when `t` is a linear combination
of their columns. Then

- random decimals that satisfy all published equations leave the sum as it is, twice;
- its leverage is one: exact elimination in whole numbers brings `t` to nothing;
- no solution of the homogeneous equations changes the sum: linear programs without signs find none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.arrays import Mask, Real
from discreet.errors import DiscreetError
from discreet.solve.linear.elimination import find_spanned
from discreet.solve.linear.program import Program
from discreet.solve.linear.unknowns import Unknowns, connected_parts, free_part

UNMOVED = 1e-8
"""Random decimals of unit variance that move a cell by less than this leave it as it is."""
_UNMOVED_BY_PROGRAM = 1e-6
_STEPS = 300  # of the simplex method before the targets that have moved are left out


class DisagreementError(DiscreetError):
    """Ways of finding what is disclosed that must agree did not."""


def disclosed_by_equations(system: Unknowns, targets: Any, *, rng: np.random.Generator) -> Mask:
    """Which targets follow from the published cells by linear algebra.

    Args:
      system: What the published cells leave open, without signs.
      targets: Inner cells × targets, sparse.
      rng: Generator of the decimals and of the programs' objectives.
    """
    open_part = system.restrict(targets)
    found = {
        "random decimals": by_decimals(system, open_part, rng),
        "leverage": by_leverage(system, open_part),
        "linear programs": by_programs(system, open_part, rng),
    }
    first, *others = found.values()
    for other in others:
        if (first != other).any():
            k = int(np.flatnonzero(first != other)[0])
            said = ", ".join(f"{name}: {bool(marks[k])}" for name, marks in found.items())
            raise DisagreementError(
                f"the ways of finding disclosed cells disagree on target {k} ({said}). This is a "
                "numerical failure; audit the tables one by one."
            )
    return first


def by_decimals(system: Unknowns, targets: Any, rng: np.random.Generator) -> Mask:
    """Targets that two draws of random decimals leave as they are."""
    moves = np.abs(targets.T @ random_decimals(system, rng, 2))
    found: Mask = (moves <= UNMOVED).all(axis=1)
    return found


def random_decimals(system: Unknowns, rng: np.random.Generator, draws: int) -> Real:
    """Random changes of the unknown cells that no published cell shows, a column for each draw."""
    return free_part(system.equations, rng.standard_normal((len(system.cells), draws)))


def by_leverage(system: Unknowns, targets: Any) -> Mask:
    """Targets whose columns are combinations of the published ones, in whole numbers."""
    return find_spanned(system.equations, targets)


def by_programs(system: Unknowns, targets: Any, rng: np.random.Generator) -> Mask:
    """Targets that no solution of the homogeneous equations changes.

    A program maximises a random combination of the targets in question. Those that its solution
    changes are open; when the largest combination is zero, none of the others can change.
    """
    found = np.ones(targets.shape[1], dtype=bool)
    by_cell, equations_of = targets.tocsr(), system.equations.tocsr()
    for cells, rows in connected_parts(system.equations):
        part = by_cell[cells].tocsc()
        chosen = np.flatnonzero(np.diff(part.indptr))
        equations = equations_of[cells].tocsc()[:, rows]
        found[chosen] &= _unchangeable(equations, part[:, chosen], rng)
    return found


def _unchangeable(equations: Any, targets: Any, rng: np.random.Generator) -> Mask:
    """Which targets of one component are zero in all solutions."""
    n, m = equations.shape
    program = Program(equations, np.zeros(m), np.zeros(m), np.full(n, -1.0), np.ones(n))
    still, steps = np.arange(targets.shape[1]), _STEPS
    while len(still):
        weights = rng.uniform(0.5, 1.5, len(still))
        solution = program.minimise(-(targets[:, still] @ weights), steps=steps)
        moves = np.abs(targets[:, still].T @ solution)
        unmoved = moves <= _UNMOVED_BY_PROGRAM
        if unmoved.all() and program.is_best:
            break
        steps = 2 * steps if unmoved.all() else steps
        still = still[unmoved]
    return np.isin(np.arange(targets.shape[1]), still)
