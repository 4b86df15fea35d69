"""Differencing: areas or populations that overlap, one less the other.

Two releases over the same variables may show other areas, or count other people: districts beside
school zones, everybody beside private households. What one group counts and the groups of the other
release inside it do not is a difference that nobody meant to publish, often of a few people. The
census offices know it as geographic differencing (Duke-Williams & Rees 1998; Costemalle 2019).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array

from discreet.arrays import Real, Whole
from discreet.attacks.frame import About, Claims, Knowledge
from discreet.attacks.groups import (
    GroupAttack,
    likeliest_category,
    refusal_of_groups,
    shown_counts,
    usual_shares,
)

_LARGEST = 500_000  # combinations, each of which has its place in every table


@dataclass(frozen=True)
class Differencing(GroupAttack):
    """Claims the commonest category of the smallest difference that a person is in.

    `knowledge.earlier` holds the other releases, of the same variables; `knowledge.people` what is
    known of each person. Noise by key that is the same on both sides cancels, so a category that
    differs at all is told from those that agree: differences count without their sign.

    Args:
      variable: The variable that is looked for; the last one when absent.
      outside: Whether the people are known to be in this release and not in the others. Otherwise
        both count the same people, and differences are those of areas.
    """

    outside: bool = False
    name: ClassVar[str] = "differencing"
    about: ClassVar[About] = "differences"
    remedy: ClassVar[str] = "one set of areas and one population, or noise that is never the same"

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """No other release of these variables, or no difference between its groups."""
        if not knowledge.earlier:
            return "there is no other release"
        if why := refusal_of_groups(release, self.variable):
            return why
        if math.prod(len(axis) for axis in release.design.axes) > _LARGEST:
            return f"more than {_LARGEST:,} combinations"
        others = [each for each in knowledge.earlier if _is_comparable(release, each)]
        if not others:
            return "the other releases have other variables or categories"
        if not any(True for each in others for _ in self._differences(release, each)):
            return "no group of one release is a part of groups of the other"
        return ""

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """A category for each person in a difference; nothing is drawn."""
        axes, variable = release.design.axes, self._sought(release)
        leaves = next(axis for axis in axes if axis.name == variable).leaves
        usual = usual_shares(release, variable, shown_counts(release), len(leaves))
        others = [each for each in knowledge.earlier if _is_comparable(release, each)]
        found = [each for other in others for each in self._differences(release, other)]
        known = [axis for axis in axes if axis.name != variable]
        targets, values, sure = [], [], []
        for number, person in enumerate(knowledge.people):
            codes = tuple(axis.leaf_position[person[axis.name]] for axis in known)
            unit = int(np.ravel_multi_index(codes, [len(axis) for axis in known])) if known else 0
            counts = [count for each in found for count in each.around(unit, self.outside)]
            said = likeliest_category(counts, usual)
            if said is not None:
                targets.append(number)
                values.append(leaves[said[0]])
                sure.append(said[1])
        return Claims.ranked(targets, values, sure)

    def _sought(self, release: Any) -> str:
        return self.variable or str(release.design.axes[-1].name)

    def _differences(self, release: Any, other: Any) -> Iterator[Differences]:
        """All pairs of tables whose groups differ, both ways round unless people are outside."""
        variable = self._sought(release)
        one, two = (_tables(each, release.design.axes, variable) for each in (release, other))
        for first in one:
            for second in two:
                pairs = [(first, second)] if self.outside else [(first, second), (second, first)]
                for whole, part in pairs:
                    made = _less(whole, part, outside=self.outside)
                    if len(made.counts):
                        yield made


class GroupTable(NamedTuple):
    """One published table that shows the variable in full.

    Attributes:
      group: The group of each combination of the other variables; −1 where it is in none.
      counts: What is shown of each group by category; not a number where a cell is hidden.
    """

    group: Whole
    counts: Real


class Differences(NamedTuple):
    """Sets of groups of one table, less the groups of another one that lie inside.

    Attributes:
      whole: The table that is taken from.
      part: The table that is taken away.
      sets: The groups of `whole` that make up each set, by group.
      inside: The groups of `part` that lie wholly inside each set.
      counts: What is left of each set by category.
    """

    whole: GroupTable
    part: GroupTable
    sets: csc_array
    inside: csr_array
    counts: Real

    def around(self, unit: int, outside: bool) -> Iterator[Real]:
        """The differences that hold a combination, without their sign."""
        group, other = self.whole.group[unit], self.part.group[unit]
        if group < 0:
            return
        for k in self.sets.indices[self.sets.indptr[group] : self.sets.indptr[group + 1]]:
            inside = self.inside.indices[self.inside.indptr[k] : self.inside.indptr[k + 1]]
            if outside or other not in inside:
                yield np.abs(self.counts[k])


def _less(whole: GroupTable, part: GroupTable, *, outside: bool) -> Differences:
    """The groups that any group of the other table lies across, less all groups inside them.

    Args:
      whole: The table whose groups are united.
      part: The table whose groups are taken away.
      outside: Whether people are missing in the other table. Then both sides cover the same
        combinations, otherwise some are left.
    """
    size, own = (np.bincount(t.group[t.group >= 0], minlength=len(t.counts)) for t in (whole, part))
    both = (whole.group >= 0) & (part.group >= 0)
    shape = len(whole.counts), len(part.counts)
    ones = np.ones(int(both.sum()), dtype=np.int64)
    shared = csr_array((ones, (whole.group[both], part.group[both])), shape=shape)
    covered = np.flatnonzero(np.asarray(shared.sum(axis=0)).ravel() == own)
    sets = _distinct(csr_array((shared.T.tocsr()[covered] > 0).astype(np.int64)))
    over = csr_array(sets @ shared)
    row = np.repeat(np.arange(over.shape[0]), np.diff(over.indptr))
    is_inside = over.data == own[over.indices]
    inside = csr_array(
        (np.ones(int(is_inside.sum())), (row[is_inside], over.indices[is_inside])), shape=over.shape
    )
    left = sets @ size - inside @ own
    kept = np.flatnonzero(left == 0 if outside else left > 0)
    sets, inside = sets[kept], inside[kept]
    counts: Any = sets @ whole.counts - inside @ part.counts
    return Differences(whole, part, csc_array(sets), inside, counts)


def _distinct(sets: csr_array) -> csr_array:
    """The rows of a matrix of 0 and 1, each of them once."""
    sets.sort_indices()
    rows = np.split(sets.indices, sets.indptr[1:-1])
    return sets[list({row.tobytes(): k for k, row in enumerate(rows)}.values())]


def _tables(release: Any, axes: Any, variable: str) -> list[GroupTable]:
    """The tables of a release that show a variable, over combinations in the order of the axes.

    Combinations of which a category cannot occur are left out: nobody is looked for there.
    """
    design, names = release.design, [axis.name for axis in axes]
    codes = {a.name: np.asarray(c) for a, c in zip(design.axes, design.inner_codes(), strict=True)}
    sizes = [len(axis) for axis in axes]
    inner = np.full(int(np.prod(sizes)), -1)
    inner[np.ravel_multi_index([codes[name] for name in names], sizes)] = np.arange(design.n_inner)
    last = np.moveaxis(inner.reshape(sizes), names.index(variable), -1)
    place: Whole = last.reshape(-1, last.shape[-1])
    full = np.flatnonzero((place >= 0).all(axis=1))
    members = design.members(place[full].ravel())
    values = np.where(release.hidden, np.nan, np.asarray(release.z, dtype=np.float64))
    found = []
    for column in members.T:
        cells = column.reshape(-1, place.shape[1])
        there = (cells < design.n_published).all(axis=1)
        apart = (np.diff(np.sort(cells[there], axis=1), axis=1) > 0).all(axis=1)
        if not there.any() or not apart.all():
            continue
        _, first, group = np.unique(cells[there, 0], return_index=True, return_inverse=True)
        labels = np.full(len(place), -1)
        labels[full[there]] = group.ravel()
        found.append(GroupTable(labels, values[cells[there][first]]))
    return found


def _is_comparable(release: Any, other: Any) -> bool:
    """Whether two releases are sums over the same combinations."""
    one, two = ({axis.name: axis.leaves for axis in each.design.axes} for each in (release, other))
    return other.unit == release.unit and one == two
