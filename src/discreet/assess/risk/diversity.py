"""How varied the sensitive variable is within groups that look alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Index, Real
from discreet.assess.measure import NotApplicableError, Score
from discreet.assess.risk.groups import GroupMeasure, Groups
from discreet.facade.table import Table
from discreet.tables.protected import Protected

TOLERANCE = 1e-9


@dataclass(frozen=True)
class LDiversity(GroupMeasure):
    r"""Least number of sensitive categories in a group, by the released frequencies.

    :math:`\min_q \#\{s : y_{qs} > 0\}` over the groups that have records and are released as not
    empty; or, with `entropy`, :math:`\min_q \exp(-\sum_s \pi_{qs}\log\pi_{qs})` with the shares
    :math:`\pi`. Range: 1 upwards, to the number of categories. Higher is safer; at 1 some group is
    released with one category only. A property of the release, true or not. The breakdown has a
    row for each group.

    >>> from discreet.assess.cells import toy
    >>> LDiversity(sensitive="b")(*toy([[3, 1], [0, 2]], [[3, 0], [1, 2]])).value
    1.0

    Args:
      entropy: Whether categories count by how evenly they are filled.
      tolerance: Shares of a group up to this size are nothing.

    See Machanavajjhala et al. (2007).
    """

    name = "l-diversity"
    range = (1.0, np.inf)
    direction = "higher"

    entropy: bool = False
    tolerance: float = TOLERANCE

    def __call__(self, table: Table, release: Protected) -> Score:
        """Take the measure."""
        groups = self.groups(table, release)
        chosen, shares = _released_shares(groups)
        if self.entropy:
            logs = np.log(np.where(shares > 0, shares, 1.0))
            diversity = np.exp(-(shares * logs).sum(axis=1))
        else:
            diversity = (shares > self.tolerance).sum(axis=1).astype(np.float64)
        parts = {**groups.layout.labels(chosen), "diversity": diversity}
        return self.score(diversity.min(), groups.layout.on, parts)


@dataclass(frozen=True)
class TCloseness(GroupMeasure):
    r"""Largest distance of a group's sensitive distribution from the overall one.

    With the released shares :math:`\pi_{qs}` of group q and :math:`\pi_s` overall,
    :math:`\max_q \tfrac12\sum_s|\pi_{qs} - \pi_s|`, the earth mover's distance with equal steps;
    or, with `ordered`, :math:`\max_q \frac{1}{S-1}\sum_{s<S}|\sum_{r\le s}(\pi_{qr} - \pi_r)|`,
    steps along the order of the categories. Over groups that have records and are released as not
    empty. Range: 0 to 1. Lower is safer. A property of the release, true or not. The breakdown has
    a row for each group.

    >>> from discreet.assess.cells import toy
    >>> TCloseness(sensitive="b")(*toy([[3, 1], [0, 2]], [[3, 1], [1, 3]])).value
    0.25

    Args:
      ordered: Whether the sensitive categories have an order.

    See Li, Li & Venkatasubramanian (2007).
    """

    name = "t-closeness"

    ordered: bool = False

    def __call__(self, table: Table, release: Protected) -> Score:
        """Take the measure."""
        groups = self.groups(table, release)
        chosen, shares = _released_shares(groups)
        overall = groups.released.sum(axis=0) / groups.released.sum()
        gap = shares - overall
        if self.ordered:
            steps = max(gap.shape[1] - 1, 1)
            distance = np.abs(np.cumsum(gap, axis=1)[:, :-1]).sum(axis=1) / steps
        else:
            distance = 0.5 * np.abs(gap).sum(axis=1)
        parts = {**groups.layout.labels(chosen), "distance": distance}
        return self.score(distance.max(), groups.layout.on, parts)


def _released_shares(groups: Groups) -> tuple[Index, Real]:
    """Groups with records that are released as not empty, and the shares of their categories."""
    size = groups.released.sum(axis=1)
    chosen = np.flatnonzero(groups.occurs & (size > 0))
    if not len(chosen):
        raise NotApplicableError("every group with records is released as empty.")
    return chosen, groups.released[chosen] / size[chosen, None]
