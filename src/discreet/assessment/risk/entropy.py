"""Risk from the law of the noise: entropy of the truth given the release, ε and δ of a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.arrays import Real
from discreet.assessment.cells import PairMeasure, finest_parts
from discreet.assessment.measure import (
    NO_MECHANISM,
    POSITIVE,
    BaseMeasure,
    NotApplicableError,
    Score,
)
from discreet.facade.table import Table
from discreet.noise.matrix import TransitionMatrix
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

    >>> from discreet.assessment.cells import toy
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


@dataclass(frozen=True)
class _Mechanism(BaseMeasure):
    """A property of the noise, from its transition matrix or the release's privacy statement."""

    kind = "risk"
    figure: ClassVar[str]

    mechanism: TransitionMatrix | None = None

    def __call__(self, table: Table, release: Protected) -> Score:
        stated = release.statement.privacy
        if stated is not None:
            return self.score(getattr(stated, self.figure), "the whole release")
        if self.mechanism is None:
            raise NotApplicableError(NO_MECHANISM)
        audit = self.mechanism.audit(getattr(self, "epsilon", None))
        columns = ("first", "second", "epsilon", "delta")
        parts = {name: [getattr(pair, name) for pair in audit.neighbours] for name in columns}
        return self.score(getattr(audit, self.figure), "one cell", parts)


class MechanismEpsilon(_Mechanism):
    r"""Largest log-ratio between the laws of neighbouring counts, on outcomes both can give.

    .. math:: \varepsilon = \max_{|i - i'| = 1}\;\max_{j: P_{ij}P_{i'j} > 0} \log(P_{ij}/P_{i'j})

    From the release's own privacy statement, for the whole of it and one unit added or removed (one
    replaced where margins are known); where it has none, from the mechanism, for one cell. Always
    read it with δ, which holds what only one neighbour can give. Range: 0 upwards. Lower is safer.
    The breakdown lists all pairs of neighbours.

    >>> from discreet.assessment.cells import toy
    >>> from discreet.noise import drop_add
    >>> round(MechanismEpsilon(mechanism=drop_add())(*toy([1], [1])).value, 4)
    1.0986

    Args:
      mechanism: The transition matrix that was applied to each cell.

    See Dwork & Roth (2014), Shlomo, Krenzke & Li (2019).
    """

    name = "mechanism-epsilon"
    figure = "epsilon"
    range = POSITIVE


@dataclass(frozen=True)
class MechanismDelta(_Mechanism):
    r"""Largest mass by which a count exceeds exp(ε) times its neighbour's law.

    .. math:: \delta = \max_{|i - i'| = 1} \sum_j \max(0, P_{ij} - e^\varepsilon P_{i'j})

    From the release's own privacy statement, otherwise from the mechanism, for one cell. Without
    a given ε it is the mass on outcomes that the neighbour cannot give at all: for noise that keeps
    zeros, the chance that a count of 1 proves itself. Range: 0 to 1. Lower is safer. The breakdown
    lists all pairs of neighbours.

    >>> from discreet.assessment.cells import toy
    >>> from discreet.noise import drop_add
    >>> round(MechanismDelta(mechanism=drop_add())(*toy([1], [1])).value, 4)
    0.6667
    >>> from discreet.noise import discrete_laplace
    >>> noise = discrete_laplace(epsilon=2, cap=7)
    >>> round(MechanismDelta(mechanism=noise, epsilon=2)(*toy([1], [1])).value, 9)
    6.33e-07

    Args:
      mechanism: The transition matrix that was applied to each cell.
      epsilon: Where δ is taken; the largest log-ratio by default.

    See Dwork & Roth (2014), Shlomo, Krenzke & Li (2019).
    """

    name = "mechanism-delta"
    figure = "delta"

    epsilon: float | None = None
