"""The cells of a data set as small files, one for every crossing that its policy lets be asked.

A table reads one file: the sums of the protected inner cells by the finest categories that the
table needs. Nothing in a file follows from anything but published values and codes. For
programs the inner cells lie beside them as Parquet: a column of codes for each variable, and the
figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Mask
from discreet.columns import Column
from discreet.design.axis import Axis
from discreet.design.support import LARGEST_DENSE, declared_masks
from discreet.errors import DataError
from discreet.frames import Frame, value_names
from discreet.parquet import parquet_bytes
from discreet.serve.data.dataset import Dataset
from discreet.serve.data.inner import InnerTable
from discreet.serve.data.source import Detail, DetailedVariable, OfferedVariable
from discreet.serve.static.folder import SiteFolder

MOST_FILES = 200_000
"""Cell files of a data set; more are no longer small things in a folder."""
_MARK = b"DCL1"
_WHOLE: tuple[tuple[int, str], ...] = ((1, "<i1"), (2, "<i2"), (4, "<i4"))
_OUTSIDE = "(outside)"  # categories that belong to no code of a level


@dataclass(frozen=True, eq=False)
class Base:
    """The categories of a variable that a file tells apart.

    Attributes:
      name: `region`, or `region[province]` where only that level is needed.
      axis: The variable.
      codes: The codes of the slots; those outside all of them share one more.
      slots: For each of the finest categories its slot.
      cells: Fewest cells of a table along the variable that read it, the total included.
    """

    name: str
    axis: Axis
    codes: tuple[str, ...]
    slots: NDArray[np.int64]
    cells: int

    @cached_property
    def size(self) -> int:
        """The number of slots."""
        return int(self.slots.max()) + 1


def base_name(variable: OfferedVariable, detail: Detail) -> str:
    """The base that a detail reads: the finest categories, or a single coarser level."""
    levels, axis = detail.levels, variable.axis
    if len(levels) > 1 or levels[0].is_identity:
        return axis.name
    return f"{axis.name}[{axis.short_name(levels[0])}]"


def bases_of(variable: OfferedVariable) -> list[Base]:
    """The bases that the details of a variable read."""
    axis, found = variable.axis, dict[str, Base]()
    for detail in sorted(variable.details, key=lambda d: d.cells):
        name, slots = base_name(variable, detail), DetailedVariable(variable, detail).slots
        codes = axis.leaves if name == axis.name else detail.levels[0].codes
        found.setdefault(name, Base(name, axis, codes, slots, detail.cells))
    return list(found.values())


@dataclass(frozen=True, eq=False)
class CellWriter:
    """Writes the cell files of a data set.

    Attributes:
      dataset: The data set.
      table: Its protected inner table.
    """

    dataset: Dataset
    table: InnerTable

    def write(self, folder: SiteFolder) -> dict[str, Any]:
        """Write every file; returns the names of files by what they cross.

        `never` has slots that can occur with no other ones, by crossing and variable.
        """
        files: dict[str, str] = {}
        never: dict[str, list[list[int]]] = {}
        for crossing in self._crossings():
            name = "*".join(base.name for base in crossing)
            possible = possible_of(self.table, self._with_periods(crossing))
            for file, content in self._files(name, crossing, possible):
                path = folder.write_hashed(content, "bin")
                files[file] = path.removeprefix("files/").removesuffix(".bin")
            if possible is not None and (lost := _never(possible)):
                never[name] = lost
        return {"files": files, "never": never}

    def _crossings(self) -> list[tuple[Base, ...]]:
        """Every choice of bases that some table reads, by the limits of the policy."""
        policy, across = self.dataset.policy, [v for v in self.dataset.variables if not v.is_time]
        bases, most = [bases_of(v) for v in across], policy.max_variables
        found = list(_within(bases, policy.max_cells, most))
        periods = len(self._period.axis) if self._period else 1
        if not self._period:
            found.remove(())
        if len(found) * periods > MOST_FILES:
            raise DataError(
                f"data set {self.dataset.name!r} has {len(found) * periods:,} crossings within its "
                f"limits, and a site of files at most {MOST_FILES:,}. Lower max_variables (now "
                f"{most}) or max_cells (now {policy.max_cells:,}), or offer fewer variables."
            )
        return found

    @cached_property
    def _period(self) -> OfferedVariable | None:
        return next((v for v in self.dataset.variables if v.is_time), None)

    def _with_periods(self, crossing: tuple[Base, ...]) -> tuple[Base, ...]:
        if self._period is None:
            return crossing
        leaves = self._period.axis.leaves
        return (Base("", self._period.axis, leaves, np.arange(len(leaves)), 0), *crossing)

    def _files(
        self, name: str, crossing: tuple[Base, ...], possible: Mask | None
    ) -> Iterator[tuple[str, bytes]]:
        """The file of a crossing, or those of its periods."""
        sums = sums_of(self.table, self._with_periods(crossing))
        if self._period is None:
            yield name, file_content(sums, possible)
            return
        for k, period in enumerate(self._period.axis.leaves):
            bits = None if possible is None else possible[k]
            yield f"{name}@{period}", file_content(sums[k], bits)


def _never(possible: Mask) -> list[list[int]]:
    """For each dimension the places that can occur nowhere; nothing where every one can."""
    every = range(possible.ndim)
    found = [
        np.flatnonzero(~possible.any(axis=tuple(k for k in every if k != own))).tolist()
        for own in every
    ]
    return found if any(found) else []


def _within(bases: Sequence[Sequence[Base]], room: float, most: int) -> Iterator[tuple[Base, ...]]:
    """Choices of at most so many variables, one base each, that have so many cells at most."""
    yield ()
    if most == 0:
        return
    for k, options in enumerate(bases):
        for base in options:
            if base.cells <= room:
                for rest in _within(bases[k + 1 :], room // base.cells, most - 1):
                    yield (base, *rest)


def sums_of(table: InnerTable, crossing: Sequence[Base]) -> Array:
    """The protected sums by the slots of some bases."""
    return table.margin([base.axis.name for base in crossing], [base.slots for base in crossing])


def possible_of(table: InnerTable, crossing: Sequence[Base]) -> Mask | None:
    """Which slots can occur; nothing where every one can."""
    masks = declared_masks([base.axis for base in crossing], table.zeros)
    named = sorted({a for mask in masks for a in mask.axes})
    if not masks:
        return None
    shape = [len(crossing[a].axis) for a in named]
    if math.prod(shape) > LARGEST_DENSE:
        listed = ", ".join(crossing[a].axis.name for a in named)
        raise DataError(f"structural zeros over {listed} are too many combinations to be held.")
    found = np.ones(shape, dtype=bool)
    for mask in masks:
        over = [len(crossing[a].axis) if a in mask.axes else 1 for a in named]
        found &= mask.possible.reshape(over)
    for k, a in enumerate(named):  # a slot can occur where one of its categories can
        slots = np.zeros((*found.shape[:k], crossing[a].size, *found.shape[k + 1 :]), dtype=bool)
        np.logical_or.at(slots, (*[slice(None)] * k, crossing[a].slots), found)  # type: ignore[arg-type]
        found = slots
    full = found.reshape([base.size if a in named else 1 for a, base in enumerate(crossing)])
    return np.broadcast_to(full, [base.size for base in crossing])


def file_content(sums: Array, possible: Mask | None) -> bytes:
    """A cell file: what kind of numbers it has, the numbers, and which slots can occur."""
    values = sums if possible is None else np.where(possible, sums, 0)
    kind, form = 8, "<f8"
    if np.issubdtype(values.dtype, np.integer):
        largest = int(np.abs(values).max(initial=0))
        kind, form = next((w for w in _WHOLE if largest <= np.iinfo(w[1]).max), (kind, form))
    head = _MARK + bytes([kind, int(possible is not None), 0, 0])
    bits = b"" if possible is None else np.packbits(possible.ravel(), bitorder="little").tobytes()
    return head + values.astype(form).tobytes() + bits


def public_table(dataset: Dataset, table: InnerTable) -> InnerTable:
    """The inner table by the variables and finest categories that are on offer, and no others."""
    bases = [max(bases_of(v), key=lambda base: base.size) for v in dataset.variables]
    names = [axis.name for axis in table.axes]
    columns = [base.slots[table.codes[names.index(base.axis.name)]] for base in bases]
    cells, inverse = np.unique(np.stack(columns), axis=1, return_inverse=True)
    sums = np.bincount(inverse.ravel(), table.values, cells.shape[1])
    if np.issubdtype(table.values.dtype, np.integer):
        sums = np.rint(sums).astype(np.int64)
    kept = np.flatnonzero(sums)
    return replace(
        table,
        axes=tuple(map(_axis_of, bases)),
        codes=tuple(column[kept] for column in cells),
        values=sums[kept],
        zeros=(),
    )


def _axis_of(base: Base) -> Axis:
    if base.size == len(base.axis):
        return base.axis
    codes = (*base.codes, *[_OUTSIDE] * (base.size - len(base.codes)))
    flat = Axis.flat(base.axis.name, codes, base.axis.total)
    return replace(flat, labels=dict(base.axis.labels))


def parquet_of(table: InnerTable) -> bytes:
    """A protected inner table as a Parquet file; the same cells are the same bytes.

    Cells that are not listed are zero, or cannot occur.
    """
    codes = {
        axis.name: Column.of_codes(places, axis.leaves)
        for axis, places in zip(table.axes, table.codes, strict=True)
    }
    figures = value_names(codes, [table.unit])[table.unit]
    told = {"discreet.edition": table.edition.encode(), "discreet.unit": table.unit.encode()}
    return parquet_bytes(Frame({**codes, figures: table.values}), told)
