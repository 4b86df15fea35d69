"""Integer reconstruction: the people that every table agreeing with the release has in common.

What a release leaves possible of each sum follows from its statement: shown values as they stand,
perturbed ones within the reach of their noise, hidden ones anything. A person whose inner cell has
the same count in every whole table is provably disclosed, whoever the intruder is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet.arrays import Real
from discreet.assessment.audit.ranges import is_perturbed, ranges_of
from discreet.attacks.frame import About, Claims, Knowledge, PublicAttack
from discreet.attacks.variability import Variability, solution_variability
from discreet.errors import ParameterError
from discreet.tables.protected import COUNT, CellStatus, Protected

_LARGEST = 200_000  # inner cells: passing bounds takes a second there, programs are counted apart
_FIXED, _SEEN = 2.0, 1.0  # confidence of what is proven, and of what one of the tables says


@dataclass(frozen=True)
class IntegerReconstruction(PublicAttack):
    """Claims the people of one table that agrees with the release; those in every table first.

    Args:
      programs: Integer programs that are solved at most; what is left then is not proven.
    """

    programs: int = 300
    name: ClassVar[str] = "integer-reconstruction"
    about: ClassVar[About] = "inner"
    remedy: ClassVar[str] = (
        "publish fewer or coarser margins, or noise whose reach exceeds the counts (larger D)"
    )

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """Too large, or no counts."""
        if release.unit != COUNT:
            return "the values are no counts"
        if release.design.n_inner > _LARGEST:
            return f"more than {_LARGEST:,} inner cells"
        try:
            possible_sums(release)
        except ParameterError as error:
            return str(error).rstrip(".")
        return ""

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """Inner cells with people in them, by their positions; nothing that is claimed is drawn."""
        found = self.vary(release, rng)
        cells = np.flatnonzero((found.table > 0) & (found.is_fixed | found.is_free))
        sure = np.where(found.is_fixed[cells], _FIXED, _SEEN / (1.0 + found.table[cells]))
        return Claims.ranked(
            cells.tolist(), found.table[cells].tolist(), sure, proven=found.is_fixed[cells]
        )

    def vary(self, release: Protected, rng: np.random.Generator) -> Variability:
        """Which inner cells are the same in every table; needs nothing but the release."""
        X = release.design.matrix().tocsc()
        ends = possible_sums(release)
        return solution_variability(X, *ends, rng=rng, programs=self.programs)


def possible_sums(release: Protected) -> tuple[Real, Real, Real, Real]:
    """Smallest and largest true counts of published and of inner cells, from the statement."""
    if is_perturbed(release):
        told = ranges_of(release)
        return told.low, told.high, told.inner_low, told.inner_high
    n, z = release.design.n_inner, np.asarray(release.z, dtype=np.float64)
    low, high = z.copy(), z.copy()
    open_ = release.hidden | release.replaced
    # A hidden count is not empty where zeros are shown as such.
    low[open_] = 1.0 if release.statement.says("empty-cells") else 0.0
    high[open_] = np.inf
    if release.status is not None:
        empty = release.status == CellStatus.structural_zero
        low[empty] = high[empty] = 0.0
    return low, high, np.zeros(n), np.full(n, np.inf)
