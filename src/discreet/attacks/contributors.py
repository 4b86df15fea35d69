"""What a contributor reads from a table with hidden cells, by linear programs.

He sees the release, knows his own parts of the inner cells, and those cells wholly that he is alone
in. Cells that only one value fits are claimed first, then those with the shortest intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csc_array, hstack

from discreet.assessment.audit.ranges import is_perturbed
from discreet.assessment.audit.subject import WITHHELD
from discreet.attacks.frame import About, Claims, Knowledge, PublicAttack
from discreet.errors import ParameterError
from discreet.solve.linear.intervals import Limits, feasible_intervals
from discreet.suppress.attackers import PUBLIC, Attacker
from discreet.tables.protected import COUNT

_LARGEST = 20_000  # inner cells: two seconds for twenty hidden cells, minutes for four times more
_MOST_HIDDEN = 5_000  # two linear programs each: a minute
ATTACKER = "attacker"
"""The name under which `Knowledge.extra` holds an `Attacker`; the public when absent."""


@dataclass(frozen=True)
class Contributor(PublicAttack):
    """Claims the middle of the interval of each hidden cell; the shorter, the surer.

    Attributes:
      whole: Whether values are known to be whole numbers, which round the ends of intervals.
    """

    whole: bool = False
    name: ClassVar[str] = "contributor"
    about: ClassVar[About] = "hidden"
    remedy: ClassVar[str] = 'hide further cells (`secondary="interval"`), or wider protection'

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """Nothing is hidden, or shown values have noise and do not add up."""
        if release.status is None or not np.isin(release.status, WITHHELD).any():
            return "no cell is hidden"
        if is_perturbed(release):
            return "the shown values have noise"
        if release.design.n_inner > _LARGEST:
            return f"more than {_LARGEST:,} inner cells"
        n = int(np.isin(release.status, WITHHELD).sum())
        return f"more than {_MOST_HIDDEN:,} hidden cells" if n > _MOST_HIDDEN else ""

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """Claims about hidden cells, by their positions; nothing is drawn."""
        one: Attacker = knowledge.extra.get(ATTACKER, PUBLIC)
        if release.status is None:
            raise ParameterError("this release hides no cells, so there is nothing to read.")
        hidden = np.isin(release.status, WITHHELD)
        X = release.design.matrix().tocsc()
        own, is_known = np.zeros(X.shape[0]), np.zeros(X.shape[0], dtype=bool)
        # All that is in a cell that he is alone in is his.
        own[one.cells], is_known[one.known] = one.shares, True
        found = feasible_intervals(
            X[:, ~hidden],
            np.asarray(release.z)[~hidden],
            X[:, hidden],
            limits=_limits(release, X, hidden, own, ~is_known),
            known=is_known,
            y=own,
            workers=1,
        )
        low, high = found.low, found.high
        if self.whole:
            low, high = np.ceil(low - 1e-6), np.floor(high + 1e-6)
        middle, targets = (low + high) / 2, np.flatnonzero(hidden).tolist()
        sure = np.where(np.isfinite(high), 1.0 / (1.0 + np.maximum(high - low, 0.0)), 0.0)
        return Claims.ranked(targets, middle.tolist(), sure)


def _limits(release: Any, X: Any, hidden: Any, own: Any, in_doubt: Any) -> Limits:
    """That no cell is less than his part of it, and no hidden count empty where zeros are shown."""
    cells = np.flatnonzero((own > 0) & in_doubt)
    parts = csc_array((np.ones(len(cells)), (cells, np.arange(len(cells)))), (len(own), len(cells)))
    columns, low = parts, own[cells]
    if release.unit == COUNT and release.statement.says("empty-cells"):
        columns = hstack([parts, X[:, hidden]], format="csc")
        low = np.concatenate([low, np.ones(int(hidden.sum()))])
    return Limits(columns, low, np.full(len(low), np.inf))
