r"""How much the release tells about where a random record lies.

A record is in true cell j and seen in cell k. Of each cell :math:`m = \min(a, b)` records are taken
to have stayed; the others moved from the cells with a surplus in a to those with a surplus in b,
independently of each other. With both totals N, the uncertainty about the true cell given the
seen one is the conditional entropy under this coupling,

.. math::
   H(a|b) = -\sum\frac mN\log\frac mb - \sum\frac{a-m}N\log\frac{a-m}{N-\sum m}
            - \sum\frac{b-m}N\log\frac{b-m}b,

and :math:`RM = 1 - H(a|b)/H(a)`. Different totals are made equal by multiplying each table with
the other's total.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.arrays import Real
from discreet.assess.cells import PairMeasure, finest_parts
from discreet.assess.measure import NotApplicableError, Score
from discreet.facade.table import Table
from discreet.tables.protected import Protected


def entropy_risk(true: npt.ArrayLike, released: npt.ArrayLike, *, repaired: bool = False) -> float:
    """The share of the entropy of the true table that the released one removes.

    Released values below zero are set to zero. A table with all records in one cell has no
    entropy; its risk is 1, or, repaired, the share of records that stayed.

    >>> [round(entropy_risk([5, 5, 0], [5, 0, 5], repaired=r), 4) for r in (False, True)]
    [1.0, 0.5]

    Args:
      true: True values of the cells.
      released: Released values of the same cells.
      repaired: Whether records in cells that were empty add uncertainty; see `EntropyRisk`.
    """
    a = np.asarray(true, dtype=np.float64)
    b = np.maximum(np.asarray(released, dtype=np.float64), 0.0)
    if a.sum() <= 0 or b.sum() <= 0:
        raise NotApplicableError("a table without records has no entropy.")
    a, b = a / a.sum(), b / b.sum()
    m = np.minimum(a, b)
    stayed = min(float(m.sum()), 1.0)
    uncertainty = _conditional_entropy(a, b, m)
    if repaired:
        both = np.array([stayed, 1 - stayed])
        uncertainty += float(b[a == 0].sum()) * _minus_sum(both, both)
    entropy = _minus_sum(a, a)
    if entropy <= 0:
        return stayed if repaired else 1.0
    return float(np.clip(1 - uncertainty / entropy, 0.0, 1.0))


def _conditional_entropy(a: Real, b: Real, m: Real) -> float:
    moved = 1 - m.sum()
    stay = _minus_sum(m, np.divide(m, b, out=np.ones_like(m), where=b > 0))
    origin = _minus_sum(a - m, (a - m) / moved if moved > 0 else np.ones_like(m))
    arrive = _minus_sum(b - m, np.divide(b - m, b, out=np.ones_like(m), where=b > 0))
    return stay + origin + arrive


def _minus_sum(weights: Real, shares: Real) -> float:
    """Minus the sum of weights times logs, with 0 log 0 = 0."""
    logs = np.log(np.where((weights > 0) & (shares > 0), shares, 1.0))
    return -float(weights @ logs)


@dataclass(frozen=True)
class EntropyRisk(PairMeasure):
    r"""One minus the conditional entropy of the true table given the released one, as a share.

    :math:`RM = 1 - H(a|b)/H(a)`, for each published table that no other sums up to; the largest
    counts. Range: 0 (the release says nothing) to 1. Lower is safer. The breakdown has a row for
    each table.

    **Blind spot.** Records moved into a cell that was truly empty add no uncertainty: the
    measure takes it as known that they are false there. So a = (5, 5, 0), b = (5, 0, 5) scores 1,
    as if nothing had been changed; a reader of b does not know that. Repaired, such a record
    carries the doubt that an average record does:

    .. math:: H^*(a|b) = H(a|b) + \frac{1}{N}\sum_{a=0} b \cdot h\Bigl(\frac{\sum m}{N}\Bigr),
              \qquad h(p) = -p\log p - (1-p)\log(1-p)

    The repaired measure equals the plain one when no empty cell was filled, is never larger, and
    lies below 1 whenever one was.

    >>> from discreet.assess.cells import toy
    >>> round(EntropyRisk()(*toy([6, 4], [4, 6])).value, 4)
    0.4325
    >>> [EntropyRisk(repaired=r)(*toy([5, 5, 0], [5, 0, 5])).value for r in (False, True)]
    [1.0, 0.5]

    Args:
      repaired: Whether records in cells that were empty add uncertainty.

    See Antal, Shlomo & Elliot (2014), Shlomo, Krenzke & Li (2019), Table 4.
    """

    kind = "risk"

    repaired: bool = False

    @property
    def name(self) -> str:
        """The plain or the repaired measure."""
        return "repaired-entropy-risk" if self.repaired else "entropy-risk"

    def __call__(self, table: Table, release: Protected) -> Score:
        """Take the measure."""
        pair = self.pairs(table, release)
        finest = {name for name, _ in finest_parts(release.design)} | {"inner"}
        rows = [
            (name, entropy_risk(f, g, repaired=self.repaired))
            for name, f, g in pair.blocks()
            if name in finest and f.sum() > 0 and g.sum() > 0
        ]
        if not rows:
            raise NotApplicableError("a table without records has no entropy.")
        names, risks = zip(*rows, strict=True)
        return self.score(max(risks), pair.on, {"table": names, "risk": risks})
