"""The constants of searches over whole numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """How long searches go on, how they cool and mend, and up to which sizes programs are solved.

    Costs and temperatures are in losses of a typical smallest step, or of one published cell of it
    where that is said.

    Attributes:
      fewest_sweeps: Sweeps over the cells that any search makes; fewer leave cells untouched.
      most_sweeps: Sweeps after which small problems have long frozen.
      small: Proposals up to which tiny problems may be swept more often; they cost nothing.
      sweep_at_once: Proposals between two looks at the clock and two reports of progress.
      quenches: Sweeps downhill at most, at the end of a stage, in pairs.
      quench_share: One part in so many of a stage's sweeps at most goes downhill only.
      blocked_cost: What a forbidden published value costs, in losses of one published cell.
      annealing: Share of the effort before limits are looked at; they break rarely and late.
      mending: Share of the effort at which mending ends, and lowering the loss within limits goes
        on.
      polish_heat: First and last temperature of that end.
      polish_excess: What breaking a limit by one costs there: never worth it.
      serial: Look-ups per sweep below which threads cost more than they save.
      far: A rise of more than this many temperatures is never accepted, so it need not be drawn.
      near: Partners of a pair are drawn this near in the order of the cells, or anywhere; near
        cells share more published ones.
      tries: Member cells tried for each violated cell.
      partners: Compensating cells tried for each of them.
      excess: Cost of breaking a limit by one while mending, in losses of one published cell.
      heat: Temperature while mending, in the same unit: a violation may move to other cells.
      tenure: Steps of mending for which a moved cell is left alone.
      relisted: Members of violated cells are listed anew after a step for each so many inner cells,
        so that listing them does not cost more than mending them.
      patience: Rounds of mending without fewer violations before giving up.
      program_sizes: Inner cells that an integer program may move, in growing neighbourhoods.
      nodes: Branch-and-bound nodes of one program, times the inner cells it may move.
      program_effort: Simplex iterations times columns, of all programs together: about a minute.
      worthwhile: A size is gone through again when no more than this much excess is left.
      rise: Steps that a cell with a gap may rise in a program, besides the largest excess.
      reach: How often weight spreads from published to inner cells and back to find neighbours.
      network_cells: Inner cells up to which networks are solved exactly without being asked.
      rounding_cells: Fractional cells up to which a two-way table is rounded exactly.
      cube_cells: Fractional cells up to which the cube method runs.
      rounding_efforts: Proposals to mend a rounding, more only where limits are still broken.
      rounding_heat: First temperature of that search, which must not leave the neighbourhood.
      blocks: Cells that the cube method moves together: few at first, which is fast, then as many
        as two-way tables of 600 rows and columns need to keep every sum.
      let_go: Share of the sums that the cube method lets go at a time where no cell moves; all but
        the first few are then still kept.
      extra_rounds: Rounds of exchanging cells in a greedy choice, besides one for each chosen cell.
      leverage_cells: Inner cells up to which leverages are computed from a dense matrix.
      draw: Weight that draws an inner cell to its fit, beside a typical published cell.
      loose_draw: The same where only ties are broken.
      heaviest: Weight of a published cell in a search for a fit, beside a typical one; with more
        nothing else would move.
      near_heat: First and last temperature of a search near a fit.
      downhill_heat: The same where it only goes downhill.
      exchanged_share: Part of the filled cells that are exchanged at first, under a cap.
      exchanges: Small cells that are exchanged one by one, under a cap.
    """

    fewest_sweeps: int = 10
    most_sweeps: int = 4000
    small: int = 1_000_000
    sweep_at_once: int = 2_000_000
    quenches: int = 50
    quench_share: int = 8
    blocked_cost: float = 10.0
    annealing: float = 0.7
    mending: float = 0.85
    polish_heat: tuple[float, float] = (0.08, 0.01)
    polish_excess: float = 1e3
    serial: int = 200_000
    far: float = 30.0
    near: int = 32
    tries: int = 8
    partners: int = 10
    excess: float = 1e5
    heat: float = 4e5
    tenure: int = 50
    relisted: int = 100
    patience: int = 400
    program_sizes: tuple[int, ...] = (200, 600, 2000, 6000, 20_000)
    nodes: int = 40_000
    program_effort: float = 2e8
    worthwhile: float = 0.9
    rise: int = 6
    reach: int = 3
    network_cells: int = 20_000
    rounding_cells: int = 200_000
    cube_cells: int = 2_000_000
    rounding_efforts: tuple[float, ...] = (1e6, 1e7)
    rounding_heat: float = 0.1
    blocks: tuple[int, ...] = (64, 1000)
    let_go: float = 0.1
    extra_rounds: int = 100
    leverage_cells: int = 4000
    draw: float = 0.05
    loose_draw: float = 1e-6
    heaviest: float = 5.0
    near_heat: tuple[float, float] = (0.1, 0.01)
    downhill_heat: tuple[float, float] = (1e-3, 1e-3)
    exchanged_share: float = 0.25
    exchanges: int = 20


SCHEDULE = Schedule()
