"""The constants of least absolute deviation and of the primal-dual method, with their reasons."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """When to restart, which cells to work on, how the ridge falls, and which tables are small.

    Attributes:
      step: Share of the largest step at which the iteration is stable.
      restart_enough: Fall of the fixed-point error after which a restart pays in any case.
      restart_some: Fall after which a restart pays once the error grows again.
      restart_late: Share of all steps after which a restart is due (Lu & Yang 2024 take 0.36).
      largest_turn: Factor by which the balance of primal and dual steps may change at a restart;
        what moved since the last one is a rough guide only.
      look_every: Steps after which cells that were left out are looked at again. A look costs as
        much as thirty steps on a sparse table.
      inactive: Zero cells are left out if their slope is below minus this share of the largest
        weight; less lets cells in and out all the time.
      worthwhile: Share of cells above which leaving some out saves neither time nor memory.
      piece: Inner cells whose published cells are listed at a time to judge each on its own.
      compact: Share of published cells to keep above which leaving out the others saves nothing.
      shortest: Step of an empty cell under a Poisson loss, as a share of the mean positive one's.
      far_below: Share of the mean size below which cells take shorter steps.
      cost_levels: Classes of published cells by what they cost, when a dual vector is made feasible
        at the least cost; a class takes one pass over the cells that make it infeasible.
      check_every: Steps after which losses and gaps are computed.
      first_ridge: The first ridge, times the largest weight over the largest inner cell; more
        leaves the table nearly empty.
      ridge_fall: Factor by which the ridge falls. Below the ridge that is small enough steps
        become many and dear; above it they are wasted.
      last_ridge: The ridge at which the search gives up, in the units of the first one.
      follows: Steps with one ridge up to which the run without goes on from there where that
        has a smaller loss; later it knows more of the dual.
      known: Gap, times the tolerance, between the smallest loss seen and its bound below which the
        ridge can be judged without further steps of the other run.
      blame: The ridge is to blame for a loss above the smallest one seen when that is more than
        so many times what unfinished steps cost; less is often due to these.
      settled: Share of the widest gap of a single cell that unfinished steps of either run may have
        for the ridge to be to blame for it.
      own_count: Gap that a cell may have for itself, in counts.
      own_share: The same as a share of its residual, in counts.
      small_loss: A loss below this share of the weighted data is measured against that share.
      most_entries: Inner times published cells up to which a table is small. A linear program and
        the Newton steps after it take some tenths of a second there; where noise is tiny beside
        the counts, hundreds of Newton steps take up to ten.
      same: Prices and slopes this near their bounds, relative to the weights, are at them.
      spare: Share of the largest ridge that proves the choice, lest rounding errors spoil it.
      newton_steps: Newton steps at most.
      resolved: Gradient, relative to the largest published value, that rounding errors leave.
      damping: Share of the gradient on the diagonal of Newton's systems.
      least_damping: The least on that diagonal, as dependent margins make it singular.
      bisections: Halvings of a Newton step; the next one corrects what they leave.
    """

    step: float = 0.998
    restart_enough: float = 0.2
    restart_some: float = 0.8
    restart_late: float = 0.36
    largest_turn: float = 2.0
    look_every: int = 200
    inactive: float = 0.005
    worthwhile: float = 0.7
    piece: int = 500_000
    compact: float = 0.9
    shortest: float = 0.01
    far_below: float = 1e-3
    cost_levels: int = 16
    check_every: int = 200
    first_ridge: float = 10.0
    ridge_fall: float = 0.1
    last_ridge: float = 1e-8
    follows: int = 1000
    known: float = 2.0
    blame: float = 2.0
    settled: float = 0.5
    own_count: float = 0.1
    own_share: float = 1e-4
    small_loss: float = 1e-4
    most_entries: int = 1_000_000
    same: float = 1e-9
    spare: float = 0.5
    newton_steps: int = 500
    resolved: float = 1e-13
    damping: float = 1e-3
    least_damping: float = 1e-11
    bisections: int = 20


SCHEDULE = Schedule()
