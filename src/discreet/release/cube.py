"""A release as a labelled array: one axis for each variable, its total first.

Pages, charts, file formats and interfaces for programs all read this one shape. Everything here
works on released values, so nothing it makes tells more than the release does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Index, Mask
from discreet.design.axis import OUTSIDE, Axis, Level
from discreet.design.formula import heading_of
from discreet.design.structured import StructuredDesign
from discreet.errors import ConfidentialError, DesignError, UnknownNameError, check_known
from discreet.tables.protected import HIDDEN, CellStatus, PublicTable
from discreet.tables.statement import Statement

ABSENT = -1
"""Status of a combination that the release does not contain."""


@dataclass(frozen=True)
class CubeEntry:
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


@dataclass(frozen=True)
class CubeAxis:
    """A variable of a cube: its name, its label, and its entries in reading order."""

    name: str
    label: str
    entries: tuple[CubeEntry, ...]

    def __len__(self) -> int:
        return len(self.entries)

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """The codes of the entries."""
        return tuple(entry.code for entry in self.entries)

    @property
    def total(self) -> int | None:
        """The place of the total, where it is among the entries."""
        return next((k for k, entry in enumerate(self.entries) if entry.is_total), None)

    def place(self, code: str) -> int:
        """The place of a code, the first where a group has the name of another entry."""
        if code not in self._place:
            raise UnknownNameError(f"code of {self.name!r}", code, self.codes)
        return self._place[code]

    @cached_property
    def _place(self) -> dict[str, int]:
        """Places by code, found once: a table may ask for thousands of them."""
        last = len(self.entries) - 1
        return {code: last - k for k, code in enumerate(reversed(self.codes))}


@dataclass(frozen=True, eq=False)
class Cube:
    """**Public.** Released values by the codes of their variables.

    Attributes:
      axes: The variables, in the order of the array's dimensions.
      values: The released values; zero in cells that are hidden or absent.
      status: A `CellStatus` or `ABSENT` for each value.
      unit: What the values are: `"count"`, `"weight"` or the name of a value.
      statement: What was done to the values and what it promises.
    """

    axes: tuple[CubeAxis, ...]
    values: Array
    status: NDArray[np.int8]
    unit: str
    statement: Statement

    @classmethod
    def of(cls, release: PublicTable) -> Cube:
        """The published cells of a release."""
        if not isinstance(release, PublicTable):
            raise ConfidentialError("only a release may be laid out; protect the table first.")
        design = release.design.require_variables("codes to lay it out by")
        coded, axes = design.published_codes(), axes_of(design)
        where = tuple(
            _places(axis, codes)[index] for axis, (index, codes) in zip(axes, coded, strict=True)
        )
        values = np.zeros([len(axis) for axis in axes], dtype=release.z.dtype)
        status = np.full(values.shape, ABSENT, dtype=np.int8)
        shown = drop_float_noise(np.where(release.hidden, 0, release.z))
        values[where] = shown.reshape(values[where].shape)
        for block in design.blocks:  # what a published margin leaves out cannot occur
            status[np.ix_(*_margin_places(axes, block.levels))] = CellStatus.structural_zero
        told = np.zeros(len(release.z)) if release.status is None else release.status
        status[where] = told.reshape(values[where].shape)
        return cls(axes, values, status, release.unit, release.statement)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables."""
        return tuple(axis.name for axis in self.axes)

    @property
    def is_shown(self) -> Mask:
        """Which cells show a value."""
        return np.asarray((self.status != ABSENT) & ~np.isin(self.status, HIDDEN))

    def axis(self, name: str) -> CubeAxis:
        """The variable of this name."""
        return self.axes[self._dimension(name)]

    def reorder(self, names: Sequence[str]) -> Cube:
        """The same cube with its variables in another order."""
        order = [self._dimension(name) for name in names]
        return replace(
            self,
            axes=tuple(self.axes[k] for k in order),
            values=self.values.transpose(order),
            status=self.status.transpose(order),
        )

    def select(self, name: str, codes: Sequence[str]) -> Cube:
        """Only the entries of one variable that have these codes, in the order of the cube."""
        axis = self.axis(name)
        places = sorted(axis.place(code) for code in dict.fromkeys(codes))
        dimension = self._dimension(name)
        return replace(
            self.with_entries(name, [axis.entries[k] for k in places]),
            values=self.values.take(places, dimension),
            status=self.status.take(places, dimension),
        )

    def with_entries(self, name: str, entries: Iterable[CubeEntry]) -> Cube:
        """The same values with other entries of a variable."""
        changed = replace(self.axis(name), entries=tuple(entries))
        return replace(self, axes=tuple(changed if a.name == name else a for a in self.axes))

    def with_labels(self, labels: Sequence[str]) -> Cube:
        """The same cube with other labels of its variables, in their order."""
        pairs = zip(self.axes, labels, strict=True)
        return replace(self, axes=tuple(replace(axis, label=label) for axis, label in pairs))

    def with_slice(self, name: str, place: int, entry: CubeEntry, cells: Cube) -> Cube:
        """The cube with one more entry of a variable, whose cells another cube has."""
        dimension, entries = self._dimension(name), self.axis(name).entries
        return replace(
            self.with_entries(name, (*entries[:place], entry, *entries[place:])),
            values=np.insert(self.values, place, cells.values, dimension),
            status=np.insert(self.status, place, cells.status, dimension),
        )

    @classmethod
    def stack(cls, axis: CubeAxis, cubes: Sequence[Cube]) -> Cube:
        """Cubes of the same variables as one, with a further variable that tells them apart."""
        return replace(
            cubes[0],
            axes=(*cubes[0].axes, axis),
            values=np.stack([cube.values for cube in cubes], -1),
            status=np.stack([cube.status for cube in cubes], -1),
        )

    def at(self, name: str, code: str) -> Cube:
        """The slice at one code of a variable."""
        dimension, place = self._dimension(name), self.axis(name).place(code)
        return replace(
            self,
            axes=tuple(axis for axis in self.axes if axis.name != name),
            values=np.asarray(self.values.take(place, dimension)),
            status=np.asarray(self.status.take(place, dimension)),
        )

    def sum_over(self, name: str, codes: Sequence[str]) -> Cube:
        """The sum over the cells with these codes of a variable, which then is gone."""
        values, status = self._sum(name, codes)
        axes = tuple(axis for axis in self.axes if axis.name != name)
        return replace(self, axes=axes, values=values, status=status)

    def group(self, name: str, groups: Mapping[str, Sequence[str]]) -> Cube:
        """The total of a variable and groups of its codes, by the groups' labels."""
        axis, dimension = self.axis(name), self._dimension(name)
        start = () if axis.total is None else (axis.entries[axis.total],)
        made = tuple(CubeEntry(label, label, 1, is_sum=False) for label in groups)
        parts = [(e.code,) for e in start] + [tuple(codes) for codes in groups.values()]
        sums = [self._sum(name, codes) for codes in parts]
        return replace(
            self.with_entries(name, (*start, *made)),
            values=np.stack([values for values, _ in sums], dimension),
            status=np.stack([status for _, status in sums], dimension),
        )

    def shares(self, over: Sequence[str]) -> Cube:
        """Each value in per cent of the released one at the total of these variables.

        Not a number where that one is zero or not shown.
        """
        base, base_shown = self.values.astype(np.float64), self.is_shown
        for name in over:
            dimension, total = self._dimension(name), self.axis(name).total
            if total is None:
                raise DesignError(f"shares over {name!r} need its total.")
            base = base.take([total], dimension)
            base_shown = base_shown.take([total], dimension)
        with np.errstate(divide="ignore", invalid="ignore"):
            per_cent = np.where(base_shown & (base != 0), 100.0 * self.values / base, np.nan)
        return replace(self, values=per_cent)

    def per(self, counts: Cube) -> Cube:
        """Each value divided by the released count of its cell, which has the same variables.

        Hidden where either is; not a number where a shown value has a count of none.
        """
        if [axis.codes for axis in self.axes] != [axis.codes for axis in counts.axes]:
            raise DesignError("values and counts must be of the same cells.")
        status = np.where(self.is_shown & ~counts.is_shown, counts.status, self.status)
        is_shown = self.is_shown & counts.is_shown
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(counts.values > 0, self.values / counts.values, np.nan)
        values = np.where(is_shown, found, 0.0)
        return replace(self, values=values, status=status.astype(np.int8))

    def _sum(self, name: str, codes: Sequence[str]) -> tuple[Array, NDArray[np.int8]]:
        """Values and status of a sum: what holds a hidden or absent part is itself one."""
        axis, dimension = self.axis(name), self._dimension(name)
        places = [axis.place(code) for code in codes]
        status = self.status.take(places, dimension)
        found = status.max(axis=dimension)  # impossible cells add nothing
        found = np.where(np.isin(status, HIDDEN).any(dimension), CellStatus.suppressed, found)
        found = np.where((status == ABSENT).any(dimension), ABSENT, found)
        zero = status == CellStatus.structural_zero
        is_mixed = ~zero.all(dimension) & (found == CellStatus.structural_zero)
        found = np.where(is_mixed, CellStatus.published, found)
        values = np.where(zero, 0, self.values.take(places, dimension)).sum(axis=dimension)
        return values, found.astype(np.int8)

    def _dimension(self, name: str) -> int:
        check_known("variable", [name], self.names)
        return self.names.index(name)


def axes_of(design: StructuredDesign) -> tuple[CubeAxis, ...]:
    """The variables of a design's published cells, with the codes that occur in them."""
    return tuple(
        _axis_of(design, k, {codes[i] for i in np.unique(index)})
        for k, (index, codes) in enumerate(design.published_codes())
    )


def _axis_of(design: StructuredDesign, k: int, occurring: set[str]) -> CubeAxis:
    axis = design.axes[k]
    published = {id(block.levels[k]) for block in design.blocks}
    levels = [level for level in axis.levels if id(level) in published]
    if id(axis.finest) in published and axis.finest not in levels:
        levels.append(axis.finest)
    entries = [e for e in outline(axis, levels or [axis.finest]) if e.code in occurring]
    return CubeAxis(axis.name, heading_of(axis.name), tuple(entries))


_MOST_DECIMALS = 6
_NOISE = 64  # units in the last place that a sum of many numbers may be off


def drop_float_noise(values: Array, *, as_largest: bool = False) -> Array:
    """Sums of decimals as they were meant: 0.3 for 0.1 + 0.2, which is 0.30000000000000004.

    Where all values are decimals of one length, up to what adding them up may cost, they are
    rounded to it; others stay as they are.

    Args:
      values: The sums.
      as_largest: Whether each may be off by as much as the largest, since negative parts cancel.
    """
    if values.dtype.kind != "f" or not np.isfinite(values).all():
        return values
    size = np.abs(values)
    slack = _NOISE * np.spacing(np.full_like(size, size.max(initial=0)) if as_largest else size)
    for decimals in range(_MOST_DECIMALS + 1):
        rounded = np.round(values, decimals)
        if (np.abs(values - rounded) <= slack).all():
            # numbers so large that these decimals are within the noise are left alone
            return rounded if (slack < 0.01 * 10.0**-decimals).all() else values
    return values


def _margin_places(axes: Sequence[CubeAxis], levels: Sequence[Level | None]) -> list[Index]:
    """The places of a margin's codes along every axis."""
    shown = [
        [axis.total or 0] if level is None else np.flatnonzero(np.isin(axis.codes, level.codes))
        for axis, level in zip(axes, levels, strict=True)
    ]
    return [np.asarray(places, dtype=np.intp) for places in shown]


def _places(axis: CubeAxis, codes: Sequence[str]) -> Index:
    place = {code: k for k, code in enumerate(axis.codes)}
    return np.array([place.get(code, 0) for code in codes], dtype=np.intp)


def parents(entries: Sequence[CubeEntry], *, of_total: bool = False) -> list[int | None]:
    """For each entry, in reading order, the place of the one it stands under.

    Nothing stands under the total unless `of_total`.
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


def outline(axis: Axis, levels: Sequence[Level]) -> list[CubeEntry]:
    """The total and the codes of the levels; groups that cross the main hierarchy come last."""
    chain = _chain(levels)
    first: list[Index] = []  # of each level the first leaf of every group
    for level in chain:
        groups, leaves = np.unique(level.group, return_index=True)
        first.append(leaves[groups != OUTSIDE])
    nodes = [
        (_path(chain, first, depth, k), depth + 1, code)
        for depth, level in enumerate(chain)
        for k, code in enumerate(level.codes)
    ]
    nested = [(depth, code) for _, depth, code in sorted(nodes)]
    others = [level for level in levels if level not in chain]
    crossing = [(1, code) for level in others for code in level.codes]
    placed = [(0, axis.total), *nested, *crossing]
    following = [depth for depth, _ in placed[1:]] + [0]
    return [
        CubeEntry(code, axis.labels.get(code) or code, depth, is_sum=below > depth)
        for (depth, code), below in zip(placed, following, strict=True)
    ]


def _chain(levels: Sequence[Level]) -> list[Level]:
    """The levels, coarse to fine, of which each lies wholly within the one before."""
    chain = [levels[-1]]
    for coarse in reversed(levels[:-1]):
        fine = chain[0]
        inside = fine.group != OUTSIDE
        pairs = np.unique(np.stack([fine.group[inside], coarse.group[inside]]), axis=1)
        # As many pairs as groups: each group of the finer level lies in one of the coarser.
        if pairs.shape[1] == len(fine) and (pairs[1] != OUTSIDE).all():
            chain.insert(0, coarse)
    return chain


def _path(chain: Sequence[Level], first: Sequence[Index], depth: int, k: int) -> tuple[int, ...]:
    """A sort key: the first leaves of the groups from the coarsest down to this one."""
    leaf = first[depth][k]
    above = (first[d][chain[d].group[leaf]] for d in range(depth))
    return (*map(int, above), int(leaf))
