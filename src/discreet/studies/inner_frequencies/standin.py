"""Records of nobody with the sparsity of the paper's labour force file, which is not public.

Cells are drawn without replacement by a model with skewed main effects and two-way interactions;
then single cells are swapped until the numbers of non-empty two-way and three-way cells are
exactly those of the paper. Counts are drawn from the same model.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.design.table import Table
from discreet.errors import InfeasibleError
from discreet.randomness import stream

Mask = NDArray[np.bool_]
Real = NDArray[np.float64]

_MOST_SWAPS = 20_000


@dataclass(frozen=True)
class Shape:
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


LABOUR_FORCE = Shape(
    sizes={"AGE": 7, "HOURREAS": 19, "ISCO1D": 12, "REFWEEK": 52, "SIZEFIRM": 6},
    skews=(0.8, 3.5, 0.8, 0.0, 0.6),
    interaction=0.75,
    flat="REFWEEK",
    records=478_173,
    inner=46_689,
    two_way=2_727,
    three_way=24_224,
)
"""Section 4 of the paper."""


def stand_in(shape: Shape = LABOUR_FORCE, seed: int = 1) -> Table:
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
    two, three = shape.design(2), shape.design(3)
    taken = _swapped(taken, rank, two, shape.two_way, None)
    taken = _swapped(taken, rank, three, shape.three_way, two)
    return Table.from_inner(three, _counts(taken, log_p, shape.records, rng))


def _model(shape: Shape, rng: np.random.Generator) -> Real:
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


def _swapped(taken: Mask, rank: Real, design: Design, wanted: int, kept: Design | None) -> Mask:
    """Swap cells until so many published cells are non-empty; those of `kept` stay as they are."""
    taken = taken.copy()
    for _ in range(_MOST_SWAPS):
        gap = wanted - int(np.count_nonzero(_filled(design, taken)))
        if gap == 0:
            return taken
        if gap > 0:
            _enter(taken, rank, design, kept, range(1, gap + 1))
            _leave(taken, rank, design, kept, range(1))
        else:
            _leave(taken, rank, design, kept, range(1, 1 - gap))
            _enter(taken, rank, design, kept, range(1))
    raise InfeasibleError(f"no table with {wanted:,} non-empty cells was found by swapping cells.")


def _filled(design: Design, taken: Mask) -> NDArray[np.int64]:
    """Number of taken cells in each published cell."""
    return np.asarray(design.aggregate(taken.astype(np.int64)))


def _enter(taken: Mask, rank: Real, design: Design, kept: Design | None, fills: range) -> None:
    """Take the best cell that fills so many empty published cells, and none of the kept ones."""
    eligible = ~taken & _touches(design, taken, 0, fills)
    if kept is not None:
        eligible &= _touches(kept, taken, 0, range(1))
    taken[_best(rank, eligible)] = True


def _leave(taken: Mask, rank: Real, design: Design, kept: Design | None, empties: range) -> None:
    """Give up the worst cell that empties so many published cells, and none of the kept ones."""
    eligible = taken & _touches(design, taken, 1, empties)
    if kept is not None:
        eligible &= _touches(kept, taken, 1, range(1))
    taken[_best(-rank, eligible)] = False


def _touches(design: Design, taken: Mask, cells: int, wanted: range) -> Mask:
    """Inner cells in a wanted number of published cells that hold so many taken cells."""
    found = design.adjoint((_filled(design, taken) == cells) * 1.0)
    return np.asarray((found >= wanted.start) & (found < wanted.stop))


def _best(rank: Real, eligible: Mask) -> int:
    if not eligible.any():
        raise InfeasibleError("no cell can be swapped without changing other margins.")
    places = np.flatnonzero(eligible)
    return int(places[np.argmax(rank[places])])


def _counts(taken: Mask, log_p: Real, records: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """One record for each cell, and the others by the model."""
    y = taken.astype(np.int64)
    p = np.exp(log_p[taken] - log_p.max())
    y[taken] += rng.multinomial(records - int(y.sum()), p / p.sum())
    return y
