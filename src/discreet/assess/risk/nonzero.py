"""What a positive value proves: that somebody is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.assess.cells import CLASS_STARTS, NEARLY_ZERO, PairMeasure, by_class
from discreet.assess.measure import NO_MECHANISM, NotApplicableError, Score
from discreet.facade.table import Table
from discreet.tables.protected import Protected

if TYPE_CHECKING:
    from discreet.noise.matrix import TransitionMatrix


@dataclass(frozen=True)
class CertainNonzero(PairMeasure):
    r"""How sure a reader of a positive value can be that the cell is not empty.

    .. math:: \#\{f > 0, g > 0\} / \#\{g > 0\}

    Range: 0 to 1; at 1 every positive value in this release tells the truth. Lower is safer. The
    breakdown gives the same by class of the released value: small values are the critical ones.

    >>> from discreet.assess.cells import NEARLY_ZERO, toy
    >>> CertainNonzero()(*toy([1, 4, 0, 0], [2, 3, 1, 0])).value
    0.6666666666666666

    Args:
      tolerance: Released values up to this size are zeros, for fits with decimals.
      classes: First value of each class of released values.

    See Langsrud & Lupp (2021), section 6.
    """

    name = "certain-nonzero"
    kind = "risk"

    tolerance: float = NEARLY_ZERO
    classes: tuple[int, ...] = CLASS_STARTS

    def __call__(self, table: Table, release: Protected) -> Score:
        """Take the measure."""
        pair = self.pairs(table, release)
        positive = pair.g > self.tolerance
        right = pair.f[positive] > 0
        value = right.mean() if len(right) else 0.0
        parts = by_class(pair.g[positive], right, self.classes, {"share": np.mean})
        return self.score(value, pair.on, parts)


@dataclass(frozen=True)
class ProvenNonzero(PairMeasure):
    r"""Share of the filled cells whose released value the mechanism cannot make from zero.

    .. math:: \#\{f > 0, \Pr(g \mid 0) = 0\} / \#\{f > 0\}

    A reader who knows the mechanism knows for certain that these are not empty. Values are the
    unfitted ones of the mechanism, whole numbers. Range: 0 to 1. Lower is safer.

    >>> from discreet.assess.cells import NEARLY_ZERO, toy
    >>> from discreet.noise import drop_add
    >>> ProvenNonzero(mechanism=drop_add())(*toy([1, 4, 0, 2], [0, 5, 0, 1])).value
    0.6666666666666666

    Args:
      mechanism: The transition matrix that was applied to each cell.
    """

    name = "proven-nonzero"
    kind = "risk"

    mechanism: TransitionMatrix | None = None

    def __call__(self, table: Table, release: Protected) -> Score:
        """Take the measure."""
        if self.mechanism is None:
            raise NotApplicableError(NO_MECHANISM)
        pair = self.counts(table, release)
        if (pair.g != np.rint(pair.g)).any():
            raise NotApplicableError("released values have decimals; assess them before fitting.")
        filled = pair.f > 0
        if not filled.any():
            raise NotApplicableError("every true value is zero.")
        chances, moves = self.mechanism.probabilities(0), self.mechanism.deviations
        possible = moves[chances > 0]
        return self.score(np.mean(~np.isin(pair.g[filled], possible)), pair.on)
