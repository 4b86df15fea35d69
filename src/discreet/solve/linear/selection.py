"""As many columns as possible, by priority, whose span avoids protected columns.

Columns are taken one after another; one that would put a protected column into the span, or would
let a protected column follow from what one person knows, is left out. Columns that must be taken
are taken in an order that keeps the elimination sparse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.design.magnitude import NOBODY
from discreet.solve.linear.elimination import Elimination
from discreet.solve.linear.elimination_kernels import CANDIDATE, LONE, PRIMARY, REJECTED

if TYPE_CHECKING:
    from scipy.sparse import csc_array


@dataclass(frozen=True, eq=False)
class Choice:
    """What can be taken, what must be, and what must not follow.

    Attributes:
      columns: Candidates by priority, rows × candidates.
      protected: Columns that must stay out of the span.
      owner: Who each protected column belongs to wholly.
      lone: Columns that one person knows.
      attacker: Who knows each of them.
      n_must: This many of the first candidates must be taken.
    """

    columns: csc_array
    protected: csc_array
    owner: NDArray[np.int64]
    lone: csc_array
    attacker: NDArray[np.int64]
    n_must: int = 0


@dataclass(frozen=True, eq=False)
class Conflict:
    """Why the columns that must be taken cannot be.

    Attributes:
      protected: The protected column that would follow.
      candidate: The candidate that it would follow with; `None` where it follows from nothing.
    """

    protected: int
    candidate: int | None


@dataclass(frozen=True, eq=False)
class Chosen:
    """The result of a selection.

    Attributes:
      rejected: Which candidates were left out.
      elimination: The elimination at its end; protected and lone columns follow the candidates.
    """

    rejected: NDArray[np.bool_]
    elimination: Elimination


def select(choice: Choice) -> Chosen | Conflict:
    """Take candidates by priority, each unless a protected column would follow."""
    safe = _attempt(choice, choice.n_must)
    if safe is None:
        return _explained(choice)
    safe.take_possible(safe.undecided)
    n = choice.columns.shape[1]
    return Chosen(safe.system.decision[:n] == REJECTED, safe)


def _attempt(choice: Choice, n: int) -> Elimination | None:
    """Take the first `n` candidates in a sparse order; `None` when they are not safe."""
    elimination = _started(choice)
    if elimination.first_conflict() is not None:
        return None
    waiting = elimination.undecided
    waiting = waiting[waiting < n]
    short_first = waiting[np.argsort(elimination.system.size[waiting], kind="stable")]
    return elimination if elimination.take(short_first) else None


def _started(choice: Choice) -> Elimination:
    """The elimination before anything is taken."""
    from scipy.sparse import csc_array, hstack

    parts = [choice.columns, choice.protected, choice.lone]
    columns = csc_array(hstack(parts, format="csc"))
    sizes = [part.shape[1] for part in parts]
    nobody = [np.full(size, NOBODY) for size in sizes]
    return Elimination(
        columns,
        np.repeat([CANDIDATE, PRIMARY, LONE], sizes),
        np.concatenate([nobody[0], choice.owner, nobody[2]]),
        np.concatenate([nobody[0], nobody[1], choice.attacker]),
    )


def _explained(choice: Choice) -> Conflict:
    """Which protected column follows, and which candidate first makes it follow."""
    found = _started(choice).first_conflict()
    n = choice.columns.shape[1]
    if found is not None:
        return Conflict(found - n, None)
    low, high = 0, choice.n_must
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _attempt(choice, middle) is None else (middle, high)
    return Conflict(_first_told(choice, high), high - 1)


def _first_told(choice: Choice, n: int) -> int:
    """The first protected column that alone is not safe beside the first `n` candidates."""
    from dataclasses import replace

    low, high = 0, choice.protected.shape[1]
    while high - low > 1:
        middle = (low + high) // 2
        part = replace(choice, protected=choice.protected[:, :middle], owner=choice.owner[:middle])
        low, high = (low, middle) if _attempt(part, n) is None else (middle, high)
    return high - 1
