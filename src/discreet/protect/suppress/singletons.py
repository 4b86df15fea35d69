"""Someone alone in a cell knows it, subtracts himself, and must not learn a sensitive cell.

A lone contributor knows his inner cells, and every published cell that holds nobody but him. A
primary cell that holds others as well must not follow from the published cells together with these.
With one such cell he learns a primary exactly when both have proportional remainders, which the
elimination watches at every step. Those who know several are checked at the end; a combination that
tells is then protected as a sensitive sum, and the selection repeated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Mask, Real, Whole
from discreet.protect.suppress.pattern import Pattern
from discreet.protect.suppress.proofs import attackers
from discreet.protect.suppress.rows import ChosenRows
from discreet.randomness import stream
from discreet.tables.magnitude import NOBODY

if TYPE_CHECKING:
    from scipy.sparse import csc_array

_SPARE = 4  # random sums beyond the number of things that one person knows
_NEAR = 1e-6  # squared distances below this are looked at exactly


@dataclass(frozen=True, eq=False)
class Lone:
    """What single persons know.

    Attributes:
      columns: A column for each thing known, rows × things.
      attacker: Who knows it.
    """

    columns: csc_array
    attacker: Whole


def owners(pattern: Pattern, columns: csc_array) -> Whole:
    """For each column, inner cells × columns, who alone contributes to it, or nobody."""
    who = attackers(pattern)
    if pattern.y is None or not (who != NOBODY).any():
        return np.full(columns.shape[1], NOBODY)
    is_lone = who != NOBODY
    occupied = columns.T @ (pattern.y != 0).astype(np.int64)
    n = columns.T @ is_lone.astype(np.int64)
    total = columns.T @ np.where(is_lone, who, 0)
    squares = columns.T @ np.where(is_lone, who, 0) ** 2
    alone = (n > 0) & (n == occupied) & (n * squares == total**2)
    return np.where(alone, total // np.maximum(n, 1), NOBODY)


def lone_columns(pattern: Pattern, known: ChosenRows, *, whole_cells: bool) -> Lone:
    """What lone contributors know.

    Args:
      pattern: The pattern.
      known: The columns of the published cells, on the rows that count.
      whole_cells: Whether empty cells are public, so that whoever is alone in a published cell
        knows its value; otherwise he knows his inner cells alone.
    """
    from scipy.sparse import csc_array, hstack

    who = np.append(attackers(pattern), NOBODY)[known.inner]
    alone = np.flatnonzero(who != NOBODY)
    units = csc_array(
        (np.ones(len(alone), np.int64), alone, np.arange(len(alone) + 1)),
        shape=(len(who), len(alone)),
    )
    if not whole_cells:
        return Lone(units, who[alone])
    owner = owners(pattern, pattern.design.matrix().astype(np.int64).tocsc())
    columns = known.columns
    lone_rows = columns.T @ (who != NOBODY).astype(np.int64)
    cells = np.flatnonzero((owner != NOBODY) & (np.diff(columns.indptr) > lone_rows))
    both = csc_array(hstack([units, columns[:, cells]], format="csc"))
    return Lone(both, np.concatenate([who[alone], owner[cells]]))


def told_sums(
    primaries: csc_array,
    lone: csc_array,
    owner: Whole,
    attacker: Whole,
) -> Iterator[tuple[int, dict[int, int], int]]:
    """Primaries that follow for somebody who knows several cells.

    Yields the primary, the coefficients of what he knows, and that of the primary; together they
    are a sum that the published cells give.

    Args:
      primaries: What is left of the primary columns once what published cells give is taken out.
      lone: What is left of the columns that one person knows.
      owner: Who each primary belongs to wholly.
      attacker: Who knows each lone column.
    """
    known = np.flatnonzero(np.diff(lone.indptr))
    who, times = np.unique(attacker[known], return_counts=True)
    width = int(times.max(initial=0)) + _SPARE
    shadows, of_lone = _shadows(primaries, width), _shadows(lone, width)
    for one in who[times > 1]:
        cells = known[attacker[known] == one]
        near = _in_span(of_lone[:, cells], shadows) & (np.diff(primaries.indptr) > 0)
        for p in np.flatnonzero(near & (owner != one)):
            found = _combination(lone[:, cells], primaries[:, [p]])
            if found is not None:
                coefficients, scale = found
                yield int(p), dict(zip(cells.tolist(), coefficients, strict=True)), scale


def _shadows(columns: csc_array, width: int) -> Real:
    """A few random sums of each column, of length one; what holds of columns holds of them."""
    mixing = stream(0, "shadows of columns").standard_normal((width, columns.shape[0]))
    shadow = np.asarray((columns.astype(np.float64).T @ mixing.T).T)
    length = np.sqrt((shadow**2).sum(axis=0))
    return np.asarray(shadow / np.maximum(length, np.finfo(np.float64).tiny))


def _in_span(known: Real, targets: Real) -> Mask:
    """Targets that may be combinations of what is known; those that are not even near are not."""
    basis, sizes, _ = np.linalg.svd(known, full_matrices=False)
    basis = basis[:, sizes > _NEAR]
    left = targets - basis @ (basis.T @ targets)
    return np.asarray((left**2).sum(axis=0) < _NEAR)


def _combination(known: csc_array, target: csc_array) -> tuple[list[int], int] | None:
    """Whole numbers with `scale · target = known · coefficients`, if there are any."""
    rows = np.union1d(known.indices, target.indices)
    joined = np.hstack([known.tocsr()[rows].toarray(), target.tocsr()[rows].toarray()])
    lines = [[Fraction(int(value)) for value in line] for line in joined]
    pivots = _reduce(lines, known.shape[1])
    if any(line[-1] for line in lines[len(pivots) :]):
        return None
    exact = [Fraction(0)] * known.shape[1]
    for line, j in zip(lines, pivots, strict=False):
        exact[j] = line[-1]
    scale = math.lcm(*(f.denominator for f in exact))
    return [int(f * scale) for f in exact], scale


def _reduce(lines: list[list[Fraction]], n: int) -> list[int]:
    """Bring lines into reduced echelon form by their first `n` numbers; returns the pivots."""
    pivots: list[int] = []
    for j in range(n):
        top = len(pivots)
        first = next((i for i in range(top, len(lines)) if lines[i][j]), None)
        if first is None:
            continue
        lines[top], lines[first] = lines[first], lines[top]
        lines[top] = [value / lines[top][j] for value in lines[top]]
        for i, line in enumerate(lines):
            if i != top and line[j]:
                factor = line[j]
                lines[i] = [a - factor * b for a, b in zip(line, lines[top], strict=True)]
        pivots.append(j)
    return pivots
