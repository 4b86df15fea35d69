"""The proofs found so far, and what they still leave unproven."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Index, Real, Whole
from discreet.solve.linear.changes import Change, MoveGoal
from discreet.suppress.pattern import Pattern
from discreet.suppress.proofs import CLOSE, sensitive, views_of
from discreet.suppress.sums import NONE, Sums

if TYPE_CHECKING:
    from scipy.sparse import csc_array


Views = frozenset[int]
EVERYBODY = 0
"""The view of somebody who is alone in no cell."""
_NOBODY: Views = frozenset()
_ALL: Views = frozenset([EVERYBODY])
_ENOUGH = 1 - CLOSE / 2  # what share of a need is as good as all of it


@dataclass(frozen=True, eq=False)
class Asked:
    """What has to be proven: a way for a sensitive cell to go up or down.

    Attributes:
      place: The sensitive cell or difference, by its place among the pattern's.
      total: Its sum.
      sign: Plus one for up, minus one for down.
      need: How far.
      known: Contributors × sums: the cells each is alone in.
      knower: For each sum the view of who is alone in it, zero where nobody is.
      exempt: For each item the views to which nothing needs to be proven.
      special: For each item and view what is needed where a contributor is in the sensitive cell
        himself.
    """

    place: Index
    total: Whole
    sign: Real
    need: Real
    known: Any
    knower: Index
    exempt: dict[int, Views]
    special: dict[int, dict[int, float]]

    def __len__(self) -> int:
        return len(self.place)

    def is_exempt(self, item: int, view: int) -> bool:
        """Whether nothing needs to be proven to a contributor."""
        return view in self.exempt.get(item, _NOBODY)

    def held(self, views: Iterable[int]) -> Index:
        """The sums that contributors know, all together."""
        start, sums = self.known.indptr, self.known.indices
        found = [sums[start[v - 1] : start[v]] for v in views if v != EVERYBODY]
        return np.concatenate(found).astype(np.intp) if found else np.empty(0, np.intp)

    def goal(self, item: int, views: list[int]) -> MoveGoal:
        """What a change has to reach: less against one contributor who is in the cell himself."""
        need = float(self.need[item])
        if len(views) == 1:
            need = self.special.get(item, {}).get(views[0], need)
        return MoveGoal(int(self.total[item]), float(self.sign[item]), need)


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
    exempt = {
        item: frozenset((views.exempt_of(k) + 1).tolist())
        for item, k in enumerate(target.tolist())
        if len(views.exempt_of(k))
    }
    special = _special(views.rest, target, sign, need, exempt)
    known = _known_sums(views.cells, sums)
    knower = np.full(len(sums), EVERYBODY, dtype=np.intp)
    knower[known.indices] = np.repeat(np.arange(known.shape[0]), np.diff(known.indptr)) + 1
    return Asked(places[target], total[target], sign, need, known, knower, exempt, special)


def _special(
    rest: Any, target: Index, sign: Real, need: Real, exempt: dict[int, Views]
) -> dict[int, dict[int, float]]:
    """Downward needs against contributors in the cell; those without any rest are exempt."""
    of_item = rest[target].tocoo()
    less = (sign[of_item.row] < 0) & (of_item.data < need[of_item.row])
    found: dict[int, dict[int, float]] = {}
    for item, view, limit in zip(
        of_item.row[less].tolist(),
        (of_item.col[less] + 1).tolist(),
        of_item.data[less].tolist(),
        strict=True,
    ):
        if limit <= CLOSE * max(1.0, need[item]):
            exempt[item] = exempt.get(item, _NOBODY) | {view}
        else:
            found.setdefault(item, {})[view] = limit
    return found


def _known_sums(cells: csc_array, sums: Sums) -> Any:
    """Contributors × sums, from inner cells × contributors."""
    from scipy.sparse import csr_array

    inside = cells.tocsr()[sums.inner].tocoo()
    entries = (np.ones(inside.nnz), (inside.col, sums.of_row[inside.row]))
    return csr_array(entries, shape=(cells.shape[1], len(sums)))


@dataclass(frozen=True, eq=False)
class _Proof:
    """A change that is a proof.

    Attributes:
      change: The change, as far as it is needed.
      touched: The views of those who see that it is not so: they know a cell that it moves.
      items: What it proves to all others.
      special: Items and views where less is needed, that it proves as well.
    """

    change: Change
    touched: Views
    items: list[int]
    special: list[tuple[int, int]]


class Bank:
    """Proofs, and what they leave open.

    A proof for everybody leaves open the views of the few contributors whose cells it moves; what
    all proofs of an item have in common remains open.

    Args:
      asked: What has to be proven.
      sums: The sums that changes move.
    """

    def __init__(self, asked: Asked, sums: Sums) -> None:
        self.asked, self._sums = asked, sums
        self._row = np.full(len(sums), NONE)
        self._row[sums.of_row] = np.arange(len(sums.of_row))
        self._proofs: list[_Proof] = []
        self._closed: list[int] = []  # how many sums each proof moves that may not move
        self._of_item: list[list[int]] = [[] for _ in range(len(asked))]
        self._of_special: dict[tuple[int, int], list[int]] = {}
        self._movers: dict[int, list[int]] = {}
        self._items_at: dict[int, list[int]] = {}
        for item, total in enumerate(asked.total.tolist()):
            self._items_at.setdefault(total, []).append(item)
        self._open: dict[int, Views] = {}
        self._shut: set[int] = set()

    def open_items(self) -> Index:
        """What is not proven yet in some view."""
        found = [item for item in range(len(self.asked)) if self.open_views(item)]
        return np.array(found, dtype=np.intp)

    def open_views(self, item: int) -> Views:
        """The views in which something is not proven yet; everybody's where there is no proof."""
        if item not in self._open:
            self._open[item] = self._found_open(item)
        return self._open[item]

    def rise(self, item: int) -> int | None:
        """Ask above for what there is no room for below; the item that is asked for more, if any.

        The proofs that it has and that do not reach as far are taken from it.
        """
        asked = self.asked
        up = np.flatnonzero((asked.place == asked.place[item]) & (asked.sign > 0))
        if asked.sign[item] > 0 or not len(up):
            return None
        above = int(up[0])
        asked.need[above] += asked.need[item]
        asked.need[item] = 0.0
        asked.special.pop(item, None)
        total, need = asked.total[above], asked.need[above] * _ENOUGH
        changes = {k: self._proofs[k].change for k in self._of_item[above]}
        far = [k for k, c in changes.items() if c.values[c.places == total].sum() >= need]
        self._of_item[above] = far
        self._open.pop(item, None)
        self._open.pop(above, None)
        return above

    def _found_open(self, item: int) -> Views:
        if self.asked.need[item] == 0:
            return _NOBODY
        alive = [self._proofs[k] for k in self._of_item[item] if not self._closed[k]]
        if not alive:
            return _ALL
        common = alive[0].touched - self.asked.exempt.get(item, _NOBODY)
        for proof in alive[1:]:
            if not common:
                break
            common &= proof.touched
        return frozenset(v for v in common if not self._is_met(item, v))

    def _is_met(self, item: int, view: int) -> bool:
        return any(not self._closed[k] for k in self._of_special.get((item, view), []))

    def add(self, change: Change) -> int:
        """Take a change and its opposite as proofs of what they prove; how much was not before."""
        back = Change(change.places, -change.values)
        return self._add_along(change) + self._add_along(back)

    def _add_along(self, change: Change) -> int:
        """Store the change as far as it can go, if it proves anything new."""
        room, asked = self._room(change), self.asked
        touched = frozenset(np.unique(asked.knower[change.places]).tolist()) - _ALL
        items: list[int] = []
        special: list[tuple[int, int]] = []
        scale, new = 0.0, 0
        for total, move in zip(change.places.tolist(), change.values.tolist(), strict=True):
            for item in self._items_at.get(total, ()):
                pace = move * asked.sign[item]
                if pace <= 0:
                    continue
                if room * pace >= asked.need[item] * _ENOUGH:
                    items.append(item)
                    scale = max(scale, asked.need[item] / pace)
                    new += len(self.open_views(item) - touched)
                for view, limit in asked.special.get(item, {}).items():
                    if view not in touched and room * pace >= limit * _ENOUGH:
                        special.append((item, view))
                        scale = max(scale, limit / pace)
                        new += view in self.open_views(item)
        if new:
            scaled = Change(change.places, min(room, scale) * change.values)
            self._store(_Proof(scaled, touched, items, special))
        return new

    def _store(self, proof: _Proof) -> None:
        number = len(self._proofs)
        self._proofs.append(proof)
        self._closed.append(0)
        for item in proof.items:
            self._of_item[item].append(number)
            self._open.pop(item, None)
        for pair in proof.special:
            self._of_special.setdefault(pair, []).append(number)
            self._open.pop(pair[0], None)
        for place in proof.change.places.tolist():
            self._movers.setdefault(place, []).append(number)

    def _room(self, change: Change) -> float:
        """How many times a change can be made before a cell leaves its bounds."""
        sums = self._sums
        limit = np.where(change.values < 0, sums.down[change.places], sums.up[change.places])
        room = float((limit / np.abs(change.values)).min(initial=np.inf))
        return max(room, 1.0) if room > 1 - CLOSE / 4 else room

    def forget(self, total: int) -> list[int]:
        """Take back all changes that move a sum; what is open then."""
        self._shut.add(total)
        return [item for item in self._turned(total, 1) if self.open_views(item)]

    def restore(self, total: int) -> None:
        """Undo `forget`, if a sum was forgotten."""
        if total in self._shut:
            self._shut.remove(total)
            self._turned(total, -1)

    def _turned(self, total: int, change: int) -> list[int]:
        """Take proofs back or in again that a sum decides about; whose they are."""
        items: set[int] = set()
        for number in self._movers.get(total, []):
            self._closed[number] += change
            proof = self._proofs[number]
            items.update(proof.items)
            items.update(item for item, _ in proof.special)
        for item in items:
            self._open.pop(item, None)
        return sorted(items)

    def changes(self) -> csc_array:
        """Changes that prove everything, inner cells in doubt × proofs."""
        from scipy.sparse import csc_array

        used = sorted({k for item in range(len(self.asked)) for k in self._needed(item)})
        rows, data, ends = [np.empty(0, np.int64)], [np.empty(0)], [0]
        for number in used:
            change = self._proofs[number].change
            row = self._row[change.places]
            rows.append(row[row != NONE])
            data.append(change.values[row != NONE])
            ends.append(ends[-1] + len(rows[-1]))
        shape = (len(self._sums.of_row), len(used))
        return csc_array((np.concatenate(data), np.concatenate(rows), ends), shape=shape)

    def _needed(self, item: int) -> list[int]:
        """Proofs of one item that together leave as little open as all do."""
        asked, found = self.asked, []
        common: Views | None = None if asked.need[item] > 0 else _NOBODY
        for number in self._of_item[item]:
            proof = self._proofs[number]
            if self._closed[number]:
                continue
            left = proof.touched if common is None else common & proof.touched
            if common is None or len(left) < len(common):
                found.append(number)
                common = left - asked.exempt.get(item, _NOBODY)
            if not common:
                return found
        for view in common or ():
            found += [k for k in self._of_special.get((item, view), []) if not self._closed[k]][:1]
        return found
