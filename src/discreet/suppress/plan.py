"""What may be published of a table, and what is drawn: the plan that every choice follows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Array, Index, Mask, Real
from discreet.design.base import Cell, Design
from discreet.design.codes import cell_text
from discreet.design.support import Embedding
from discreet.errors import DataError
from discreet.protect.cells import embed_table, on_public_support
from discreet.rules.counts import lines
from discreet.suppress.pattern import of_table
from discreet.tables.protected import CellStatus, Protected
from discreet.tables.truth import TrueTable


@dataclass(frozen=True, eq=False)
class PublicationPlan:
    """What may be published of a table. Cells in neither list stay suppressed.

    Attributes:
      must: Positions of cells that are published in any case.
      others: Positions of the others that may be.
      zeros_are_public: Whether every empty published cell is published, as an empty one.
      widths_rise: Whether an interval for which there is no room below may lie above instead.
    """

    must: Index
    others: Index
    zeros_are_public: bool
    widths_rise: bool = False

    @property
    def publishable(self) -> Index:
        """Positions of all cells that may be published; those that are in any case come first."""
        return np.concatenate([self.must, self.others])


def cell_name(design: Design, position: int) -> str:
    """A published cell in words."""
    codes = design.cell(position) if design.axes else {"cell": str(position)}
    return cell_text(codes)


def named_cells(design: Design) -> list[tuple[frozenset[tuple[str, str]], Cell]]:
    """All published cells by their codes, totals left out."""
    cells = (design.cell(k) for k in range(design.n_published))
    return [(frozenset((str(v), str(c)) for v, c in cell.items()), cell) for cell in cells]


KEPT = 1e-3
"""What it costs to hide a cell again that an earlier edition hid, as a share of what it would."""


def hidden_before(design: Design, earlier: Sequence[Protected]) -> list[Cell]:
    """Published cells that some earlier release of other records did not show."""
    hidden: set[frozenset[tuple[str, str]]] = set()
    for release in earlier:
        if release.status is not None:
            is_hidden = (release.status != CellStatus.published).tolist()
            names = zip(named_cells(release.design), is_hidden, strict=True)
            hidden |= {name for (name, _), is_one in names if is_one}
    return [cell for name, cell in named_cells(design) if name in hidden] if hidden else []


def room_below(design: Design, z: Array) -> Real:
    """How far each count can go down until parts that are not empty would be."""
    least = np.asarray(z > 0, dtype=np.float64)
    place = design.inner_in_published()
    least = np.maximum(least, design.aggregate(np.where(place >= 0, least[place], 0.0)))
    along = lines(design)
    # A cell is at least the sum of what its parts are at least, along any line. Lines cross, so a
    # bound that one raises can raise another; they are passed until none moves.
    before = least - 1
    while (least > before).any():
        before = least.copy()
        for line in along:
            least = np.maximum(least, np.bincount(line.parent, least[line.child], len(least)))
    return np.asarray(z - least, dtype=np.float64)


SPREAD, DECOYS = 0.3, 0.15
"""Standard deviation of costs in logarithms, and the share of counts that are decoys."""
REACH = 2
"""Counts of up to so many times a threshold can be decoys."""
_WORDS = 2.0**32  # keyed hashes lie below this


def draw_factors(table: TrueTable) -> Real | None:
    r"""A factor on the cost of each published cell; `None` where the table has no secret.

    Which cells are hidden is published too. Where costs follow from the true values alone, whoever
    runs the program on every table with the same shown cells can rule out those that would have
    been hidden in another way. So each cost has a factor :math:`e^{\sigma g}`, with `g` a normal
    number made from the secret, the data set and the cell's codes, and from nothing else: other
    editions, rules, tables and efforts have the same factors, and no two tell more than one.
    """
    if table.secret is None:
        return None
    from scipy.special import ndtri  # start-up time

    shares = _draw_shares(table, "cost of hiding a cell")
    return np.asarray(np.exp(SPREAD * ndtri(shares)), dtype=np.float64)


def draw_decoys(table: TrueTable, most: int) -> Mask:
    """Counts above a threshold that are protected as if they were below, drawn like costs.

    That some cells are enough to protect the sensitive ones tells about those; decoys among them
    need protection too, and nobody knows which they are.
    """
    if table.secret is None:
        return np.zeros(table.design.n_published, dtype=bool)
    is_near = (table.z > most) & (table.z <= REACH * most)
    return np.asarray(is_near & (_draw_shares(table, "decoy") < DECOYS))


def _draw_shares(table: TrueTable, purpose: str) -> Real:
    """Uniform numbers for published cells, from secret, data set and what identifies each cell."""
    secret, design = table.secret, table.design
    assert secret is not None  # noqa: S101 - callers looked
    names = range(design.n_published)
    cells = [design.cell(k) if design.axes else {"cell": str(k)} for k in names]
    words = secret.mix_keys(secret.cell_marks(cells), f"{purpose}: {table.data_set.name}")
    return np.asarray((words + 0.5) / _WORDS, dtype=np.float64)


_MOST_CELLS = 5_000_000  # of a full crossing that is searched for inner cells in doubt


def with_doubted_cells(table: TrueTable, *, zeros_are_public: bool) -> TrueTable:
    """The table with all inner cells that somebody could doubt, most of them empty.

    Which inner cells occur is confidential, and the intruder does not know it. Where empty
    published cells are shown as such, he rules out the inner cells in them and no others.

    Args:
      table: Any table.
      zeros_are_public: Whether every empty published cell is shown as empty.
    """
    # Of a table of magnitudes it is public which cells have no contributor.
    if "known" in of_table(table):
        return table
    if not zeros_are_public:
        return on_public_support(table, with_inner=True)
    design = table.design
    if table.inner is None or design.support != "occurring":
        return table
    # Beyond this size the inner cells that occur stand for all. A proof that moves no others holds
    # on the full crossing as well; only fewer proofs are found.
    if math.prod(len(axis) for axis in design.axes) > _MOST_CELLS:
        return table
    return embed_table(table, _embed_in_doubted_cells(design), with_inner=True)


# Shares of the largest value by which sums of a table that stands in may be off: a rough fit first,
# since proofs that use all the room below a cell need it to the last digit.
_ROUGH, _MISSED = 1e-6, 1e-9
_LITTLE = 1e-2  # of a count, below which a cell of such a table is empty


def inner_cells_with(design: Design, z: Array) -> Real:
    """Inner cells of some table with these published cells, where the true ones were not read.

    What the public can rule out follows from the shown cells alone: from any table with the same
    published cells there are the same changes as from the true one.
    """
    from discreet.solve.least_squares.least_squares import LeastSquares  # start-up time: Numba
    from discreet.solve.non_negative.non_negative import NonNegative  # start-up time: Numba

    # With more of them a fit would take longer than all proofs.
    if design.n_inner > _MOST_CELLS:
        raise DataError(
            f"the inner cells of this table were not read, and {design.n_inner:,} are too many to "
            "find some that have its sums. Tabulate with inner cells (fewer variables at once, or "
            "support='occurring')."
        )
    largest, values = max(1.0, float(np.abs(z).max(initial=0.0))), z.astype(np.float64)
    if (z < 0).any():
        y = LeastSquares()(design, values).y
    else:
        count = max(1.0, _ROUGH * largest)
        rough = NonNegative(count=count)(design, values).y
        # Programs violate a bound by 1e-9, which is much beside a cell that holds little more.
        rough = np.where(rough < _LITTLE * count, 0.0, rough)
        # Cells move in proportion to what is in them, so that none becomes negative or is filled.
        y = np.maximum(LeastSquares(start=rough, variance=rough)(design, values).y, 0.0)
    missed = np.abs(design.aggregate(y) - z)
    if missed.max(initial=0.0) > _MISSED * largest:
        raise DataError(
            f"cell {cell_name(design, int(missed.argmax()))} is {missed.max():.3g} away from what "
            "the other cells leave: no table has all of these published cells. Check the sums."
        )
    # With a sum just below its cell there would be no room to take all of the cell away.
    return np.asarray(y * (1 + _MISSED), dtype=np.float64)


def _embed_in_doubted_cells(design: Design) -> Embedding[Design]:
    """To the design with every inner cell that lies in no empty published cell."""
    whole = design.public()
    is_empty = whole.to_public_cells(np.zeros(design.n_published, dtype=np.int64), outside=1)
    doubted = np.flatnonzero(whole.design.adjoint(is_empty) == 0)
    if len(doubted) == design.n_inner:
        return Embedding(design, slice(None), slice(None))
    wider = whole.design.restricted(doubted, occurring=True).design
    return Embedding(wider, slice(None), np.searchsorted(doubted, whole.require_inner()))
