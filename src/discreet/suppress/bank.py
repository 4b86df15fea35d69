"""What has to be proven of a pattern, the proofs found so far, and what they leave unproven."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from discreet.arrays import Index, Real, Whole
from discreet.solve.linear.changes import Change, Changes, Floors, MoveGoal
from discreet.suppress.attackers import Attackers, attackers, cells_in_doubt
from discreet.suppress.pattern import Pattern
from discreet.suppress.proofs import CLOSE, sensitive_sums
from discreet.suppress.sums import NONE, TableSums

ViewSet = frozenset[int]
EVERYBODY = 0
"""The view of somebody who contributes to no cell; contributors are numbered from one."""
_NO_VIEWS: ViewSet = frozenset()
_PUBLIC_VIEW: ViewSet = frozenset([EVERYBODY])
# This share of a need is as good as all of it. Half of the tolerance of `Proofs.unproven`: what is
# stored here as a proof must still be one there, after another rounding error.
_ENOUGH = 1 - CLOSE / 2
_MORE = 1 + CLOSE  # rooms beyond this are no limits


@dataclass(frozen=True, eq=False)
class Requirements:
    """What has to be proven: a way for a sensitive cell to go up or down.

    Attributes:
      place: The sensitive cell or difference, by its place among the pattern's.
      total: Its sum.
      sign: Plus one for up, minus one for down.
      need: How far.
      attackers: Contributors, and what they know; their views are numbered from one.
      known: Contributors × sums: the cells each knows wholly.
      room: Contributors × sums: how far down the cells that each is in can go in his eyes.
      knower: For each sum the view of somebody who knows it, zero where nobody does.
      exempt: For each item the views to which nothing needs to be proven.
      special: For each item and view what is needed where a contributor is in the sensitive cell
        himself.
    """

    place: Index
    total: Whole
    sign: Real
    need: Real
    attackers: Attackers
    known: Any
    room: Any
    knower: Index
    exempt: dict[int, ViewSet]
    special: dict[int, dict[int, float]]

    def __len__(self) -> int:
        return len(self.place)

    def known_sums(self, views: Iterable[int]) -> Index:
        """The sums that contributors know, all together."""
        start, sums = self.known.indptr, self.known.indices
        found = [sums[start[v - 1] : start[v]] for v in views if v != EVERYBODY]
        return np.concatenate(found).astype(np.intp) if found else np.empty(0, np.intp)

    def floors(self, views: Iterable[int]) -> Floors:
        """The sums that contributors are in, and how far these can go down for all of them."""
        start = self.room.indptr
        parts = [slice(start[v - 1], start[v]) for v in views if v != EVERYBODY]
        if not parts:
            return np.empty(0, np.intp), np.empty(0)
        sums = np.concatenate([self.room.indices[part] for part in parts])
        found, number = np.unique(sums, return_inverse=True)
        least = np.full(len(found), np.inf)
        np.minimum.at(least, number, np.concatenate([self.room.data[part] for part in parts]))
        return found.astype(np.intp), least

    def cheapest(self, within: Changes, item: int, views: list[int]) -> Change | None:
        """The cheapest proof of something in some views at once."""
        return within.cheapest(self.goal(item, views), self.known_sums(views), self.floors(views))

    def need_of(self, item: int, view: int) -> float:
        """What is needed in one view: less where a contributor is in the cell himself."""
        return self.special.get(item, {}).get(view, float(self.need[item]))

    def goal(self, item: int, views: list[int]) -> MoveGoal:
        """What a change has to reach: less against one contributor who is in the cell himself."""
        need = self.need_of(item, views[0]) if len(views) == 1 else float(self.need[item])
        return MoveGoal(int(self.total[item]), float(self.sign[item]), need)


def requirements(pattern: Pattern, sums: TableSums, *, lone: bool) -> Requirements:
    """Everything a pattern's sensitive cells need."""
    targets, places, below, above = sensitive_sums(pattern)
    found = attackers(pattern, contributors=lone)
    known_to = found.exempt(targets, cells_in_doubt(pattern), pattern.differences)
    total = np.concatenate([sums.of_cell[pattern.primary], sums.of_difference])
    up, down = np.flatnonzero(above > 0), np.flatnonzero(below > 0)
    target = np.concatenate([up, down])
    sign = np.repeat([1.0, -1.0], [len(up), len(down)])
    need = np.concatenate([above[up], below[down]])
    exempt = {
        item: frozenset(
            (known_to.indices[known_to.indptr[k] : known_to.indptr[k + 1]] + 1).tolist()
        )
        for item, k in enumerate(target.tolist())
        if known_to.indptr[k + 1] > known_to.indptr[k]
    }
    special = _needs_from_within(found.rest(targets), target, sign, need, exempt)
    known, own = _on_sums(found.known, sums), _on_sums(found.shares, sums)
    inner = np.full(len(sums), NONE)
    inner[sums.of_row] = sums.inner
    own.data = np.maximum(found.y[inner[own.indices]] - own.data, 0.0)
    knower = np.full(len(sums), EVERYBODY, dtype=np.intp)
    knower[known.indices] = np.repeat(np.arange(known.shape[0]), np.diff(known.indptr)) + 1
    what = (places[target], total[target], sign, need)
    return Requirements(*what, found, known, own, knower, exempt, special)


def _on_sums(cells: Any, sums: TableSums) -> csr_array:
    """Inner cells × contributors as contributors × sums."""
    inside = cells.tocsr()[sums.inner].tocoo()
    entries = (inside.data, (inside.col, sums.of_row[inside.row]))
    return csr_array(entries, shape=(cells.shape[1], len(sums)))


def _needs_from_within(
    rest: Any, target: Index, sign: Real, need: Real, exempt: dict[int, ViewSet]
) -> dict[int, dict[int, float]]:
    """Downward needs against contributors in the cell; those without any rest are exempt."""
    # Against somebody who is in the cell, it cannot lose more than what others have in it.
    of_item = rest[target].tocoo()
    less = (sign[of_item.row] < 0) & (of_item.data < need[of_item.row])
    found: dict[int, dict[int, float]] = {}
    for k in np.flatnonzero(less):
        item, view, limit = int(of_item.row[k]), int(of_item.col[k]) + 1, float(of_item.data[k])
        if limit <= CLOSE * max(1.0, need[item]):
            exempt[item] = exempt.get(item, _NO_VIEWS) | {view}
        else:
            found.setdefault(item, {})[view] = limit
    return found


@dataclass(frozen=True, eq=False)
class _Proof:
    """A change that is a proof.

    Attributes:
      change: The change, as far as it is needed.
      rooms: How often it can be made in the eyes of each who knows a limit, by view: never where
        it moves a cell that he knows, less than once where it takes away what he has in a cell.
      items: What it proves to all others.
      special: Items and views where less is needed, that it proves as well.
      touched: By item the views of those who see that it is no proof for them, once asked for.
    """

    change: Change
    rooms: dict[int, float]
    items: list[int]
    special: list[tuple[int, int]]
    touched: dict[int, ViewSet] = field(default_factory=dict)


class ProofBank:
    """Proofs, and what they leave open.

    A proof for everybody leaves open the views of the few contributors whose cells it moves; what
    all proofs of an item have in common remains open.

    Args:
      required: What has to be proven.
      sums: The sums that changes move.
    """

    def __init__(self, required: Requirements, sums: TableSums) -> None:
        self.required, self._sums = required, sums
        self._row = np.full(len(sums), NONE)
        self._row[sums.of_row] = np.arange(len(sums.of_row))
        self._proofs: list[_Proof] = []
        # For each proof how many sums it moves that are closed now. A proof is not deleted when a
        # sum is closed on trial: thinning opens most of them again.
        self._closed: list[int] = []
        self._of_item: list[list[int]] = [[] for _ in range(len(required))]
        self._of_special: dict[tuple[int, int], list[int]] = {}
        self._movers: dict[int, list[int]] = {}
        self._items_at: dict[int, list[int]] = {}
        for item, total in enumerate(required.total.tolist()):
            self._items_at.setdefault(total, []).append(item)
        self._open: dict[int, ViewSet] = {}  # what was found open, until a proof changes it
        self._disabled: dict[int, set[int]] = {}

    def open_items(self) -> Index:
        """What is not proven yet in some view."""
        found = [item for item in range(len(self.required)) if self.open_views(item)]
        return np.array(found, dtype=np.intp)

    def open_views(self, item: int) -> ViewSet:
        """The views in which something is not proven yet; everybody's where there is no proof."""
        if item not in self._open:
            self._open[item] = self._find_open_views(item)
        return self._open[item]

    def _find_open_views(self, item: int) -> ViewSet:
        if self.required.need[item] == 0:
            return _NO_VIEWS
        common: ViewSet | None = None
        for k in self._of_item[item]:
            if self._closed[k]:
                continue
            touched = self._views_touched_by(self._proofs[k], item)
            if common is None:
                common = touched - self.required.exempt.get(item, _NO_VIEWS)
            else:
                common &= touched
            if not common:
                return _NO_VIEWS
        if common is None:
            return _PUBLIC_VIEW
        return frozenset(view for view in common if not self._first_special(item, view))

    def _views_touched_by(self, proof: _Proof, item: int) -> ViewSet:
        """The views of those who see that a proof is none for them."""
        if item in proof.touched:
            return proof.touched[item]
        required, change = self.required, proof.change
        pace = float(change.values[change.places == required.total[item]].sum())
        pace *= float(required.sign[item])
        rooms = proof.rooms.items()
        found = frozenset(
            v for v, room in rooms if room * pace < required.need_of(item, v) * _ENOUGH
        )
        proof.touched[item] = found
        return found

    def _first_special(self, item: int, view: int) -> list[int]:
        """A proof for one contributor who needs less, if there is any."""
        return [k for k in self._of_special.get((item, view), []) if not self._closed[k]][:1]

    def ask_above_instead(self, item: int) -> int | None:
        """Ask above for what there is no room for below; the item that is asked for more, if any.

        The proofs that it has and that do not reach as far are taken from it.
        """
        required = self.required
        up = np.flatnonzero((required.place == required.place[item]) & (required.sign > 0))
        if required.sign[item] > 0 or not len(up):
            return None
        above = int(up[0])
        required.need[above] += required.need[item]
        required.need[item] = 0.0
        required.special.pop(item, None)
        total, need = required.total[above], required.need[above] * _ENOUGH
        changes = {k: self._proofs[k].change for k in self._of_item[above]}
        far = [k for k, c in changes.items() if c.values[c.places == total].sum() >= need]
        self._of_item[above] = far
        for k in far:
            self._proofs[k].touched.pop(above, None)
        self._open.pop(item, None)
        self._open.pop(above, None)
        return above

    def add(self, change: Change) -> int:
        """Take a change and its opposite as proofs of what they prove; how much was not before."""
        back = Change(change.places, -change.values)
        return self._add_along(change) + self._add_along(back)

    def _add_along(self, change: Change) -> int:
        """Store the change as far as it can go, if it proves anything new."""
        # One change proves every sensitive cell that it moves far enough, so a change that was
        # found for one is taken as far as there is room and tried for all.
        room, required = self._room(change), self.required
        rooms = self._rooms(change)
        items: list[int] = []
        special: list[tuple[int, int]] = []
        scale, new = 0.0, 0
        for total, move in zip(change.places.tolist(), change.values.tolist(), strict=True):
            for item in self._items_at.get(total, ()):
                pace = move * required.sign[item]
                if pace <= 0:
                    continue
                if room * pace >= required.need[item] * _ENOUGH:
                    items.append(item)
                    scale = max(scale, required.need[item] / pace)
                    new += sum(
                        min(room, rooms.get(view, np.inf)) * pace
                        >= required.need_of(item, view) * _ENOUGH
                        for view in self.open_views(item)
                    )
                for view, limit in required.special.get(item, {}).items():
                    if min(room, rooms.get(view, np.inf)) * pace >= limit * _ENOUGH:
                        special.append((item, view))
                        scale = max(scale, limit / pace)
                        new += view in self.open_views(item)
        if new:
            times = min(room, scale)
            scaled = Change(change.places, times * change.values)
            limits = {v: r / times for v, r in rooms.items() if r < times * _MORE}
            self._store(_Proof(scaled, limits, items, special))
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
        # The change itself is possible; a room just below one is a rounding error.
        return max(room, 1.0) if room > 1 - CLOSE / 4 else room

    def _rooms(self, change: Change) -> dict[int, float]:
        """The rooms of a change in the eyes of contributors, by view."""
        row = self._row[change.places]
        inner = self._sums.inner[row[row != NONE]]
        rooms = self.required.attackers.rooms(inner, change.values[row != NONE])
        return {who + 1: room for who, room in rooms.items()}

    def disable_proofs(self, total: int, most: int | None = None) -> list[int]:
        """Leave all proofs aside that move a sum; what is open then, at most `most` and one."""
        items = self._proven_with(total)
        self._disabled[total] = {k for k in items if self._open.get(k, _PUBLIC_VIEW) == _NO_VIEWS}
        self._count_closed(total, 1, items)
        found: list[int] = []
        for item in sorted(items):
            if self.open_views(item):
                found.append(item)
            if most is not None and len(found) > most:
                break
        return found

    def enable_proofs(self, total: int, *, as_before: bool = False) -> None:
        """Undo `disable_proofs`, if it was called for a sum.

        With `as_before`, no other sum was closed since: what was proven then is proven again.
        """
        if total not in self._disabled:
            return
        items, proven = self._proven_with(total), self._disabled.pop(total)
        self._count_closed(total, -1, items)
        if as_before:
            self._open.update(dict.fromkeys(proven, _NO_VIEWS))

    def _proven_with(self, total: int) -> set[int]:
        """What the proofs prove that move a sum."""
        items: set[int] = set()
        for number in self._movers.get(total, []):
            items.update(self._proofs[number].items)
            items.update(item for item, _ in self._proofs[number].special)
        return items

    def _count_closed(self, total: int, change: int, items: set[int]) -> None:
        """Count a sum as closed, or no more, in the proofs that move it, and so of some things."""
        for number in self._movers.get(total, []):
            self._closed[number] += change
        for item in items:
            self._open.pop(item, None)

    def changes(self, n_inner: int) -> csc_array:
        """Changes that prove everything, inner cells × proofs."""
        used = sorted({k for item in range(len(self.required)) for k in self._proofs_to_keep(item)})
        rows, data, ends = [np.empty(0, np.int64)], [np.empty(0)], [0]
        for number in used:
            change = self._proofs[number].change
            row = self._row[change.places]
            rows.append(self._sums.inner[row[row != NONE]])
            data.append(change.values[row != NONE])
            ends.append(ends[-1] + len(rows[-1]))
        entries = (np.concatenate(data), np.concatenate(rows), ends)
        found = csc_array(entries, shape=(n_inner, len(used)))
        found.sum_duplicates()
        return found

    def _proofs_to_keep(self, item: int) -> list[int]:
        """Proofs of one item that together leave as little open as all do."""
        # One proof is enough against everybody whose cells it leaves alone; the next is kept only
        # where it helps against some of the others. Patterns would else carry thousands.
        required, found = self.required, []
        common: ViewSet | None = None if required.need[item] > 0 else _NO_VIEWS
        for number in self._of_item[item]:
            proof = self._proofs[number]
            if self._closed[number]:
                continue
            touched = self._views_touched_by(proof, item)
            left = touched if common is None else common & touched
            if common is None or len(left) < len(common):
                found.append(number)
                common = left - required.exempt.get(item, _NO_VIEWS)
            if not common:
                return found
        for view in common or ():
            found += self._first_special(item, view)
        return found
