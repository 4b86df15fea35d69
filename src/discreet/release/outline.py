"""The codes of a variable in reading order: the total, then each code under its group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Index
from discreet.design.axis import OUTSIDE, Axis, Level


@dataclass(frozen=True)
class Entry:
    """A code, its label, how deep it stands, and whether others stand under it.

    The total has depth 0.
    """

    code: str
    label: str
    depth: int
    is_sum: bool

    @property
    def is_total(self) -> bool:
        """Whether the entry stands for all categories."""
        return self.depth == 0

    @property
    def shows_code(self) -> bool:
        """Whether the code says more than the label."""
        return self.label != self.code and not self.is_total


def parents(entries: Sequence[Entry], *, of_total: bool = False) -> list[int | None]:
    """For each entry the place of the one it stands under.

    Args:
      entries: Entries in reading order.
      of_total: Whether others stand under the total, too.
    """
    found: list[int | None] = []
    above: list[int] = []
    for place, entry in enumerate(entries):
        while above and entries[above[-1]].depth >= entry.depth:
            above.pop()
        found.append(above[-1] if above else None)
        if of_total or not entry.is_total:
            above.append(place)
    return found


def outline(axis: Axis, levels: Sequence[Level]) -> list[Entry]:
    """The total and the codes of the levels; groups that cross the main hierarchy come last."""
    chain = _chain(levels)
    first = [_first_leaves(level) for level in chain]
    nodes = [
        (_path(chain, first, depth, k), depth + 1, code)
        for depth, level in enumerate(chain)
        for k, code in enumerate(level.codes)
    ]
    nested = [(depth, code) for _, depth, code in sorted(nodes)]
    others = [level for level in levels if level not in chain]
    crossing = [(1, code) for level in others for code in level.codes]
    return _entries(axis, [(0, axis.total), *nested, *crossing])


def _entries(axis: Axis, placed: Sequence[tuple[int, str]]) -> list[Entry]:
    following = [depth for depth, _ in placed[1:]] + [0]
    return [
        Entry(code, axis.labels.get(code) or code, depth, is_sum=below > depth)
        for (depth, code), below in zip(placed, following, strict=True)
    ]


def _chain(levels: Sequence[Level]) -> list[Level]:
    """The levels, coarse to fine, of which each lies wholly within the one before."""
    chain = [levels[-1]]
    for level in reversed(levels[:-1]):
        if _lies_within(chain[0], level):
            chain.insert(0, level)
    return chain


def _lies_within(fine: Level, coarse: Level) -> bool:
    """Whether every group of `fine` is part of one group of `coarse`."""
    inside = fine.group != OUTSIDE
    pairs = np.unique(np.stack([fine.group[inside], coarse.group[inside]]), axis=1)
    return pairs.shape[1] == len(fine) and bool((pairs[1] != OUTSIDE).all())


def _first_leaves(level: Level) -> Index:
    """The first leaf of every group."""
    groups, first = np.unique(level.group, return_index=True)
    found: Index = first[groups != OUTSIDE]
    return found


def _path(chain: Sequence[Level], first: Sequence[Index], depth: int, k: int) -> tuple[int, ...]:
    """A sort key: the first leaves of the groups from the coarsest down to this one."""
    leaf = first[depth][k]
    above = (first[d][chain[d].group[leaf]] for d in range(depth))
    return (*map(int, above), int(leaf))
