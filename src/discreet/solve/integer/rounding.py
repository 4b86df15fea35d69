"""Rounding real inner cells down or up to whole numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.arrays import Array, Mask, Real, Whole
from discreet.design.base import Design
from discreet.solve.integer.domain import Domain
from discreet.solve.integer.neighbourhood import repaired
from discreet.solve.integer.problem import Found, Problem, describe
from discreet.solve.integer.remainders import Remainders
from discreet.solve.integer.schedule import SCHEDULE


def independent(probability: Real, rng: np.random.Generator) -> Mask:
    """Choose each cell with its probability, independently of the others."""
    return rng.random(len(probability)) < probability


def systematic(probability: Real, rng: np.random.Generator) -> Mask:
    r"""Choose cells with given probabilities so that their number is fixed, or nearly.

    Cell `i` is chosen when a point :math:`u + k`, :math:`k = 0, 1, \dots`, falls into its piece
    of the cumulated probabilities, with one uniform `u`.

    Promise: each cell is chosen with exactly its probability; the number of chosen cells in any
    run of neighbouring cells differs from its expectation by less than one.
    """
    ends = np.floor(np.cumsum(probability) - rng.random() + 1.0 + 1e-12)
    return np.diff(ends, prepend=0.0) > 0.5


def controlled(design: Design, y: Array, *, rng: np.random.Generator) -> Found:
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
    from discreet.solve.integer.cube import rounded_up  # start-up time: Numba

    two_way = is_two_way(design)
    start = rounded_up(design, left, SCHEDULE.blocks if two_way else SCHEDULE.blocks[:1], rng)
    problem = _rounding_problem(design, left)
    if not problem.violations(problem.deviation(start)).any():
        return describe(problem, start)
    exact = _by_program(problem, left.fraction, rng) if two_way else None
    return describe(problem, _mended(problem, start, rng) if exact is None else exact)


def _mended(problem: Problem, start: Whole, rng: np.random.Generator) -> Whole:
    """A point near the start that keeps the limits, as far as search and programs find one."""
    from discreet.solve.integer.search import Search  # start-up time: Numba

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


def balanced(design: Design, y: Array, *, rng: np.random.Generator) -> Whole:
    """Round every inner cell down or up at random, without bias and with sums kept (cube method).

    Cells are moved together so that no sum leaves the whole numbers around it; where no group of
    cells can be moved any more, sums are let go little by little, those of the fewest cells first.

    Promise: the expected value of every cell, inner or published, is its real value; in a two-way
    table every published cell is rounded down or up (with up to 600 rows and columns). In other
    tables sums stay near, but not always within one.
    Cost: 24,000 cells under three two-way margins take a few seconds.

    See Deville & Tillé (2004).
    """
    from discreet.solve.integer.cube import rounded_up  # start-up time: Numba

    left = Remainders.of_reals(y)
    return left.whole + rounded_up(design, left, SCHEDULE.blocks, rng)
