"""The proofs found so far, and what they still leave unproven."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.protect.suppress.pattern import Pattern
from discreet.protect.suppress.proofs import CLOSE, sensitive, views_of
from discreet.protect.suppress.sums import Sums
from discreet.solve.changes import Goal

if TYPE_CHECKING:
    from scipy.sparse import csc_array

Vector = NDArray[np.float64]
Places = NDArray[np.intp]

OPEN, EXEMPT = -1, -2
"""In place of a proof: there is none yet; none is needed."""


@dataclass(frozen=True, eq=False)
class Asked:
    """What has to be proven: a way for a sensitive cell to go up or down.

    Attributes:
      place: The sensitive cell or difference, by its place among the pattern's.
      total: Its sum.
      sign: Plus one for up, minus one for down.
      need: How far.
      known: Contributors × sums: the cells each is alone in.
      exempt: Asked × views: whether nothing needs to be proven to a contributor; the first view is
        everybody's.
      special: Asked, views and needs where a contributor is in the sensitive cell himself.
    """

    place: Places
    total: NDArray[np.int64]
    sign: Vector
    need: Vector
    known: Any
    exempt: NDArray[np.bool_]
    special: tuple[Places, Places, Vector]

    def __len__(self) -> int:
        return len(self.place)

    @property
    def views(self) -> int:
        """Number of contributors and everybody."""
        return int(self.exempt.shape[1])

    def held(self, views: Places) -> Places:
        """The sums that contributors know, all together."""
        return np.unique(self.known[views[views > 0] - 1].indices)

    def goal(self, item: int, views: Places) -> Goal:
        """What a change has to reach to prove one thing in some views."""
        need = self._need_of(item, views)
        return Goal(int(self.total[item]), float(self.sign[item]), need)

    def _need_of(self, item: int, views: Places) -> float:
        """What is needed against contributors: less where one alone is in the cell himself."""
        if len(views) == 1:
            found = np.flatnonzero((self.special[0] == item) & (self.special[1] == views[0]))
            if len(found):
                return float(self.special[2][found[0]])
        return float(self.need[item])


def asked_of(pattern: Pattern, sums: Sums, *, lone: bool) -> Asked:
    """Everything a pattern's sensitive cells need."""
    targets, places, below, above = sensitive(pattern)
    views = views_of(pattern, targets, lone=lone)
    primary = pattern.primary
    total = np.concatenate([sums.of_cell[primary], sums.of_difference])
    up, down = np.flatnonzero(above > 0), np.flatnonzero(below > 0)
    target = np.concatenate([up, down])
    sign = np.repeat([1.0, -1.0], [len(up), len(down)])
    need = np.concatenate([above[up], below[down]])
    exempt = np.zeros((len(target), views.cells.shape[1] + 1), dtype=bool)
    exempt[:, 1:] = views.exempt[target]
    special = _special(views.rest, target, sign, need, exempt)
    known = _known_sums(views.cells, sums)
    return Asked(places[target], total[target], sign, need, known, exempt, special)


def _special(
    rest: Any, target: Places, sign: Vector, need: Vector, exempt: NDArray[np.bool_]
) -> tuple[Places, Places, Vector]:
    """Downward needs against contributors in the cell; those without any rest are exempt."""
    of_item = rest[target].tocoo()
    less = (sign[of_item.row] < 0) & (of_item.data < need[of_item.row])
    item, view, limit = of_item.row[less], of_item.col[less] + 1, of_item.data[less]
    nothing = limit <= CLOSE * np.maximum(1.0, need[item])
    exempt[item[nothing], view[nothing]] = True
    return item[~nothing], view[~nothing], limit[~nothing]


def _known_sums(cells: csc_array, sums: Sums) -> Any:
    """Contributors × sums, from inner cells × contributors."""
    from scipy.sparse import csr_array

    inside = cells.tocsr()[sums.inner].tocoo()
    entries = (np.ones(inside.nnz), (inside.col, sums.of_row[inside.row]))
    return csr_array(entries, shape=(cells.shape[1], len(sums)))


class Bank:
    """Proofs, and for everything asked and every view the proof that serves it.

    Attributes:
      asked: What has to be proven.
      by: Asked × views: the number of a proof, `OPEN` or `EXEMPT`.
    """

    def __init__(self, asked: Asked, sums: Sums) -> None:
        self.asked = asked
        self.by = np.where(asked.exempt, EXEMPT, OPEN).astype(np.int32)
        self._sums = sums
        self._changes: list[tuple[Places, Vector]] = []
        self._serves: list[Places] = []
        self._movers: dict[int, list[int]] = {}

    def open_items(self, views: Places | None = None) -> Places:
        """What is not proven yet, in some views or any."""
        part = self.by if views is None else self.by[:, views]
        return np.flatnonzero((part == OPEN).any(axis=1))

    def open_views(self, item: int) -> Places:
        """The views in which something is not proven yet."""
        return np.flatnonzero(self.by[item] == OPEN)

    def add(self, change: Vector) -> int:
        """Take a change and its opposite as proofs of what they prove; how much was not before."""
        return self._add_along(change) + self._add_along(-change)

    def _add_along(self, change: Vector) -> int:
        asked, room = self.asked, self._room(change)
        pace = change[asked.total] * asked.sign
        reach = np.zeros(len(pace))
        reach[pace > 0] = room * pace[pace > 0]
        apart = np.ones(asked.views, dtype=bool)
        apart[1:] = asked.known @ np.abs(change) == 0
        views = np.flatnonzero(apart)
        met = np.flatnonzero((reach >= asked.need * (1 - CLOSE / 2)) & (pace > 0))
        new = self.by[np.ix_(met, views)] == OPEN
        item, view, limit = asked.special
        some = (reach[item] >= limit * (1 - CLOSE / 2)) & apart[view] & (pace[item] > 0)
        some &= self.by[item, view] == OPEN
        count = int(new.sum() + some.sum())
        if count:
            items = met[new.any(axis=1)]
            self._store(change, room, items, views, (item[some], view[some], limit[some]), pace)
        return count

    def _store(
        self,
        change: Vector,
        room: float,
        items: Places,
        views: Places,
        special: tuple[Places, Places, Vector],
        pace: Vector,
    ) -> None:
        number = len(self._changes)
        asked = self.asked
        part = self.by[np.ix_(items, views)]
        self.by[np.ix_(items, views)] = np.where(part == OPEN, number, part)
        item, view, limit = special
        self.by[item, view] = number
        wanted = np.concatenate([asked.need[items] / pace[items], limit / pace[item]])
        scale = min(room, float(wanted.max()))
        places = np.flatnonzero(change)
        self._changes.append((places, scale * change[places]))
        self._serves.append(np.unique(np.concatenate([items, item])))
        for place in places.tolist():
            self._movers.setdefault(place, []).append(number)

    def _room(self, change: Vector) -> float:
        """How many times a change can be made before a cell becomes negative."""
        rows = self._sums.of_row
        falls = change[rows] < 0
        if not falls.any():
            return np.inf
        room = float((self._sums.down[rows[falls]] / -change[rows[falls]]).min())
        return max(room, 1.0) if room > 1 - CLOSE / 4 else room

    def forget(self, total: int) -> tuple[Places, NDArray[np.int32]]:
        """Take back all that is proven by changes that move a sum; for `restore`."""
        gone = np.array(self._movers.get(total, []), dtype=np.int32)
        served = [self._serves[k] for k in gone]
        items = np.unique(np.concatenate(served)) if served else np.empty(0, np.intp)
        before = self.by[items]
        lost = np.isin(before, gone)
        items, before = items[lost.any(axis=1)], before[lost.any(axis=1)]
        self.by[items] = np.where(np.isin(before, gone), OPEN, before)
        return items, before

    def restore(self, items: Places, before: NDArray[np.int32]) -> None:
        """Undo `forget`."""
        self.by[items] = before

    def changes(self) -> csc_array:
        """The changes in use, inner cells in doubt × proofs."""
        from scipy.sparse import csc_array

        used = np.unique(self.by[self.by >= 0])
        rows, columns, data = [], [], []
        for k, number in enumerate(used):
            change = np.zeros(len(self._sums))
            places, values = self._changes[number]
            change[places] = values
            inside = change[self._sums.of_row]
            found = np.flatnonzero(inside)
            rows.append(found)
            columns.append(np.full(len(found), k))
            data.append(inside[found])
        shape = (len(self._sums.of_row), len(used))
        if not len(used):
            return csc_array(shape)
        entries = (np.concatenate(data), (np.concatenate(rows), np.concatenate(columns)))
        return csc_array(entries, shape=shape)
