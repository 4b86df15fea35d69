"""Rounding real inner cells down or up to whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.errors import DataError
from discreet.solve.integer.domain import Domain, Whole
from discreet.solve.integer.problem import Found, Problem, describe
from discreet.solve.integer.remainders import Remainders
from discreet.solve.integer.schedule import SCHEDULE

if TYPE_CHECKING:
    from discreet.solve.integer.cube_kernels import Cube

Real = NDArray[np.float64]
_OPEN = 1e-7  # fractions this far from 0 and 1 are still to be decided


def independent(probability: Real, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose each cell with its probability, independently of the others."""
    return rng.random(len(probability)) < probability


def systematic(probability: Real, rng: np.random.Generator) -> NDArray[np.bool_]:
    r"""Choose cells with given probabilities so that their number is fixed, or nearly.

    Cell `i` is chosen when a point :math:`u + k`, :math:`k = 0, 1, \dots`, falls into its piece
    of the cumulated probabilities, with one uniform `u`.

    Promise: each cell is chosen with exactly its probability; the number of chosen cells in any
    run of neighbouring cells differs from its expectation by less than one.
    """
    ends = np.floor(np.cumsum(probability) - rng.random() + 1.0 + 1e-12)
    return np.diff(ends, prepend=0.0) > 0.5


def controlled(design: Design, y: NDArray[Any], *, rng: np.random.Generator) -> Found:
    r"""Round every inner cell down or up so that the published cells are rounded down or up too.

    .. math:: u_j \in \{\lfloor y_j\rfloor, \lceil y_j\rceil\},\quad
              \lfloor x_k^\top y\rfloor \le x_k^\top u \le \lceil x_k^\top y\rceil.

    The start is drawn by the cube method, so that no cell is favoured. Published cells that it
    leaves further away are mended: by a linear program with random costs in two-way tables, in
    others by a search that changes the start as little as possible, and integer programs around
    what the search leaves.

    Promise: in a two-way table every published cell is its sum rounded down or up; in other
    tables wherever search and programs find it possible (`Found.violations` counts the
    exceptions), however large the counts are.
    Cost: seconds for 10⁵ cells, a minute or more where sums are hard to keep.
    """
    left = Remainders.of_reals(y)
    found = _controlled(design, left, rng)
    return replace(found, y=left.whole + found.y, z=design.aggregate(left.whole) + found.z)


def controlled_multiples(design: Design, y: Whole, base: int, *, rng: np.random.Generator) -> Found:
    r"""Round counts down or up to multiples of a base so that published cells are so, too.

    .. math:: u_j \in \{b\lfloor y_j/b\rfloor, b\lceil y_j/b\rceil\},\quad
              b\lfloor x_k^\top y/b\rfloor \le x_k^\top u \le b\lceil x_k^\top y/b\rceil.

    Remainders are whole numbers, so a published cell that is a multiple stays one at any size.
    Otherwise as `controlled`.

    Returns:
      `y` and `z` are multiples of the base; deviations and what follows from them are in steps of
      the base.
    """
    left = Remainders.of_counts(y, base)
    found = _controlled(design, left, rng)
    rounded = base * (left.whole + found.y)
    return replace(found, y=rounded, z=design.aggregate(rounded))


def _controlled(design: Design, left: Remainders, rng: np.random.Generator) -> Found:
    """Which inner cells go up: `y` of the result is 1 for those, 0 for the others."""
    two_way = is_two_way(design)
    start = _cube(design, left, SCHEDULE.network_widths if two_way else SCHEDULE.widths[:1], rng)
    problem = _rounding_problem(design, left)
    if not problem.violations(problem.deviation(start)).any():
        return describe(problem, start)
    exact = _by_program(problem, left.fraction, rng) if two_way else None
    return describe(problem, _mended(problem, start, rng) if exact is None else exact)


def _mended(problem: Problem, start: Whole, rng: np.random.Generator) -> Whole:
    """A point near the start that keeps the limits, as far as search and programs find one."""
    from discreet.solve.integer.neighbourhood import repaired
    from discreet.solve.integer.search import Search

    low, high = (problem.target + limit for limit in problem.limits)
    near = np.clip(problem.design.aggregate(start), np.rint(low), np.rint(high))
    nearest = replace(problem, target=near, low=low - near, high=high - near)
    for proposals in SCHEDULE.rounding_efforts:
        search = Search(proposals=proposals, hot=SCHEDULE.rounding_heat)
        found = search(nearest, start, rng=rng)
        if not found.violations:
            return found.y
    return repaired(problem, found.y)


def _rounding_problem(design: Design, left: Remainders) -> Problem:
    """Cells and sums rounded down or up, whole parts left out."""
    low, high, target = left.sums(design)
    return Problem(
        design,
        target,
        Domain.interval(np.zeros(design.n_inner, dtype=np.int64), (left.over > 0).astype(np.int64)),
        low=low - target,
        high=high - target,
    )


def is_two_way(design: Design) -> bool:
    """Whether a design has two variables, so that its sums may form a network."""
    over = design.over_variables
    return over is not None and sum(n > 1 for n in over.shape) <= 2


def _by_program(problem: Problem, fraction: Real, rng: np.random.Generator) -> Whole | None:
    """A random vertex of the table's rounding polytope, if it is whole.

    The sums of a two-way table, with a hierarchy on one of its variables too, form a network, so
    every vertex is whole. With hierarchies on both it may not be.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    if len(problem.rows) > SCHEDULE.rounding_cells:
        return None
    X = problem.design.matrix()[problem.rows].astype(np.float64).T.tocsr()
    low, high = (np.rint(problem.target + limit) for limit in problem.limits)
    cost = rng.random(len(problem.rows)) - fraction[problem.rows]
    found = milp(cost, constraints=LinearConstraint(X, low, high), bounds=Bounds(0, 1))
    if found.x is None or np.abs(found.x - np.rint(found.x)).max() > 1e-6:
        return None
    up = np.zeros(len(fraction), dtype=np.int64)
    up[problem.rows] = np.rint(found.x)
    return up


def balanced(
    design: Design,
    y: NDArray[Any],
    *,
    rng: np.random.Generator,
    widths: Sequence[int] | None = None,
) -> Whole:
    """Round every inner cell down or up at random, without bias and with sums kept (cube method).

    Cells are moved together so that no sum leaves the whole numbers around it; where no group of
    cells can be moved any more, sums are let go one by one, those of the fewest cells first.

    Promise: the expected value of every cell, inner or published, is its real value; in a two-way
    table every published cell is rounded down or up (with up to 600 rows and columns). In other
    tables sums stay near, but not always within one.
    Cost: 24,000 cells under three two-way margins take a few seconds.

    Args:
      design: The design.
      y: Inner cells, none negative.
      rng: Source of randomness.
      widths: How many independent cells are looked at together, in one pass after another.

    See Deville & Tillé (2004).
    """
    left = Remainders.of_reals(y)
    chosen = widths or (SCHEDULE.network_widths if is_two_way(design) else SCHEDULE.widths)
    return left.whole + _cube(design, left, chosen, rng)


def _cube(
    design: Design, left: Remainders, widths: Sequence[int], rng: np.random.Generator
) -> Whole:
    """One for the inner cells that the cube method rounds up, zero for the others."""
    from discreet.solve.integer.cube_kernels import Cube, fly, window_of

    rows = _nearby_first(design, np.flatnonzero(left.over))
    if len(rows) > SCHEDULE.cube_cells:
        raise DataError(
            f"the cube method holds up to {SCHEDULE.cube_cells:,} fractional cells, got "
            f"{len(rows):,}. Round with method='margins' or 'total'."
        )
    X = design.matrix()[rows]
    low, _, sums = left.sums(design)
    cube = Cube(
        X.indptr.astype(np.int64),
        X.indices.astype(np.int64),
        left.fraction[rows],
        sums - low,
        np.zeros(design.n_published, dtype=np.bool_),
        np.bincount(X.indices, minlength=design.n_published),
    )
    random = rng.integers(2**63, size=1).astype(np.uint64)
    for width in widths:
        window, waiting_before = window_of(width, design.n_published), 2 * len(rows)
        while (waiting := _undecided(cube.part)).size < 0.9 * waiting_before:
            waiting_before = waiting.size
            fly(cube, window, waiting, random)
    while (waiting := _undecided(cube.part)).size:
        _let_go(cube, X[waiting].indices)
        fly(cube, window, waiting, random)
    up = np.zeros(design.n_inner, dtype=np.int64)
    up[rows] = rng.random(len(rows)) < cube.part
    return up


def _let_go(cube: Cube, cells: NDArray[Any]) -> None:
    """Hold fewer of the sums of some cells, those of the fewest inner cells first."""
    held = np.unique(cells[~cube.loose[cells]])
    order = held[np.argsort(cube.size[held], kind="stable")]
    cube.loose[order[: int(np.ceil(SCHEDULE.let_go * len(order)))]] = True


def _undecided(part: Real) -> NDArray[np.int64]:
    return np.flatnonzero((part > _OPEN) & (part < 1 - _OPEN)).astype(np.int64)


def _nearby_first(design: Design, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Inner cells in an order in which neighbours share many sums.

    The binary digits of the codes are interleaved, so that blocks of cells in a row are cubes.
    """
    codes = [code[rows].astype(np.int64) for code in design.inner_codes()]
    digits = max((int(code.max(initial=0)).bit_length() for code in codes), default=0)
    keys = [code >> bit & 1 for bit in range(digits) for code in codes]
    return rows[np.lexsort(keys)] if keys else rows
