"""What the mechanism itself promises: ε and δ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from discreet.assess.measure import (
    NO_MECHANISM,
    POSITIVE,
    BaseMeasure,
    NotApplicableError,
    Score,
)
from discreet.facade.table import Table
from discreet.tables.protected import Protected

if TYPE_CHECKING:
    from discreet.noise.matrix import TransitionMatrix


@dataclass(frozen=True)
class _Mechanism(BaseMeasure):
    """A property of the noise, from its transition matrix or the release's privacy statement."""

    kind = "risk"
    figure: ClassVar[str]

    mechanism: TransitionMatrix | None = None

    def __call__(self, table: Table, release: Protected) -> Score:
        """Take the measure."""
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

    >>> from discreet.assess.cells import toy
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
    r"""Largest mass by which a count exceeds :math:`e^\varepsilon` times its neighbour's law.

    .. math:: \delta = \max_{|i - i'| = 1} \sum_j \max(0, P_{ij} - e^\varepsilon P_{i'j})

    From the release's own privacy statement, otherwise from the mechanism, for one cell. Without
    a given ε it is the mass on outcomes that the neighbour cannot give at all: for noise that keeps
    zeros, the chance that a count of 1 proves itself. Range: 0 to 1. Lower is safer. The breakdown
    lists all pairs of neighbours.

    >>> from discreet.assess.cells import toy
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
