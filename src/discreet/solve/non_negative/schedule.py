"""The tuning constants of non-negative fits, and the reason for each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NonNegativeSchedule:
    """When which method is used.

    Attributes:
      large: Inner cells from which other methods beat active sets.
      starts: Shares of the first ridge from which steps within bounds start: the next one where
        the norm of what they led to is not proven to be small enough.
      proof: Share of the first ridge at which the table of smallest norm is found that has the
        same published cells, where the start does not prove it.
      light: Weight of a held margin, times that of others, in steps within bounds: a light one
        keeps the equations easy, and shifts do the rest.
      equal: The same for multipliers of bounds, where full crossings need equal weights.
      fast: Share of what the last stage of a ridge path reached at which its ridge is low enough:
        lower ones would make the point larger, and rounding errors with it.
      gain: Share of what was reached that is a gain.
      most_in_vain: Stages of a ridge path without one before giving up.
      rounding: Share of the largest cell below which a negative one is a rounding error.
      small: Entries of a dense matrix up to which its factors beat conjugate gradients.
      dense: Entries up to which they are tried where conjugate gradients failed.
      most_deflated: Held margins that are taken out of the equations at most: the dense factor of
        more would be too large.
    """

    large: float = 20_000
    starts: tuple[float, ...] = (0.01, 0.001, 0.0001)
    proof: float = 0.01
    light: float = 0.2
    equal: float = 1.0
    fast: float = 0.01
    gain: float = 0.9
    most_in_vain: int = 20
    rounding: float = 1e-12
    small: float = 1e6
    dense: float = 2e7
    most_deflated: int = 5_000


@dataclass(frozen=True)
class HeldSchedule:
    """The constants of held margins.

    Attributes:
      projection: Tolerance at which contradictions among heavy margins are taken out.
    """

    projection: float = 1e-6


@dataclass(frozen=True)
class SystemSchedule:
    """Constants of the ridge path that depend on how its systems are solved.

    Attributes:
      lower: Factor between two ridges.
      least: Lowest ridge, relative to the first: rounding spoils the point below it, and conjugate
        gradients become slow.
      exact: Weight of exact margins, times the largest of the others.
      heaviest: Weight of held margins at most, times that of others; shifts do the rest.
      is_direct: Whether by a dense factor, for which no weight is too heavy.
      deflates: Whether held margins are taken out of the equations; else they must be light.
      safely: Part of what a certificate allows at which the path ends: factors gain a digit in a
        step or two, which keeps the fit of a fit the same.
      few: Share of the positive cells that may have changed when a stage ends: the next goes on.
      tight: Residual of conjugate gradients, in units of the ridge times a typical cell.
      sharper: Factor by which these two fall from stage to stage.
    """

    lower: float = 0.3
    least: float = 5e-4
    exact: float = 1.0
    heaviest: float = 1.0
    is_direct: bool = False
    deflates: bool = False
    safely: float = 1.0
    few: float = 0.05
    tight: float = 0.2
    sharper: float = 0.5


DIRECT = SystemSchedule(0.1, 1e-6, 1e5, 1e12, is_direct=True, safely=0.1, few=0.0, tight=0.0)
"""For tables that are small, or where conjugate gradients fail."""

DEFLATED = SystemSchedule(exact=1e4, heaviest=1e6, deflates=True)
"""For other tables."""

LIGHT = SystemSchedule(heaviest=0.2)
"""For more held margins than can be deflated, and the start of steps within bounds."""


@dataclass(frozen=True)
class RidgePathSchedule:
    """The constants of the ridge path.

    Attributes:
      again: Ridge, relative to the first, from which it falls anew where the lowest was not enough:
        high ones leave smaller rounding errors.
      share: Part of what a certificate allows that conjugate gradients need not go below.
      newton: Newton steps for one ridge.
      kicked: Share of the cells at zero with a negative gradient of which at least one answers at
        once.
      overshoot: Slope at the end of a step, relative to that at its start, from which it is cut.
      bisections: Halvings of a line search.
      raised: Factor by which the diagonal of a system is raised that rounding makes indefinite.
    """

    again: float = 0.01
    share: float = 0.03
    newton: int = 100
    kicked: float = 0.1
    overshoot: float = 0.1
    bisections: int = 30
    raised: float = 10.0


@dataclass(frozen=True)
class BoundedSchedule:
    """The constants of conjugate gradients within bounds.

    Attributes:
      share: Part of the largest gradient that one run of steps may leave.
      steps: Steps of one run at most; then cells that became zero are left out.
      safely: Part of what a certificate allows at which the method ends.
      same: A deviation of which this part is left after a shift did not answer to it.
      most_times: Most multiples of a deviation that are shifted at once.
      raised: Factor by which held margins weigh more after a run that was cheap.
      heaviest: Times the weight of other margins: what they weigh at most.
      patience: Runs without a gain before the method gives up.
      gain: Factor by which the violation must fall to count as a gain.
    """

    share: float = 0.1
    steps: int = 1000
    safely: float = 0.8
    same: float = 0.8
    most_times: float = 64.0
    raised: float = 2.0
    heaviest: float = 20.0
    patience: int = 40
    gain: float = 0.9


@dataclass(frozen=True)
class MultiplierSchedule:
    """The constants of multipliers of bounds.

    Attributes:
      gain: Part of its residual that a system may be left with; the next one goes on from there.
      rounds: Guesses of the cells at zero after which the method gives up; fifteen are usual.
      steps: Steps of conjugate gradients for one guess.
      flat: Curvature of a direction below which single precision cannot tell it from none.
      few: Share of cells that change below which the fit is judged, which costs two sums.
      safely: Part of what a certificate allows at which the method ends; the last guesses gain more
        than a digit each, so little is spent on it.
    """

    gain: float = 0.05
    rounds: int = 50
    steps: int = 200
    flat: float = 1e-8
    few: float = 1e-3
    safely: float = 0.2


@dataclass(frozen=True)
class InfeasibilitySchedule:
    """The constants of the proof that exact margins cannot be met.

    Attributes:
      accuracy: Of the fit from which the proof is taken.
      tries: Ridges after which it is given up.
      rounding: Share of the terms of a sum that may be a rounding error.
    """

    accuracy: float = 1e-5
    tries: int = 20
    rounding: float = 1e-12


SCHEDULE = NonNegativeSchedule()
HELD = HeldSchedule()
RIDGE_PATH = RidgePathSchedule()
BOUNDED = BoundedSchedule()
MULTIPLIERS = MultiplierSchedule()
INFEASIBILITY = InfeasibilitySchedule()
