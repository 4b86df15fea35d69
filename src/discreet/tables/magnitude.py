"""Magnitudes: sums of a value over contributors, and the largest contributions to each cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from discreet.arrays import Array, Mask, Real, Whole, Whole32
from discreet.errors import DesignError, ParameterError, texts, whole
from discreet.frames import fresh_name

Negative = Literal["refuse", "absolute"]
"""What is done with negative values: they are an error, or judged by their absolute value."""

_LESS = 1e-9  # share of a sum by which rounding errors may leave it below its absolute values
NOBODY = -1
"""The owner of a contribution that is not there, or whose contributor is not known."""

NEGLIGIBLE = 1e-12
"""A contributor whose records cancel out to less than this share of them contributes nothing."""

LARGEST = 3
"""How many of the largest contributions to each cell are kept, unless said otherwise."""


@dataclass(frozen=True)
class Magnitude:
    """What is summed, and whose it is.

    Attributes:
      value: Column that is summed.
      contributor: Column that says whose a record is.
      holding: Column of the group that a contributor belongs to; contributors of one holding count
        as one, and a contributor without a holding stands for itself.
      negative: What is done with negative values.
      largest: How many of the largest contributions to each cell are kept.
    """

    value: str
    contributor: str
    holding: str | None = None
    negative: Negative = "refuse"
    largest: int = LARGEST

    def __post_init__(self) -> None:
        texts(value=self.value, contributor=self.contributor, holding=self.holding)
        if self.negative not in get_args(Negative):
            raise ParameterError(f"negative must be 'refuse' or 'absolute', got {self.negative!r}.")
        if whole("largest", self.largest, 0) < 2:
            raise ParameterError(
                f"largest must be at least 2, got {self.largest}: a rule compares the largest "
                "contributor with the second."
            )
        if len(set(self.columns)) != len(self.columns):
            raise ParameterError(
                f"value, contributor and holding must be different columns, got {self.columns}."
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that take part."""
        named = (self.value, self.contributor, self.holding)
        return tuple(name for name in named if name is not None)


@dataclass(frozen=True, eq=False)
class CellContributions:
    """Contributions to each cell of a list.

    A contribution is all that one contributor gives to a cell, over all its records in it. Those
    that are zero do not count.
    """

    sum: Real  # sum of the contributions
    absolute: Real  # sum of their absolute values; the same where none is negative
    count: Whole  # number of contributors whose contribution is not zero
    # Cells × places: absolute values of the largest contributions, in decreasing order, zero behind
    # the last.
    largest: Real
    # Cells × places: whose they are, `NOBODY` behind the last and where it is not known.
    owner: Whole

    def __post_init__(self) -> None:
        if len({len(values) for values in vars(self).values()}) > 1:
            raise DesignError("sums, counts and largest contributions are of different cells.")
        if self.largest.shape != self.owner.shape or self.largest.ndim != 2:
            raise DesignError("every one of the largest contributions needs an owner or NOBODY.")

    def __len__(self) -> int:
        return len(self.sum)

    @classmethod
    def none(cls, n: int, largest: int) -> CellContributions:
        """Cells to which nobody contributes."""
        zeros = np.zeros(n)
        owner = np.full((n, largest), NOBODY, dtype=np.int64)
        return cls(zeros, zeros.copy(), np.zeros(n, np.int64), np.zeros((n, largest)), owner)

    def set_cells(self, places: slice | Array, found: CellContributions) -> None:
        """Write the contributions to some cells in their places."""
        for name, values in vars(self).items():
            values[places] = getattr(found, name)

    def take(self, places: Array) -> CellContributions:
        """The cells at some places, in that order."""
        return CellContributions(**{name: values[places] for name, values in vars(self).items()})

    def spread(self, places: Array, n: int) -> CellContributions:
        """The cells at some places among more, to which nobody contributes."""
        more = CellContributions.none(n, self.largest.shape[1])
        more.set_cells(places, self)
        return more

    @property
    def lone(self) -> Whole:
        """For each cell its only contributor; `NOBODY` where there is none, several, or unknown."""
        if not self.owner.shape[1]:
            return np.full(len(self), NOBODY, dtype=np.int64)
        return np.where(self.count == 1, self.owner[:, 0], NOBODY)


@dataclass(frozen=True, eq=False)
class Contributions:
    """**Confidential.** Sums of a value, numbers of contributors and the largest contributions.

    Attributes:
      value: Name of the value.
      published: Contributions to the published cells; those of one contributor in all inner cells
        of a published cell are one contribution.
      inner: Contributions to the inner cells; `None` when those are not known.
      owners: Identifiers of the contributors that are named; an owner is a place among them.
      is_weighted: Whether contributions are sums of weight times value.
      may_be_negative: Whether negative values were allowed.
    """

    value: str
    published: CellContributions
    inner: CellContributions | None = None
    owners: tuple[str, ...] = field(default=(), repr=False)
    is_weighted: bool = False
    may_be_negative: bool = False

    @property
    def has_negative(self) -> bool:
        """Whether some contribution is negative; values may be where none is."""
        read = [self.published] if self.inner is None else [self.published, self.inner]
        return any(bool((each.absolute - each.sum > _LESS * each.absolute).any()) for each in read)

    @property
    def sum(self) -> Real:
        """Sums of the published cells."""
        return self.published.sum

    @property
    def count(self) -> Whole:
        """Numbers of contributors of the published cells."""
        return self.published.count

    @property
    def largest(self) -> Real:
        """The largest contributions to the published cells, in decreasing order."""
        return self.published.largest

    @property
    def owner(self) -> Whole:
        """Whose the largest contributions are, as places in `owners`."""
        return self.published.owner

    def require_inner(self) -> CellContributions:
        """Contributions to the inner cells, or a clear error when only margins were read."""
        if self.inner is None:
            raise DesignError(
                "this table holds contributions to published cells only; those to its inner cells "
                "were not read. Tabulate fewer variables at once, or with support='occurring'."
            )
        return self.inner

    def check_length(self, n_published: int, n_inner: int) -> None:
        """Refuse contributions to other cells than a design has."""
        for cells, n in ((self.published, n_published), (self.inner, n_inner)):
            if cells is not None and len(cells) != n:
                raise DesignError(
                    f"the design has {n:,} cells, but contributions to {len(cells):,}."
                )

    def places_of(self, owners: Sequence[object]) -> Whole:
        """Places of some contributors among the owners; those who are not named are left out."""
        wanted = {str(owner) for owner in owners}
        return np.flatnonzero([owner in wanted for owner in self.owners]).astype(np.int64)

    def spread(
        self, published: Array, n_published: int, inner: Array | None, n_inner: int
    ) -> Contributions:
        """The same among more cells; without places for inner cells, those are left out."""
        moved = None
        if self.inner is not None and inner is not None:
            moved = self.inner.spread(inner, n_inner)
        return replace(self, published=self.published.spread(published, n_published), inner=moved)

    def take(self, published: Array, inner: Array) -> Contributions:
        """The same for cells in another order."""
        moved = None if self.inner is None else self.inner.take(inner)
        return replace(self, published=self.published.take(published), inner=moved)


CONTRIBUTORS, ABSOLUTE, LARGEST_OF, OWNER_OF = "contributors", "absolute", "largest_", "owner_"
"""Names of columns of contributions; the last two are followed by a place from 1."""

_RESERVED = ("count", "weight", "weight_squared", "cell_key", "cell", CONTRIBUTORS, ABSOLUTE)


def sum_column(value: str) -> str:
    """The name of the column of sums: the value's, with a `_` where that means something else."""
    return fresh_name(value, _RESERVED)


def contribution_columns(given: Contributions, cells: CellContributions) -> dict[str, Any]:
    """Contributions to some cells as columns; owners are told by their identifiers."""
    columns: dict[str, Any] = {sum_column(given.value): cells.sum, CONTRIBUTORS: cells.count}
    if given.may_be_negative:
        columns[ABSOLUTE] = cells.absolute
    names = np.array([*given.owners, ""], dtype=object)
    for place in range(cells.largest.shape[1]):
        owner = cells.owner[:, place]
        columns[f"{LARGEST_OF}{place + 1}"] = cells.largest[:, place]
        columns[f"{OWNER_OF}{place + 1}"] = np.ma.array(names[owner], mask=owner == NOBODY)
    return columns


Coded = tuple[Sequence[str], Whole32]
"""Distinct identifiers, and the place of each row's among them, -1 where it has none."""


def named_owners(holdings: Coded, contributors: Coded) -> tuple[tuple[str, ...], Whole]:
    """Identifiers of owners in the order of their texts, and the place of each row's owner.

    The owner is the row's holding, or its contributor where it has none.
    """
    (groups, in_group), (single, alone) = holdings, contributors
    named = in_group >= 0
    known = {groups[i] for i in np.unique(in_group[named]).tolist()}
    used = np.unique(alone[~named]).tolist()
    shown = {i: f"{single[i]} (no holding)" if single[i] in known else single[i] for i in used}
    owners = tuple(sorted({*known, *shown.values()}))
    place = {owner: k for k, owner in enumerate(owners)}
    of_group = np.array([place.get(group, NOBODY) for group in groups] or [NOBODY], dtype=np.int64)
    of_single = np.full(len(single) or 1, NOBODY, dtype=np.int64)
    of_single[used] = [place[text] for text in shown.values()]
    return owners, np.where(named, of_group[in_group], of_single[alone])


def top_contributions(
    cell: Array, who: Array, amount: Array, n: int, largest: int
) -> CellContributions:
    """Contributions to cells from records.

    Args:
      cell: The cell of each record, -1 for those that are in none.
      who: The contributor of each record, a whole number.
      amount: What each record contributes.
      n: Number of cells.
      largest: How many of the largest contributions are kept.

    Cost: two sorts of the records.
    """
    inside = cell >= 0
    cell, who, amount = cell[inside], who[inside], amount[inside]
    order = np.argsort(cell * (int(who.max(initial=0)) + 1) + who, kind="stable")
    cell, who, amount = cell[order], who[order], amount[order]
    first = np.flatnonzero(_starts(cell) | _starts(who))
    each, gross = _group_sums(amount, first), _group_sums(np.abs(amount), first)
    cell, who = cell[first], who[first]
    some = np.abs(each) > NEGLIGIBLE * gross
    cell, who, each = cell[some], who[some], each[some]
    size = np.abs(each)
    order = np.lexsort((-size, cell))
    cell, who, each, size = cell[order], who[order], each[order], size[order]
    starts = np.flatnonzero(_starts(cell))
    lengths = np.diff(np.append(starts, len(cell)))
    rank = np.arange(len(cell)) - np.repeat(starts, lengths)
    found = CellContributions.none(n, largest)
    found.sum[:] = np.bincount(cell, each, minlength=n)
    found.absolute[:] = np.bincount(cell, size, minlength=n)
    found.count[:] = np.bincount(cell, minlength=n)
    top = rank < largest
    found.largest[cell[top], rank[top]] = size[top]
    found.owner[cell[top], rank[top]] = who[top]
    return found


def _group_sums(amount: Array, first: Array) -> Real:
    """Sums over runs of records that begin at some places."""
    return np.add.reduceat(amount, first) if len(first) else np.empty(0)


def _starts(values: Array) -> Mask:
    """Whether each value differs from the one before; the first does."""
    return np.append(True, values[1:] != values[:-1])[: len(values)]
