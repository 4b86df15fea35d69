"""Exact sparse elimination: which columns are linear combinations of which others.

The question of suppression is one of spans: a hidden cell is disclosed when its column of `X` is a
linear combination of the columns of published cells. `Elimination` answers it in whole numbers.
Columns are combined without division and made primitive after each step, so nothing is rounded; a
number that would leave 31 bits is an error, never a wrong answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.design.magnitude import NOBODY
from discreet.errors import DiscreetError
from discreet.randomness import stream
from discreet.solve.linear.elimination_kernels import (
    ACCEPTED,
    CANDIDATE,
    DONE,
    LONE,
    MEMORY,
    OVERFLOW,
    UNDECIDED,
    System,
    advance,
    conflicts,
    empty_meta,
    install,
)
from discreet.solve.linear.schedule import ELIMINATION

if TYPE_CHECKING:
    from scipy.sparse import csc_array


class EliminationError(DiscreetError):
    """Numbers became too large for exact elimination in machine words."""


class Elimination:
    """Columns of which some are taken into a span while others must stay out of it.

    Candidates are numbered by priority: of two that come to mean the same, the first decides.

    Args:
      columns: Whole numbers, rows × columns.
      kind: For each column `CANDIDATE`, `PRIMARY`, `LONE`, or `PRIMARY | LONE`.
      owner: Who a primary column belongs to wholly, and may therefore know it.
      attacker: Who knows a lone column: no primary may follow from it, except his own.
    """

    def __init__(
        self,
        columns: csc_array,
        kind: NDArray[Any],
        owner: NDArray[Any] | None = None,
        attacker: NDArray[Any] | None = None,
    ) -> None:
        columns.sort_indices()
        n_rows, n = (int(k) for k in columns.shape)
        nobody = np.full(n, NOBODY, dtype=np.int64)
        classes = 1 << max(4, int(2 * n).bit_length())
        words = stream(0, "elimination").integers(2**63, size=n_rows, dtype=np.uint64)
        nodes = ELIMINATION.room * (columns.nnz + n) + 1000
        self.system = System(
            rows=_spacious(columns.indices.astype(np.int32)),
            values=_spacious(columns.data.astype(np.int64)),
            start=columns.indptr[:-1].astype(np.int64),
            size=np.diff(columns.indptr).astype(np.int64),
            kind=np.array(kind, dtype=np.uint8),
            owner=nobody if owner is None else np.array(owner, dtype=np.int64),
            attacker=nobody if attacker is None else np.array(attacker, dtype=np.int64),
            key=np.zeros(n, dtype=np.uint64),
            decision=np.full(n, UNDECIDED, dtype=np.int8),
            weight=2 * words + np.uint64(1),
            row_count=np.zeros(n_rows, dtype=np.int64),
            head=np.full(n_rows + classes, -1),
            node_column=np.empty(nodes, dtype=np.int32),
            node_after=np.empty(nodes, dtype=np.int64),
            seen=np.zeros(n, dtype=np.int64),
            old=np.zeros((n, 3), dtype=np.int64),
            meta=empty_meta(columns.nnz),
        )
        install(self.system)

    def take(self, order: NDArray[Any]) -> bool:
        """Take all of these candidates, or stop where that would span or tell a primary."""
        return self._run(order, strict=True)

    def take_possible(self, order: NDArray[Any]) -> None:
        """Take these candidates one after another, and reject those that cannot be taken."""
        self._run(order, strict=False)

    def first_conflict(self) -> int | None:
        """A primary column that is spanned, or told to somebody; `None` if all are safe."""
        found = int(conflicts(self.system))
        return None if found < 0 else found

    @property
    def undecided(self) -> NDArray[np.intp]:
        """Candidates that are neither taken, implied nor rejected, by priority."""
        return np.flatnonzero(self.system.kind == CANDIDATE)

    def remainders(self, columns: NDArray[Any]) -> csc_array:
        """What is left of some columns once the span is taken out; empty when they are in it."""
        from scipy.sparse import csc_array

        s = self.system
        ends = np.concatenate([[0], np.cumsum(s.size[columns])])
        inside = np.repeat(s.start[columns] - ends[:-1], s.size[columns]) + np.arange(ends[-1])
        shape = (len(s.weight), len(columns))
        return csc_array((s.values[inside], s.rows[inside], ends), shape=shape)

    def _run(self, order: NDArray[Any], *, strict: bool) -> bool:
        order, begin = np.asarray(order, dtype=np.int64), 0
        while True:
            begin, status = advance(self.system, order, begin, strict)
            if status == OVERFLOW:
                raise EliminationError(
                    "numbers beyond 31 bits arose in an exact elimination. Publish fewer tables at "
                    "once, or fewer levels."
                )
            if status != MEMORY:
                return bool(status == DONE)
            self._grow()

    def _grow(self) -> None:
        names = ("rows", "values", "node_column", "node_after")
        longer = {name: _spacious(getattr(self.system, name), ELIMINATION.growth) for name in names}
        self.system = self.system._replace(**longer)


def rank(columns: csc_array) -> int:
    """The rank of a sparse matrix of whole numbers, exactly."""
    order = _short_first(columns)
    elimination = Elimination(columns[:, order], np.full(len(order), CANDIDATE))
    elimination.take(elimination.undecided)
    return int((elimination.system.decision == ACCEPTED).sum())


def spanned(columns: csc_array, targets: csc_array) -> NDArray[np.bool_]:
    """Which targets are linear combinations of the columns, exactly."""
    from scipy.sparse import csc_array, hstack

    order = _short_first(columns)
    both = csc_array(hstack([columns[:, order], targets], format="csc"))
    kind = np.repeat([CANDIDATE, LONE], [len(order), targets.shape[1]])
    elimination = Elimination(both, kind)
    elimination.take(elimination.undecided)
    return np.asarray(elimination.system.size[len(order) :] == 0)


def _short_first(columns: csc_array) -> NDArray[np.intp]:
    """Columns with few rows first, which keeps the others short."""
    return np.argsort(np.diff(columns.indptr), kind="stable")


def _spacious(values: NDArray[Any], factor: int = ELIMINATION.room) -> NDArray[Any]:
    wide = np.empty(factor * len(values) + 1000, dtype=values.dtype)
    wide[: len(values)] = values
    return wide
