"""The constants of linear programs, eliminations and searches for changes, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ProgramSchedule:
    """The constants of a linear program.

    Attributes:
      feasible: How far a solution may violate a row or a bound.
      largest: Values above this are scaled down, so that the tolerance stays above rounding errors.
    """

    feasible: float = 1e-9
    largest: float = 1e4


@dataclass(frozen=True)
class ProjectionSchedule:
    """The constants of projections by least squares.

    Attributes:
      precision: Tolerance of one round, as small as least squares can be asked for.
      accepted: Share of a vector's length that may remain where equations say something.
      most_steps: Steps of one round.
      rounds: The remainder is projected again, which brings it down to rounding errors.
    """

    precision: float = 1e-15
    accepted: float = 1e-10
    most_steps: int = 100_000
    rounds: int = 3


@dataclass(frozen=True)
class IntervalSchedule:
    """The constants of feasibility intervals.

    Attributes:
      rounding: Sums that are no whole numbers may be off by this share of the largest one.
      close: Bounds this near to each other, relative to their size, are the same.
      first: Targets that are tried before other processes are started, to see how long one takes.
      worth_starting: Seconds of work from which on processes are started.
    """

    rounding: float = 1e-12
    close: float = 1e-7
    first: int = 16
    worth_starting: float = 10.0


@dataclass(frozen=True)
class ChangeSchedule:
    """The constants of searches for changes of sums.

    Attributes:
      unmoved: Moves below this share of the goal are rounding errors.
      trials: How often programs of sums near a goal are tried before it is asked whether they do.
      seldom: In what share of the trials they must have been enough to be tried further.
      box_effort: Inner cells that make as much effort in boxes as a sum in a program, where boxes
        along all variables are looked at.
      near_box_effort: The same where only boxes along the variables of the goal are.
      paid: Changes that cost less are made of sums that are free.
      easy: Sums from which on the effort of a program grows with their fourth power.
      core: What share of a part is found first; the rest closes its changes.
      width: Sums of an equation that are not free, of those found first.
      closing_rounds: Rounds in which sums are added that lie in two equations of the part.
    """

    unmoved: float = 1e-7
    trials: int = 50
    seldom: float = 0.05
    box_effort: int = 25
    near_box_effort: int = 250
    paid: float = 1.0
    easy: int = 10_000
    core: float = 1 / 3
    width: int = 6
    closing_rounds: int = 2


@dataclass(frozen=True)
class BoxSchedule:
    """The constants of changes along boxes.

    Attributes:
      most_axes: Variables of a table, at most: the corners of a box are bits of a word, and ways to
        put variables into groups become many.
      most_cells: Cells of the crossing of all variables, for which places are listed.
      near_rows: Inner cells of a sum from which boxes along its own variables start.
      far_rows: Inner cells from which boxes along other variables start, which are many.
    """

    most_axes: int = 5
    most_cells: int = 20_000_000
    near_rows: int = 32
    far_rows: int = 8


@dataclass(frozen=True)
class CoverSchedule:
    """The constants of covers and of choices that meet them.

    Attributes:
      effort: Covers times nodes of trees of choices, all choices together: about ten seconds. A
        limit in seconds would depend on the machine.
      root: Nodes that the first of a tree counts for.
      nothing: Weights below this are rounding errors.
      missing: Covers that are missed by less are met.
    """

    effort: int = 60_000
    root: int = 10
    nothing: float = 1e-7
    missing: float = 1e-6


PROGRAM = ProgramSchedule()
PROJECTION = ProjectionSchedule()
INTERVAL = IntervalSchedule()
CHANGE = ChangeSchedule()
BOX = BoxSchedule()
COVER = CoverSchedule()
