"""The equations of a table, and what somebody alone in a cell makes of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from discreet.arrays import Array, Mask, Real
from discreet.errors import DiscreetError, InfeasibleError, NotConvergedError, ParameterError
from discreet.progress import report
from discreet.solve.linear.elimination import find_spanned
from discreet.solve.linear.intervals import Limits, feasible_intervals
from discreet.solve.linear.program import Program
from discreet.solve.linear.unknowns import Unknowns, connected_parts, free_part, unknowns
from discreet.suppress.attackers import Attacker

if TYPE_CHECKING:
    from discreet.assessment.audit.subject import Subject

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
      cells: The inner cells he is in, or each of them.
      targets: The targets that follow for him, by number.
      needs_signs: Whether they follow only because values are not negative.
      is_short: Whether they do not follow, but have a shorter interval than their rule asks.
      members: How many pool what they know.
    """

    cells: tuple[int, ...]
    targets: tuple[int, ...]
    needs_signs: bool = False
    is_short: bool = False
    members: int = 1


def told_to_coalitions(
    system: Unknowns,
    targets: Any,
    groups: list[Array],
    found: list[Told],
    size: int,
    empty: Array,
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
        for told in told_by_equations(system, targets, joined, empty, rng=rng):
            fewer = [f.targets for f in found if set(f.cells) < set(told.cells)]
            rest = set(told.targets).difference(*fewer)
            if rest:
                found.append(replace(told, targets=tuple(sorted(rest)), members=members))
    return found[alone:]


def told_by_equations(
    system: Unknowns, targets: Any, groups: list[Array], empty: Array, *, rng: np.random.Generator
) -> list[Told]:
    """What follows for each attacker by linear algebra, for targets that do not follow for all.

    Args:
      system: What the published cells leave open, without signs.
      targets: Inner cells × targets, sparse.
      groups: For each attacker the unknown cells that he knows, by position among those.
      empty: Unknown cells that sums of zero show to be empty: they make no cell another's.
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
        follows = _within(moves, decimals[cells])
        follows &= ~_own(open_part, np.union1d(cells, empty))
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
    subject: Subject, targets: Any, needs: tuple[Real, Real], close: Real, *, signs: bool
) -> Iterator[Told]:
    """What each contributor finds out by programs, one after another.

    He knows the cells that he is alone in, that no cell is less than his part of it, and public
    bounds.

    Args:
      subject: What is audited, with its inner cells.
      targets: Inner cells × targets that do not follow by equations.
      needs: How far below and above its value the interval of each target must reach.
      close: For each target the width up to which its value counts as known.
      signs: Whether values are known not to be negative.
    """
    X, values, y = subject.X[:, subject.shown], subject.z[subject.shown], subject.y
    everybody = subject.attackers
    in_doubt = np.zeros(X.shape[0], dtype=bool)
    in_doubt[unknowns(X, values, signs=signs, known=subject.known, y=y).cells] = True
    doubtful = (targets * in_doubt[:, None]).tocsc()
    middle, rest = targets.T @ y, everybody.rest(targets).tocsc()
    floor = subject.public_floor
    for k in range(len(everybody)):
        one = everybody[k]
        tells = in_doubt[one.cells] & (one.shares > floor[one.cells])
        if not (in_doubt[one.known].any() or tells.any()):
            continue  # he knows nothing that the public does not
        # A contributor's own part stays where it is: a cell can only lose what others have.
        below, above = needs[0].copy(), needs[1]
        part = slice(rest.indptr[k], rest.indptr[k + 1])
        below[rest.indices[part]] = np.minimum(below[rest.indices[part]], rest.data[part])
        mine = np.zeros(X.shape[0], dtype=bool) if subject.known is None else subject.known.copy()
        mine[one.known] = True
        enough = (middle - np.maximum(below, 2 * close), middle + np.maximum(above, 2 * close))
        limits = _with_floors(subject.limits, one, ~mine) if signs else subject.limits
        found = feasible_intervals(
            X,
            values,
            targets,
            signs=signs,
            limits=limits,
            known=mine,
            y=y,
            enough=enough,
            workers=1,
        )
        others, is_known = ~_own(doubtful, one.known), found.width <= close
        is_short = (middle - found.low < below - close) | (found.high - middle < above - close)
        for chosen, short in ((is_known & others, False), (is_short & ~is_known & others, True)):
            if chosen.any():
                told = tuple(int(t) for t in np.flatnonzero(chosen))
                yield Told(tuple(one.cells.tolist()), told, needs_signs=True, is_short=short)
        report("contributors", (k + 1) / len(everybody))


def _with_floors(limits: Limits | None, one: Attacker, in_doubt: Mask) -> Limits | None:
    """Public bounds, and that no cell is less than somebody's part of it."""
    chosen = in_doubt[one.cells]
    cells, n = one.cells[chosen], len(in_doubt)
    if not len(cells):
        return limits
    own = sparse.csc_array((np.ones(len(cells)), (cells, np.arange(len(cells)))), (n, len(cells)))
    floors = Limits(own, one.shares[chosen], np.full(len(cells), np.inf))
    if limits is None:
        return floors
    columns = sparse.hstack([limits.columns, own], format="csc")
    return Limits(
        columns, *(np.concatenate(each) for each in zip(limits[1:], floors[1:], strict=True))
    )


_NEAR = 1e-6
# Coefficients nearer to a fraction of small numbers are that fraction: programs solve equations to
# about 1e-9, and their solutions are solutions of systems of zeros and ones.
_ROUNDED, _LARGEST_DENOMINATOR = 1e-5, 12


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
) -> list[tuple[Term, ...] | None]:
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
        below, above = (_terms(matrix, *side, published) for side in sides)
        is_found = below is not None and above is not None
        found.append(Bracket(below or (), above or ()) if is_found else None)
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


def _terms(matrix: Any, low: Real, high: Real, published: Array) -> tuple[Term, ...] | None:
    """The smallest coefficients of published cells with sums between the given ones, if found."""
    n = matrix.shape[0]
    program = Program(matrix, low, high, np.zeros(n), np.full(n, np.inf), changing="nothing")
    # An explanation that is not found is left out: what is disclosed was found in other ways.
    try:
        solution = program.minimise(np.ones(n))
    except (InfeasibleError, NotConvergedError):
        return None
    if solution is None:
        return ()
    found = _as_fractions(solution[: n // 2] - solution[n // 2 :])
    # What is said must be true as it is said: 0.999999 of a cell gives no other.
    sums = matrix[: n // 2].T @ found
    if ((sums < low - _NEAR) | (sums > high + _NEAR)).any():
        return None
    used = np.flatnonzero(found)
    return tuple(Term(int(published[j]), float(found[j])) for j in used)


def _as_fractions(found: Real) -> Real:
    """Coefficients without rounding errors: they are whole numbers or fractions of small ones."""
    for denominator in range(1, _LARGEST_DENOMINATOR + 1):
        near = np.rint(found * denominator) / denominator
        found = np.where(np.abs(found - near) < _ROUNDED, near, found)
    return found
