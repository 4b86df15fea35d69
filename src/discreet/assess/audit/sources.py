"""Which published cells disclose a hidden one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from discreet.arrays import Array, Mask, Real
from discreet.errors import InfeasibleError
from discreet.progress import report
from discreet.solve.linear.program import Program

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
    both, wanted = _prepared(X, published, targets, known)
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
    from scipy import sparse

    both, wanted = _prepared(X, published, targets, known)
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


def _prepared(X: Any, published: Array, targets: Any, known: Mask | None) -> tuple[Any, list[Real]]:
    """Published columns with both signs as variables, and dense targets, on unknown rows."""
    from scipy import sparse

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
    coefficients = solution[: n // 2] - solution[n // 2 :]
    used: Sequence[int] = np.flatnonzero(np.abs(coefficients) > _NOTHING).tolist()
    return tuple(Term(int(published[j]), _neat(float(coefficients[j]))) for j in used)


def _neat(value: float) -> float:
    """A coefficient without rounding errors."""
    return float(round(value)) if abs(value - round(value)) < _NOTHING else value
