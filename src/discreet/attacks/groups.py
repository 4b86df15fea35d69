"""What published groups say of one of their members: attributes, and nested crossings.

The intruder knows all variables of a person but one. Every published table that crosses it with
some of the others shows how the person's group is made up. Intruders and their friends who are in
the group take their own records out first.

Noise by key gives the same people the same value in every table. So a small group that has the same
value as one of its categories, the others being zero, is made up of that category alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from discreet.arrays import Mask, Real, Whole
from discreet.attacks.frame import About, Claims, Knowledge, PublicAttack
from discreet.tables.protected import COUNT

_LARGEST = 2_000_000  # inner cells, whose numbers are held
_SOME = (
    100  # people who are asked whether any table shows a variable, and how common its values are
)
_LIKELY = 1.0  # people of each category added to a group, so that small groups are less sure


class MemberGroup(NamedTuple):
    """The people that one published table counts together with a person.

    Attributes:
      cells: The published cell of each category of the variable, in the order of its leaves; −1
        where a category cannot occur.
      total: The published cell of the whole group, −1 where it is not published.
    """

    cells: Whole
    total: int


@dataclass(frozen=True)
class GroupAttack(PublicAttack):
    """An attack on the one variable that is not known of a person.

    Args:
      variable: The variable that is looked for; the last one when absent.
    """

    variable: str | None = None
    about: ClassVar[About] = "attributes"

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """No counts, or no table that crosses the variable with others."""
        return refusal_of_groups(release, self.variable)


@dataclass(frozen=True)
class GroupAttributes(GroupAttack):
    """Claims the commonest category of the smallest published group of each person.

    `knowledge.people` holds what is known of each person; targets are their numbers. Records in
    `knowledge.own` are taken out of the groups that they are in.
    """

    name: ClassVar[str] = "group-attributes"
    remedy: ClassVar[str] = "coarser groups, or noise that moves zeros and small counts"

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """A category for each person; ties go to the first one."""
        variable = self.variable or release.design.axes[-1].name
        leaves = next(a for a in release.design.axes if a.name == variable).leaves
        z = shown_counts(release)
        own = _own_counts(release, knowledge)
        usual = usual_shares(release, variable, z, len(leaves))
        targets, values, sure = [], [], []
        for number, groups in enumerate(groups_of(release, variable, knowledge.people)):
            counts = [np.maximum(z[group.cells] - own[group.cells], 0.0) for group in groups]
            said = likeliest_category(counts, usual)
            if said is not None:
                targets.append(number)
                values.append(leaves[said[0]])
                sure.append(said[1])
        return Claims.ranked(targets, values, sure)


@dataclass(frozen=True)
class NestedCrossings(GroupAttack):
    """Claims the category that has the very value of a person's group, where one alone has.

    The smaller the value, the surer: large values agree by chance.
    """

    name: ClassVar[str] = "nested-crossings"
    remedy: ClassVar[str] = "release once: tables as sums of one inner table"

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """A category for each person whose group agrees with one; nothing is drawn."""
        variable = self.variable or release.design.axes[-1].name
        leaves = next(a for a in release.design.axes if a.name == variable).leaves
        z = shown_counts(release)
        targets, values, sure = [], [], []
        for number, groups in enumerate(groups_of(release, variable, knowledge.people)):
            found: dict[int, float] = {}
            for group in groups:
                total = z[group.total] if group.total >= 0 else 0.0
                same = np.flatnonzero((z[group.cells] == total) & (total > 0))
                if len(same) == 1:
                    k, others = int(same[0]), float(np.delete(z[group.cells], same).sum())
                    found[k] = max(found.get(k, 0.0), 1.0 / (1.0 + others + total / 100))
            if found:
                best = max(found, key=lambda k: found[k])
                targets.append(number)
                values.append(leaves[best])
                sure.append(found[best])
        return Claims.ranked(targets, values, sure)


def likeliest_category(counts: Sequence[Real], usual: Real) -> tuple[int, float] | None:
    """The commonest category of the smallest group and its share; nothing where all are empty.

    Args:
      counts: The categories of each group; groups with a hidden cell have a sum that is no number.
      usual: The shares of the categories among everybody.
    """
    filled = [count for count in counts if count.sum() > 0]
    if not filled:
        return None
    smallest = min(filled, key=lambda count: float(count.sum()))
    share = (smallest + _LIKELY * usual) / (smallest.sum() + _LIKELY)
    best = int(share.argmax())
    return best, float(share[best])


def groups_of(
    release: Any, variable: str, people: tuple[Mapping[str, str], ...]
) -> Iterator[list[MemberGroup]]:
    """For each person the groups that published tables put them in."""
    design = release.design
    axis = next(k for k, a in enumerate(design.axes) if a.name == variable)
    sizes = [len(a.leaves) for a in design.axes]
    number = np.ravel_multi_index([np.asarray(c) for c in design.inner_codes()], sizes)
    order = np.argsort(number)
    number = number[order]
    place = [{leaf: k for k, leaf in enumerate(a.leaves)} for a in design.axes]
    for person in people:
        codes = [
            np.arange(sizes[k]) if k == axis else np.full(sizes[axis], place[k][person[a.name]])
            for k, a in enumerate(design.axes)
        ]
        wanted = np.ravel_multi_index(codes, sizes)
        at = np.minimum(np.searchsorted(number, wanted), len(order) - 1)
        exists = number[at] == wanted
        yield _groups(design.members(order[at[exists]]).astype(np.int64), exists, design)


def _groups(rows: Whole, exists: Mask, design: Any) -> list[MemberGroup]:
    """Tables whose cells differ for every category, each with the table that sums them."""
    n = design.n_published
    if not len(rows):
        return []
    whole = [int(c[0]) for c in rows.T if c[0] < n and (c == c[0]).all()]
    found = []
    for column in rows.T:
        if (column < n).all() and len(np.unique(column)) == len(column) > 1:
            size = int(design.column_sizes[column].sum())
            sums = [cell for cell in whole if int(design.column_sizes[cell]) == size]
            cells = np.full(len(exists), -1)
            cells[exists] = column
            found.append(MemberGroup(cells, sums[0] if sums else -1))
    return found


def refusal_of_groups(release: Any, variable: str | None) -> str:
    """Why no groups can be read, in words."""
    design = release.design
    if release.unit != COUNT:
        return "the values are no counts"
    if len(design.axes) < 2:
        return "there is one variable only"
    if design.n_inner > _LARGEST:
        return f"more than {_LARGEST:,} inner cells"
    name = variable or design.axes[-1].name
    return "" if any(_some_groups(release, name)) else f"no table shows {name!r} in full"


def _some_groups(release: Any, variable: str) -> Iterator[list[MemberGroup]]:
    """The groups of people all over the table: where rules exclude categories, some have none."""
    n = release.design.n_inner
    cells = [
        release.design.inner_cell(int(k))
        for k in np.unique(np.linspace(0, n - 1, _SOME).astype(int))
    ]
    people = tuple(
        {name: code for name, code in cell.items() if name != variable} for cell in cells
    )
    return groups_of(release, variable, people)


def _own_counts(release: Any, knowledge: Knowledge) -> Real:
    """How many of the intruder's own records each published cell holds."""
    design, found = release.design, np.zeros(release.design.n_published + 1)
    for record in knowledge.own:
        codes = [[axis.leaves.index(record[axis.name])] for axis in design.axes]
        same = np.ones(design.n_inner, dtype=bool)
        for leaf, code in zip(design.inner_codes(), codes, strict=True):
            same &= np.asarray(leaf) == code[0]
        found[np.unique(design.members(np.flatnonzero(same)))] += 1
    found[-1] = 0.0
    return found


def shown_counts(release: Any) -> Real:
    """Released counts, zero where they are hidden, and a last zero for cells that do not exist."""
    z = np.where(release.hidden, 0.0, np.maximum(np.asarray(release.z, np.float64), 0.0))
    return np.append(z, 0.0)


def usual_shares(release: Any, variable: str, z: Real, n: int) -> Real:
    """Shares of the categories among everybody, from the largest published group."""
    every = [z[group.cells] for groups in _some_groups(release, variable) for group in groups]
    largest = max(every, key=lambda counts: float(counts.sum()))
    total = float(largest.sum())
    return np.full(n, 1 / n) if total <= 0 else largest / total
