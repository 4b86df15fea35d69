"""Records of nobody with the sparsity of the paper's labour force file, which is not at hand.

Cells are drawn without replacement by a model with skewed main effects and two-way interactions;
then single cells are swapped until the numbers of non-empty two-way and three-way cells are
exactly those of the paper. Counts are drawn from the same model.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from discreet.arrays import Mask, Real, Whole
from discreet.design.base import Design
from discreet.errors import InfeasibleError
from discreet.facade.table import Table
from discreet.randomness import stream

_MOST_ROUNDS = 5_000
_CHOICE = 10
_AT_ONCE = 5  # share of the gap that is swapped at once


@dataclass(frozen=True)
class Sparsity:
    """Variables and sparsity of a table.

    Attributes:
      sizes: Number of categories by variable.
      skews: How unequal the categories of each variable are: the k-th has weight k to the minus.
      interaction: Standard deviation of the two-way interactions of all variables but `flat`.
      flat: A variable that is independent of the others, such as time.
      records: Number of records.
      inner: Number of non-empty inner cells.
      two_way: Number of non-empty two-way cells.
      three_way: Number of non-empty three-way cells.
    """

    sizes: dict[str, int]
    skews: tuple[float, ...]
    interaction: float
    flat: str
    records: int
    inner: int
    two_way: int
    three_way: int

    def margins(self, order: int) -> list[tuple[str, ...]]:
        """All margins with so many variables."""
        return list(combinations(self.sizes, order))

    def design(self, order: int) -> Design:
        """All margins with so many variables, published."""
        return Design.product(self.sizes, self.margins(order))


LABOUR_FORCE = Sparsity(
    sizes={"AGE": 7, "HOURREAS": 19, "ISCO1D": 12, "REFWEEK": 52, "SIZEFIRM": 6},
    skews=(0.9, 3.3, 0.9, 0.0, 0.675),
    interaction=0.3,
    flat="REFWEEK",
    records=478_173,
    inner=46_689,
    two_way=2_727,
    three_way=24_224,
)
"""Section 4 of the paper."""


def stand_in(shape: Sparsity = LABOUR_FORCE, seed: int = 1) -> Table:
    """A table of invented records with exactly this sparsity, publishing all three-way margins.

    Args:
      shape: Variables and sparsity.
      seed: Root of the streams of random numbers.
    """
    log_p = _model(shape, stream(seed, "stand-in, model"))
    rng = stream(seed, "stand-in, cells")
    rank = log_p + rng.gumbel(size=log_p.size)  # the largest are a draw without replacement
    taken = np.zeros(log_p.size, dtype=bool)
    taken[np.argpartition(-rank, shape.inner - 1)[: shape.inner]] = True
    taken = _swap_cells(taken, rank, shape, rng)
    return Table.from_inner(shape.design(3), _counts(taken, log_p, shape.records, rng))


def _model(shape: Sparsity, rng: np.random.Generator) -> Real:
    """Logarithms of the cells' weights."""
    names, sizes = list(shape.sizes), list(shape.sizes.values())
    log_p = np.zeros(sizes)
    for place, (n, skew) in enumerate(zip(sizes, shape.skews, strict=True)):
        effect = -skew * np.log1p(rng.permutation(n))
        log_p += effect.reshape([n if k == place else 1 for k in range(len(sizes))])
    for pair in combinations(range(len(sizes)), 2):
        if shape.flat not in (names[pair[0]], names[pair[1]]):
            around = [n if k in pair else 1 for k, n in enumerate(sizes)]
            log_p += shape.interaction * rng.normal(size=around)
    return log_p.ravel()


def _swap_cells(taken: Mask, rank: Real, shape: Sparsity, rng: np.random.Generator) -> Mask:
    """Swap cells until the non-empty two-way and three-way cells are as many as wanted.

    While three-way cells are corrected, no swap by itself changes two-way cells; several at once
    may, so both are looked at until they are right.
    """
    two, three, taken = shape.design(2), shape.design(3), taken.copy()
    for _ in range(_MOST_ROUNDS):
        gaps = [
            wanted - int(np.count_nonzero(_count_taken(design, taken)))
            for design, wanted in ((two, shape.two_way), (three, shape.three_way))
        ]
        if gaps == [0, 0]:
            return taken
        design, gap, kept = (two, gaps[0], None) if gaps[0] else (three, gaps[1], two)
        some, none = range(1, abs(gap) + 1), range(1)
        n = max(1, abs(gap) // _AT_ONCE)
        eligible = _eligible(taken, design, kept, 0, some if gap > 0 else none)
        entering = _among_best(rank, eligible, n, rng)
        taken[entering] = True
        eligible = _eligible(taken, design, kept, 1, none if gap > 0 else some)
        leaving = _among_best(-rank, eligible, n, rng)
        taken[leaving[: len(entering)]] = False
        taken[entering[len(leaving) :]] = False
    raise InfeasibleError(
        f"no table with {shape.two_way:,} non-empty two-way and {shape.three_way:,} three-way "
        "cells was found by swapping cells."
    )


def _count_taken(design: Design, taken: Mask) -> Whole:
    """Number of taken cells in each published cell."""
    return np.asarray(design.aggregate(taken.astype(np.int64)))


def _eligible(taken: Mask, design: Design, kept: Design | None, cells: int, wanted: range) -> Mask:
    """Cells to take (`cells` 0) or to give up (1) that fill or empty a wanted number of others."""
    found = _touches(design, taken, cells, wanted) & (taken == bool(cells))
    allowed = True if kept is None else _touches(kept, taken, cells, range(1))
    return np.asarray(found & allowed)


def _touches(design: Design, taken: Mask, cells: int, wanted: range) -> Mask:
    """Inner cells in a wanted number of published cells that hold so many taken cells."""
    found = design.adjoint((_count_taken(design, taken) == cells) * 1.0)
    return np.asarray((found >= wanted.start) & (found < wanted.stop))


def _among_best(rank: Real, eligible: Mask, n: int, rng: np.random.Generator) -> Whole:
    """Some of the eligible cells of highest rank, at random, so that swaps do not undo others."""
    places = np.flatnonzero(eligible)
    if not len(places):
        raise InfeasibleError("no cell can be swapped without changing other margins.")
    best = places[np.argsort(-rank[places])[: _CHOICE * n]]
    return rng.permutation(best)[:n]


def _counts(taken: Mask, log_p: Real, records: int, rng: np.random.Generator) -> Whole:
    """One record for each cell, and the others by the model."""
    y = taken.astype(np.int64)
    p = np.exp(log_p[taken] - log_p.max())
    y[taken] += rng.multinomial(records - int(y.sum()), p / p.sum())
    return y
