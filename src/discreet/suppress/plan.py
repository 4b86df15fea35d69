"""What may be published of a table, and what is drawn: the plan that every choice follows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Array, Index, Mask, Real
from discreet.design.base import Design
from discreet.design.support import Lift
from discreet.protect.cells import lift_table, on_public_support
from discreet.rules.counts import lines
from discreet.suppress.pattern import Pattern, of_table
from discreet.tables.truth import TrueTable


@dataclass(frozen=True, eq=False)
class PublicationPlan:
    """What may be published of a table. Cells in neither list stay suppressed.

    Attributes:
      must: Positions of cells that are published in any case.
      order: Positions of the others that may be, most important first.
      zeros_are_public: Whether every empty published cell is published, as an empty one.
      widths_rise: Whether an interval for which there is no room below may lie above instead.
    """

    must: Index
    order: Index
    zeros_are_public: bool
    widths_rise: bool = False

    @property
    def publishable(self) -> Index:
        """Positions of all cells that may be published; those that are in any case come first."""
        return np.concatenate([self.must, self.order])


def cell_name(design: Design, position: int) -> str:
    """A published cell in words."""
    codes = design.cell(position) if design.axes else {"cell": str(position)}
    return ", ".join(f"{name}={code}" for name, code in codes.items()) or "the total"


def priority(pattern: Pattern, costs: Real) -> Real:
    """A number for each published cell: the larger, the sooner it is published.

    Costs come first; where they tie, cells with large neighbours do. Cells in lines that have a
    sensitive cell already are suppressed rather than others.
    """
    design = pattern.design
    near = np.asarray(design.aggregate(design.adjoint(costs)), dtype=np.float64)
    near /= max(float(near.max(initial=0.0)), 1.0)
    # Neighbours break ties and no more: whole costs differ by at least one, and 0.99 is less.
    is_whole = bool((costs == np.rint(costs)).all())
    tie = 1.0 if is_whole else 1e-6 * float(np.abs(costs).max(initial=0.0))
    # A cell none of whose lines has a sensitive cell counts as three times as expensive: its
    # suppression would need further ones in all its lines, and protect nothing there.
    return (costs + 0.99 * tie * near) * (1.0 + 2.0 * (1.0 - _share_of_useful_lines(pattern)))


def _share_of_useful_lines(pattern: Pattern) -> Real:
    """The share of each cell's lines that have a sensitive cell."""
    n = len(pattern.z)
    needed, total = np.zeros(n), np.zeros(n)
    for line in lines(pattern.design):
        sensitive = np.zeros(n, dtype=bool)
        sensitive[line.parent[pattern.primary[line.child]]] = True
        needed[line.child] += sensitive[line.parent]
        total[line.child] += 1
    return np.divide(needed, total, out=np.ones(n), where=total > 0)


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
    return lift_table(table, _lift_to_doubted_cells(design), with_inner=True)


def _lift_to_doubted_cells(design: Design) -> Lift[Design]:
    """To the design with every inner cell that lies in no empty published cell."""
    whole = design.public()
    is_empty = whole.to_public_cells(np.zeros(design.n_published, dtype=np.int64), outside=1)
    doubted = np.flatnonzero(whole.design.adjoint(is_empty) == 0)
    if len(doubted) == design.n_inner:
        return Lift(design, slice(None), slice(None))
    wider = whole.design.restricted(doubted, occurring=True).design
    return Lift(wider, slice(None), np.searchsorted(doubted, whole.require_inner()))
