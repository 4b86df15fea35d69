"""Which published cells disclose a hidden one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.progress import report
from discreet.solve.program import Program

_NOTHING = 1e-7


class Term(NamedTuple):
    """A published cell with its coefficient in a sum that gives a hidden cell."""

    cell: int
    coefficient: float


def disclosing_cells(
    X: Any, published: NDArray[Any], targets: Any, known: NDArray[np.bool_] | None = None
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
    from scipy import sparse

    rows = slice(None) if known is None else np.flatnonzero(~known)
    shown = X.tocsr()[rows].tocsc()[:, published].astype(np.float64)
    targets = targets.tocsr()[rows].tocsc()
    both = sparse.vstack([shown.T, -shown.T], format="csr")
    found = []
    for k in range(targets.shape[1]):
        wanted = targets[:, [k]].toarray().ravel().astype(np.float64)
        found.append(_terms(both, wanted, published))
        report("sources", (k + 1) / targets.shape[1])
    return found


def _terms(both: Any, wanted: NDArray[np.float64], published: NDArray[Any]) -> tuple[Term, ...]:
    n = both.shape[0]
    program = Program(both, wanted, wanted, np.zeros(n), np.full(n, np.inf), presolve=True)
    solution = program.minimise(np.ones(n))
    if solution is None:
        return ()
    coefficients = solution[: n // 2] - solution[n // 2 :]
    used: Sequence[int] = np.flatnonzero(np.abs(coefficients) > _NOTHING).tolist()
    return tuple(Term(int(published[j]), _neat(float(coefficients[j]))) for j in used)


def _neat(value: float) -> float:
    """A coefficient without rounding errors."""
    return float(round(value)) if abs(value - round(value)) < _NOTHING else value
