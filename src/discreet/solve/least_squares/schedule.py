"""The constants of least squares fits, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LeastSquaresSchedule:
    """Which way a fit takes.

    Attributes:
      few_published: Share of the inner cells up to which published ones are few enough for passes
        that store nothing; with more, their vectors are long and their systems hard.
      most_variables: Flat variables of which an analysis of variance is made at most; the effects
        of twelve are 4,096.
      longest_axis: Categories of an axis whose eigenvectors are computed, some seconds at most.
      zero: Share of the largest eigenvalue below which another is a rounding error.
      same: Relative difference below which weights are the same.
      chosen: Share of the full crossing that chosen cells must be for its basis to help.
      safely: Part of what a certificate allows that a fit may leave.
      gap: Factor between one weight and the next from which the upper ones are held.
      dense: Inner cells of designs whose variances are computed by dense algebra: a second.
      rank: Share of the largest singular value of a design below which another is a rounding error.
    """

    few_published: float = 0.125
    most_variables: int = 12
    longest_axis: int = 2_000
    zero: float = 1e-12
    same: float = 1e-9
    chosen: float = 0.25
    safely: float = 0.1
    gap: float = 30.0
    dense: int = 1_000
    rank: float = 1e-9


@dataclass(frozen=True)
class GoalSchedule:
    """What a certificate allows.

    Attributes:
      choice: Times the tolerance: what the choice among equal fits may be off.
      excess: Of the smallest norm: what a norm may exceed it by where cells are not judged.
      resolved: Share of its size to which a margin that is held can be told from another.
      rounding: Of the terms of a gradient: what double precision leaves.
    """

    choice: float = 100.0
    excess: float = 0.05
    resolved: float = 1e-12
    rounding: float = 1e-13


@dataclass(frozen=True)
class ConjugateSchedule:
    """The constants of conjugate gradients.

    Attributes:
      digits: By how much residuals may fall before they are computed anew where stiff margins are
        taken out: rounding hides more than nine digits of stiff directions.
      longest: Steps after which they are in any case.
      near: Times its limit: what a residual that seemed to be within may be; another run would
        take many steps to gain so little.
      stuck: Share of the last residual that is no progress: rounding forbids more.
    """

    digits: float = 1e-9
    longest: int = 5_000
    near: float = 2.0
    stuck: float = 0.5


@dataclass(frozen=True)
class DualSchedule:
    """The constants of Newton's method on the dual along a ridge.

    Attributes:
      never_stored: Inner cells from which passes that store nothing beat gathered cells.
      most_with_levels: Share of the inner cells that hierarchies may publish; with more, active
        sets are faster.
      lower: Factor by which the ridge falls; each stage starts near its end with a tenth.
      floor: Lowest ridge, relative to the typical weight of all margins of a cell together: below
        it conjugate gradients slow down, and moving the centre is cheaper.
      loose: A stage may leave this part of the gradient that the last one ended with.
      stages: Stages after which the fit gives up.
      most_gradients: Conjugate gradient steps after which it does; then another method takes over.
      most_degenerate: The same where fewer cells are positive than there are unknowns: Newton
        systems are nearly singular then, and conjugate gradients on these cells are faster.
      most_unstored: The same where the table cannot be stored, so that no other method can.
      exact: Weight of exact margins, times the largest of the others.
      safely: Part of what a certificate allows that the method may leave.
    """

    never_stored: int = 50_000
    most_with_levels: float = 0.125
    lower: float = 0.1
    floor: float = 1e-3
    loose: float = 0.002
    stages: int = 60
    most_gradients: int = 1_500
    most_degenerate: int = 100
    most_unstored: int = 20_000
    exact: float = 1e8
    safely: float = 0.5


LEAST_SQUARES, GOAL = LeastSquaresSchedule(), GoalSchedule()
CONJUGATE, DUAL = ConjugateSchedule(), DualSchedule()
