"""The equations of a table, and what somebody alone in a cell makes of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from discreet.arrays import Array, Mask, Real
from discreet.errors import DiscreetError, InfeasibleError, ParameterError
from discreet.progress import report
from discreet.solve.linear.elimination import find_spanned
from discreet.solve.linear.intervals import Limits, feasible_intervals
from discreet.solve.linear.program import Program
from discreet.solve.linear.unknowns import Unknowns, connected_parts, free_part, unknowns

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
        # Stopped before anything moved: longer, or it would stop at the same point for ever.
        steps = 2 * steps if unmoved.all() else steps
        still = still[unmoved]
    return np.isin(np.arange(targets.shape[1]), still)


_SPARE = 3  # draws more than an attacker has cells, so that no target follows by chance
_SAME = 1e-6  # what is left of a move, as a share of it, where it follows from the attacker's
_MOST_COALITIONS = 50_000  # each takes a singular value decomposition


@dataclass(frozen=True)
class Told:
    """What one contributor, or several together, find out about others.

    Attributes:
      cells: The inner cells he is alone in, or each of them.
      targets: The targets that follow for him, by number.
      needs_signs: Whether they follow only because values are not negative.
      members: How many pool what they know.
    """

    cells: tuple[int, ...]
    targets: tuple[int, ...]
    needs_signs: bool = False
    members: int = 1


def attackers(system: Unknowns, lone: Mask, owner: Array | None) -> list[Array]:
    """For each contributor the unknown inner cells he is alone in, by position among those."""
    places = np.flatnonzero(lone[system.cells])
    if owner is None:
        return [np.array([place]) for place in places]
    whose = owner[system.cells[places]]
    return [places[whose == each] for each in np.unique(whose)]


def told_to_coalitions(
    system: Unknowns,
    targets: Any,
    groups: list[Array],
    found: list[Told],
    size: int,
    *,
    rng: np.random.Generator,
) -> list[Told]:
    """What follows by equations for several attackers together, and for no fewer of them.

    Args as for `told_by_equations`, and:
      found: What follows for each of them alone.
      size: How many pool what they know, at most.
    """
    found = list(found)
    alone = len(found)
    for members in range(2, size + 1):
        tries = math.comb(len(groups), members)
        if tries > _MOST_COALITIONS:
            raise ParameterError(
                f"{len(groups):,} contributors make {tries:,} coalitions of {members}, but at most "
                f"{_MOST_COALITIONS:,} are tried. Audit a smaller table, or smaller coalitions."
            )
        joined = [np.concatenate(some) for some in combinations(groups, members)]
        for told in told_by_equations(system, targets, joined, rng=rng):
            fewer = [f.targets for f in found if set(f.cells) < set(told.cells)]
            rest = set(told.targets).difference(*fewer)
            if rest:
                found.append(replace(told, targets=tuple(sorted(rest)), members=members))
    return found[alone:]


def told_by_equations(
    system: Unknowns, targets: Any, groups: list[Array], *, rng: np.random.Generator
) -> list[Told]:
    """What follows for each attacker by linear algebra, for targets that do not follow for all.

    Args:
      system: What the published cells leave open, without signs.
      targets: Inner cells × targets, sparse.
      groups: The attackers, from `attackers`.
      rng: Generator of the decimals.
    """
    if not groups:
        return []
    open_part = system.restrict(targets)
    draws = max(len(cells) for cells in groups) + _SPARE
    decimals = random_decimals(system, rng, draws)
    moves = open_part.T @ decimals
    found = []
    for done, cells in enumerate(groups, 1):
        follows = _within(moves, decimals[cells]) & ~_own(open_part, cells)
        if follows.any():
            told = tuple(int(k) for k in np.flatnonzero(follows))
            found.append(Told(tuple(int(i) for i in system.cells[cells]), told))
        report("lone contributors", done / len(groups))
    return found


def _within(moves: Real, rows: Real) -> Mask:
    """Which moves are not zero and combinations of the rows."""
    _, sizes, directions = np.linalg.svd(rows, full_matrices=False)
    kept = directions[sizes > UNMOVED]
    length = np.linalg.norm(moves, axis=1)
    rest = np.linalg.norm(moves - (moves @ kept.T) @ kept, axis=1)
    found: Mask = (length > UNMOVED) & (rest <= _SAME * length)
    return found


def _own(targets: Any, cells: Array) -> Mask:
    """Targets whose unknown cells are all the attacker's own."""
    others = np.ones(targets.shape[0])
    others[cells] = 0.0
    return np.asarray(targets.T @ others == 0)


def told_with_signs(
    X: Any,
    values: Array,
    y: Array,
    targets: Any,
    groups: list[Array],
    close: Real,
    limits: Limits | None = None,
) -> Iterator[Told]:
    """What follows for each attacker because values are not negative, one after another.

    Args:
      X: Inner cells × published cells that are shown.
      values: Their values.
      y: True values of the inner cells.
      targets: Inner cells × targets that do not follow by equations.
      groups: For each attacker the inner cells he is alone in.
      close: For each target the width up to which its value counts as known.
      limits: Public bounds.
    """
    in_doubt = np.zeros(X.shape[0], dtype=bool)
    in_doubt[unknowns(X, values, signs=True).cells] = True
    doubtful = (targets * in_doubt[:, None]).tocsc()
    middle = targets.T @ y
    enough = (middle - 2 * close, middle + 2 * close)
    for done, cells in enumerate(groups, 1):
        mine = np.zeros(X.shape[0], dtype=bool)
        mine[cells] = True
        found = feasible_intervals(
            X, values, targets, limits=limits, known=mine, y=y, enough=enough, workers=1
        )
        follows = (found.width <= close) & ~_own(doubtful, cells)
        if follows.any():
            told = tuple(int(k) for k in np.flatnonzero(follows))
            yield Told(tuple(int(i) for i in cells), told, needs_signs=True)
        report("lone contributors", done / len(groups))


_NOTHING = 1e-7
_NEAR = 1e-6


class Term(NamedTuple):
    """A published cell with its coefficient in a sum that gives a hidden cell."""

    cell: int
    coefficient: float


class Bracket(NamedTuple):
    """Combinations of published cells between which a hidden cell lies, both with its value."""

    below: tuple[Term, ...]
    above: tuple[Term, ...]


def disclosing_cells(
    X: Any, published: Array, targets: Any, known: Mask | None = None
) -> list[tuple[Term, ...]]:
    """For each disclosed target a combination of published cells that gives it.

    Of all such combinations one with the smallest sum of absolute coefficients is found, which has
    few cells.

    Args:
      X: Inner cells × published cells, sparse.
      published: Positions of the cells that are shown.
      targets: Inner cells × targets, sparse.
      known: Inner cells that everybody knows, which need no published cell.
    """
    both, wanted = _prepare_equations(X, published, targets, known)
    found = []
    for k, column in enumerate(wanted, 1):
        found.append(_terms(both, column, column, published))
        report("sources", k / len(wanted))
    return found


def bracketing_cells(
    X: Any, published: Array, z: Real, targets: Any, values: Real, known: Mask | None
) -> list[Bracket | None]:
    r"""For targets that follow from signs, published cells that bound them from both sides.

    None do where a target follows from public bounds only.

    A combination :math:`X\lambda \ge t` bounds :math:`t^\top y \le \lambda^\top z` for all
    :math:`y \ge 0`; one whose value is that of the target, and one from below, prove it.

    Args:
      X: Inner cells × published cells, sparse.
      published: Positions of the cells that are shown.
      z: Values of the published cells.
      targets: Inner cells × targets, sparse.
      values: Values of the targets.
      known: Inner cells that everybody knows to be zero.
    """
    both, wanted = _prepare_equations(X, published, targets, known)
    size = max(1.0, float(np.abs(z[published]).max(initial=0.0)))
    cost = sparse.csr_array(np.concatenate([z[published], -z[published]])[:, None] / size)
    matrix = sparse.hstack([both, cost], format="csr")
    found: list[Bracket | None] = []
    for k, (column, value) in enumerate(zip(wanted, values, strict=True), 1):
        near = (value + _NEAR * max(1.0, abs(value)) * np.array([-1.0, 1.0])) / size
        free = np.full(len(column), np.inf)
        sides = (
            (np.append(-free, near[0]), np.append(column, np.inf)),
            (np.append(column, -np.inf), np.append(free, near[1])),
        )
        try:
            found.append(Bracket(*(_terms(matrix, *side, published) for side in sides)))
        except InfeasibleError:
            found.append(None)
        report("sources", k / len(wanted))
    return found


def _prepare_equations(
    X: Any, published: Array, targets: Any, known: Mask | None
) -> tuple[Any, list[Real]]:
    """Published columns with both signs as variables, and dense targets, on unknown rows."""
    rows = slice(None) if known is None else np.flatnonzero(~known)
    shown = X.tocsr()[rows].tocsc()[:, published].astype(np.float64)
    both = sparse.vstack([shown.T, -shown.T], format="csr")
    return both, list(targets.tocsr()[rows].toarray().T.astype(np.float64))


def _terms(matrix: Any, low: Real, high: Real, published: Array) -> tuple[Term, ...]:
    """The smallest coefficients of published cells with sums between the given ones."""
    n = matrix.shape[0]
    program = Program(matrix, low, high, np.zeros(n), np.full(n, np.inf), changing="nothing")
    solution = program.minimise(np.ones(n))
    if solution is None:
        return ()
    found = solution[: n // 2] - solution[n // 2 :]
    # Nearly all coefficients are whole numbers; those that are lose their rounding errors.
    found = np.where(np.abs(found - np.rint(found)) < _NOTHING, np.rint(found), found)
    used = np.flatnonzero(np.abs(found) > _NOTHING)
    return tuple(Term(int(published[j]), float(found[j])) for j in used)
