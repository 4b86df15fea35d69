"""Rounding real inner cells down or up to whole numbers.

The cube method (Deville & Tillé, 2004) makes random moves that keep sums until cells are whole. The
ways in which the cells of a block can be moved without changing a held sum are a vector space,
given by a basis. A move goes along one of its vectors until a cell or a sum is whole. From then on
that stays as it is, so the space has one dimension less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.arrays import Array, Index, Mask, Real, Whole
from discreet.design.base import Design
from discreet.errors import DataError
from discreet.solve.integer.problem import Domain, FoundTable, LatticeProblem, describe

WHOLE = 1e-7  # values this near to a whole number are taken to be it
_TOO_LARGE = 2**62
# Fractions are held as multiples of 2⁻⁴⁰, so that sums of up to 2²² of them are exact in 64 bits.
_FRACTION_GRID = 2**40
# However large a number is, and with it its rounding error, a quarter away from a whole number is
# not whole: beyond some 10¹⁵ every number would be taken for one.
_MOST_DOUBT = 0.25
_ROUNDING_ERROR = float(np.finfo(np.float64).eps)

# Fractional cells up to which programs keep the sums of a two-way table, and of others; and up to
# which the cube method runs, which lists their sums.
_NETWORK_CELLS, _PROGRAM_CELLS, _CUBE_CELLS = 200_000, 20_000, 2_000_000
# Cells that the cube method moves together: few at first, which is fast, then as many as two-way
# tables of 600 rows and columns need to keep every sum.
_BLOCKS = (64, 1000)
# A size of blocks is gone through again while at least a tenth of the cells get decided.
_WORTHWHILE = 0.9
# Share of the sums that the cube method lets go at a time where no cell moves; the others are still
# kept. Letting go of all at once would leave every remaining cell to chance.
_LET_GO = 0.1
# Fractional cells up to which a rounding that is to be quick is controlled, in two-way tables and
# in others (760 of a four-way table took eight seconds); and passes of those that are not: after
# 16 squared deviations hardly fall any more.
_CONTROLLED_NETWORK, _CONTROLLED_CELLS, _PASSES = 1_000, 200, 16
_OPEN = 1e-7  # fractions this far from 0 and 1 are still to be decided
# Proposals to mend a rounding; the second effort is made only where limits are still broken.
_MENDING_EFFORTS = (1e6, 1e7)
_MENDING_HEAT = 0.1  # low: the search must not leave the neighbourhood of the fair start


def choose_independently(probability: Real, rng: np.random.Generator) -> Mask:
    """Choose each cell with its probability, independently of the others."""
    return rng.random(len(probability)) < probability


def choose_systematically(probability: Real, rng: np.random.Generator) -> Mask:
    r"""Choose cells with given probabilities so that their number is fixed, or nearly.

    Cell `i` is chosen when a point :math:`u + k`, :math:`k = 0, 1, \dots`, falls into its piece
    of the cumulated probabilities, with one uniform `u`.

    Promise: each cell is chosen with exactly its probability; the number of chosen cells in any
    run of neighbouring cells differs from its expectation by less than one.
    """
    ends = np.floor(np.cumsum(probability) - rng.random() + 1.0 + 1e-12)
    return np.diff(ends, prepend=0.0) > 0.5


def spread_remainder(fraction: Real, rng: np.random.Generator) -> Whole:
    r"""Spread what fractions sum to over their cells, by a multinomial draw.

    The sum is rounded down or up at random, to :math:`N`, and :math:`N` ones fall into cells with
    probabilities in proportion to the fractions; several may fall into one.

    Promise: the expected value of each cell is its fraction; the sum is kept to less than one.
    """
    total = float(fraction.sum())
    if total <= 0:
        return np.zeros(len(fraction), dtype=np.int64)
    ones = int(np.floor(total + rng.random()))
    return rng.multinomial(ones, fraction / total).astype(np.int64)


def round_controlled(design: Design, y: Array, *, rng: np.random.Generator) -> FoundTable:
    r"""Round every inner cell down or up so that the published cells are rounded down or up too.

    .. math:: u_j \in \{\lfloor y_j\rfloor, \lceil y_j\rceil\},\quad
              \lfloor x_k^\top y\rfloor \le x_k^\top u \le \lceil x_k^\top y\rceil.

    The start is drawn by the cube method, so that no cell is favoured. Published cells that it
    leaves further away are mended by linear programs that change the start as little as possible,
    in large tables by a search, and by integer programs around what these leave.

    Promise: in a two-way table every published cell is its sum rounded down or up; in other
    tables wherever search and programs find it possible (`FoundTable.violations` counts the
    exceptions), however large the counts are.
    Cost: seconds for 10⁵ cells, a minute or more where sums are hard to keep.
    """
    left = Remainders.of_reals(y)
    found = _round_up_controlled(design, left, rng)
    return replace(found, y=left.whole + found.y, z=design.aggregate(left.whole) + found.z)


def round_near(design: Design, y: Array, *, rng: np.random.Generator) -> Whole:
    r"""Round every inner cell down or up so that published cells stay near, in no time.

    A cell takes whichever way leaves its published cells nearer to theirs, in squares, given the
    cells decided so far; a few more passes decide each of them once more. Tables in which few cells
    have a fraction are left to `round_controlled`, which takes longer and keeps more.

    Promise: inner cells move by less than one, and from the second pass on the sum of squared
    deviations of published cells does not rise. Measured: of the published cells of three-way
    tables 1 to 3 % moved by one or more, none by three; of five linked tables 14 %, by up to 5.4.
    Cost: passes × fractional cells × tables; 0.1 s for 500,000 cells.
    """
    from discreet.solve.integer.kernels import diffuse  # start-up time: compiled kernels

    whole, fraction = whole_and_fraction(y)
    rows = np.flatnonzero(fraction)
    if len(rows) <= (_CONTROLLED_NETWORK if is_two_way(design) else _CONTROLLED_CELLS):
        return round_controlled(design, y, rng=rng).y
    # In an order of chance: along rows of the table decisions would lean on each other.
    rows = rng.permutation(rows)
    up, error = np.zeros(len(rows), dtype=np.int64), np.zeros(design.n_published + 1)
    diffuse(design.members(rows), fraction[rows], up, error, _PASSES)
    whole[rows] += up
    return whole


def round_to_multiples(
    design: Design, y: Whole, base: int, *, rng: np.random.Generator
) -> FoundTable:
    r"""Round counts down or up to multiples of a base so that published cells are so, too.

    .. math:: u_j \in \{b\lfloor y_j/b\rfloor, b\lceil y_j/b\rceil\},\quad
              b\lfloor x_k^\top y/b\rfloor \le x_k^\top u \le b\lceil x_k^\top y/b\rceil.

    Remainders are whole numbers, so a published cell that is a multiple stays one at any size.
    Otherwise as `round_controlled`.

    Returns:
      `y` and `z` are multiples of the base; deviations and what follows from them are in steps of
      the base.
    """
    left = Remainders.of_counts(y, base)
    found = _round_up_controlled(design, left, rng)
    rounded = base * (left.whole + found.y)
    return replace(found, y=rounded, z=design.aggregate(rounded))


def _round_up_controlled(design: Design, left: Remainders, rng: np.random.Generator) -> FoundTable:
    """Which inner cells go up: `y` of the result is 1 for those, 0 for the others."""
    two_way = is_two_way(design)
    # Larger blocks keep more sums but take long; outside two-way tables the search mends the rest.
    start = choose_by_cube(design, left, _BLOCKS if two_way else _BLOCKS[:1], rng)
    low, high, target = left.sums(design)
    domain = Domain.interval(np.zeros(design.n_inner, dtype=np.int64), (left.over > 0).astype(int))
    problem = LatticeProblem(design, target, domain, low=low - target, high=high - target)
    if not problem.violations(problem.deviation(start)).any():
        return describe(problem, start)
    if len(problem.rows) <= (_NETWORK_CELLS if two_way else _PROGRAM_CELLS):
        from discreet.solve.integer.repair import (
            keep_limits_near,  # start-up time: compiled kernels
        )

        return describe(problem, keep_limits_near(problem, start, rng))
    return describe(problem, _mend_rounding(problem, start, rng))


def _mend_rounding(problem: LatticeProblem, start: Whole, rng: np.random.Generator) -> Whole:
    """A point near the start that keeps the limits, as far as search and programs find one."""
    from discreet.solve.integer.repair import repair_limits  # start-up time: compiled kernels
    from discreet.solve.integer.search import LatticeSearch  # start-up time: compiled kernels

    # The target is what the start has, brought within the limits: the search then changes little.
    low, high = (problem.target + limit for limit in problem.limits)
    near = np.clip(problem.design.aggregate(start), np.rint(low), np.rint(high))
    nearest = replace(problem, target=near, low=low - near, high=high - near)
    for proposals in _MENDING_EFFORTS:
        search = LatticeSearch(proposals=proposals, hot=_MENDING_HEAT)
        found = search(nearest, start, rng=rng)
        if not found.violations:
            return found.y
    return repair_limits(problem, found.y)


def is_two_way(design: Design) -> bool:
    """Whether a design has two variables, so that its sums may form a network."""
    over = design.over_variables
    return over is not None and sum(n > 1 for n in over.shape) <= 2


def round_balanced(design: Design, y: Array, *, rng: np.random.Generator) -> Whole:
    """Round every inner cell down or up at random, without bias and with sums kept (cube method).

    Cells are moved together so that no sum leaves the whole numbers around it; where no group of
    cells can be moved any more, sums are let go little by little, those of the fewest cells first.

    Promise: the expected value of every cell, inner or published, is its real value; in a two-way
    table every published cell is rounded down or up (with up to 600 rows and columns). In other
    tables sums stay near, but not always within one.
    Cost: 24,000 cells under three two-way margins take a few seconds.

    See Deville & Tillé (2004).
    """
    left = Remainders.of_reals(y)
    return left.whole + choose_by_cube(design, left, _BLOCKS, rng)


@dataclass(frozen=True, eq=False)
class Remainders:
    r"""Inner cells as whole parts and remainders, :math:`y_j = q_j + r_j/m` with `0 <= r_j < m`.

    Sums of remainders are exact and as small as the number of cells, so that whether a sum is
    whole does not depend on how large it is.
    """

    whole: Whole  # the whole parts `q`
    over: Whole  # the remainders `r`
    unit: int  # what makes a whole, `m`
    # How much of each remainder may be due to the rounding of real numbers; `None` where remainders
    # are exact.
    doubt: Real | None = None

    @classmethod
    def of_counts(cls, y: Whole, base: int) -> Remainders:
        """Counts in multiples of a base."""
        if (y < 0).any() or (y >= _TOO_LARGE).any():
            raise DataError(
                "counts must lie in 0..2**62 to be rounded to multiples; found at least one that "
                "does not."
            )
        whole, over = np.divmod(y, base)
        return cls(whole, over, base)

    @classmethod
    def of_reals(cls, y: Array) -> Remainders:
        """Real numbers in multiples of one, their fractions on a fine grid."""
        whole, fraction = whole_and_fraction(y)
        # A positive fraction stays one however small it is: the cell may still go up.
        unit = _FRACTION_GRID
        over = np.clip(np.rint(fraction * unit), fraction > 0, unit - 1).astype(np.int64)
        return cls(whole, over, unit, (over > 0) + _ROUNDING_ERROR * unit * (whole + fraction))

    @property
    def fraction(self) -> Real:
        """What each inner cell is above its whole part."""
        return self.over / self.unit

    def sums(self, design: Design) -> tuple[Whole, Whole, Real]:
        """Published cells of the remainders: rounded down, rounded up, and as they are.

        All three are equal where a sum is whole, or may be.
        """
        total = design.aggregate(self.over)
        below, rest = np.divmod(total, self.unit)
        above = below + (rest > 0)
        if self.doubt is not None:
            doubt = WHOLE * self.unit + design.aggregate(self.doubt)
            doubt = np.minimum(doubt, _MOST_DOUBT * self.unit)
            below, above = (
                np.where(self.unit - rest <= doubt, above, below),
                np.where(rest <= doubt, below, above),
            )
        return below, above, np.where(below < above, total / self.unit, below)


def whole_and_fraction(y: Array) -> tuple[Whole, Real]:
    """Whole parts and fractions; values that are whole but for rounding errors are whole."""
    real = np.asarray(y, dtype=np.float64)
    if not np.isfinite(real).all() or (real < -WHOLE).any():
        raise DataError(
            "inner cells must be finite and not negative to be rounded to counts. "
            "Fit them without negative values first (`release.fit(dc.NonNegative())`)."
        )
    if (real >= _TOO_LARGE).any():
        raise DataError(
            f"inner cells must lie below 2**62 to be rounded to counts, got {real.max():g}."
        )
    nearest = np.rint(real)
    is_whole = np.abs(real - nearest) <= np.clip(2 * _ROUNDING_ERROR * real, WHOLE, _MOST_DOUBT)
    whole = np.where(is_whole, nearest, np.floor(real))
    return whole.astype(np.int64), np.where(is_whole, 0.0, real - whole)


def choose_by_cube(
    design: Design, left: Remainders, blocks: Sequence[int], rng: np.random.Generator
) -> Whole:
    """One for the inner cells that the cube method rounds up, zero for the others.

    `blocks` says how many cells are moved together, in one pass after another.
    """
    rows = np.flatnonzero(left.over)
    # The binary digits of the codes are interleaved, so that blocks of cells in a row are cubes,
    # whose cells share many sums.
    codes = [code[rows].astype(np.int64) for code in design.inner_codes()]
    digits = max((int(code.max(initial=0)).bit_length() for code in codes), default=0)
    keys = [code >> bit & 1 for bit in range(digits) for code in codes]
    rows = rows[np.lexsort(keys)] if keys else rows
    if len(rows) > _CUBE_CELLS:
        raise DataError(
            f"the cube method holds up to {_CUBE_CELLS:,} fractional cells, got "
            f"{len(rows):,}. Round with method='margins' or 'total'."
        )
    flight = _Flight(design, left, rows, rng)
    for size in blocks:
        before = 2 * len(rows)
        while (waiting := flight.open_cells()).size < _WORTHWHILE * before:
            before = waiting.size
            flight.fly(waiting, size)
    while (waiting := flight.open_cells()).size:
        flight.let_go(waiting)
        flight.fly(waiting, size)
    up = np.zeros(design.n_inner, dtype=np.int64)
    # Fractions are 0 or 1 by now, within 10⁻⁷; what is left of them is drawn, lest it be a bias.
    up[rows] = rng.random(len(rows)) < flight.part
    return up


class _Flight:
    """Fractional cells on their way: fractions of the inner cells, sums, and which were let go."""

    def __init__(
        self, design: Design, left: Remainders, rows: Index, rng: np.random.Generator
    ) -> None:
        low, _, sums = left.sums(design)
        self.members = design.matrix()[rows]
        self.part, self.sums = left.fraction[rows], sums - low
        self.loose = np.zeros(design.n_published, dtype=np.bool_)
        self.size = np.bincount(self.members.indices, minlength=design.n_published)
        self.random = rng.integers(2**63, size=1).astype(np.uint64)

    def open_cells(self) -> Index:
        """The cells that are not whole yet."""
        return np.flatnonzero((self.part > _OPEN) & (self.part < 1 - _OPEN))

    def fly(self, waiting: Index, size: int) -> None:
        """Move cells, block by block."""
        from discreet.solve.integer.kernels import fly  # start-up time: compiled kernels

        members = self.members[waiting]
        owner = np.repeat(np.arange(len(waiting)), np.diff(members.indptr))
        for begin in range(0, len(waiting), size):
            chosen = waiting[begin : begin + size]
            entries = slice(*members.indptr[[begin, begin + len(chosen)]])
            cells, place = np.unique(members.indices[entries], return_inverse=True)
            counted = np.zeros((len(chosen), len(cells)))
            counted[owner[entries] - begin, place] = 1.0
            held = ~self.loose[cells]
            values = np.concatenate([self.part[chosen], self.sums[cells[held]]])
            fly(values, np.hstack([np.eye(len(chosen)), counted[:, held]]), self.random)
            self.part[chosen], self.sums[cells[held]] = np.split(values, [len(chosen)])

    def let_go(self, waiting: Index) -> None:
        """Hold fewer of the sums of some cells, those of the fewest inner cells first."""
        cells = self.members[waiting].indices
        held = np.unique(cells[~self.loose[cells]])
        order = held[np.argsort(self.size[held], kind="stable")]
        self.loose[order[: int(np.ceil(_LET_GO * len(order)))]] = True
