"""Tables of one protected inner table, which lies in a folder of memory-mapped columns.

Only cells that are not zero are kept. A table is the sum of them by the codes that are asked for,
so every table agrees with every other, and none tells more than the inner table does.

Finished builds of a data set lie beside each other. A build is written under a name of its own and
takes effect when the pointer to it is exchanged, so a table is there whole or not at all, and one
that is being served stays until nobody reads it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Array, Index
from discreet.design.axis import Axis
from discreet.design.sparse import SparseDesign, complete_design
from discreet.design.structured import StructuredDesign
from discreet.design.support import LARGEST_DENSE
from discreet.errors import ConfidentialError, DataError, DesignError, UnknownNameError
from discreet.facade.release import Release
from discreet.files import flush, held_lock, written_whole
from discreet.release.cube import Cube
from discreet.serve.data.cache import read_cube, write_cube
from discreet.serve.data.price import Price, price_of
from discreet.serve.data.source import (
    BudgetStatus,
    DetailedVariable,
    Mode,
    by_detail,
    crossing,
    variables_on_offer,
)
from discreet.tables.statement import Statement, Step
from discreet.tables.storage import axis_from_json, axis_to_json

_FORMAT = 1
_HEADER, _VALUES, _CHECKSUMS = "inner.json", "values.npy", "checksums.json"
_SUM = "sum-{}-{}.npz"
POINTER = "current"
Rules = Sequence[Mapping[str, Any]]
_MOST_LEAVES = 500_000  # combinations of finest categories that are held, 8 bytes each
_CHUNK = 1 << 18  # cells that are summed at a time, so that they stay near the processor
_PARTIAL, _LOCK = ".part", ".lock"
_ABANDONED = 86_400.0  # seconds after which a build that is not complete never will be


@dataclass(frozen=True, eq=False)
class InnerTable:
    """**Public.** A protected inner table: the codes and values of its cells that are not zero.

    Attributes:
      axes: The variables.
      codes: For each variable the leaf positions of the cells.
      values: Their protected values.
      unit: What the values are.
      statement: What was done to them.
      edition: The edition of the records.
      zeros: Combinations that cannot occur, as {variable: codes}.
      made_from: A digest of recipe and data set, by which a stale table is told.
      made_on: The day when it was written, `2026-11-16`; empty while it was not.
      sums: The protected tables of sums that are published beside the counts.
    """

    axes: tuple[Axis, ...]
    codes: tuple[Array, ...]
    values: Array
    unit: str
    statement: Statement
    edition: str
    zeros: tuple[Mapping[str, Any], ...] = ()
    made_from: str = ""
    made_on: str = ""
    sums: Mapping[str, tuple[Cube, ...]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, release: Release, edition: str, zeros: Rules = (), made_from: str = ""
    ) -> InnerTable:
        """The inner cells of a release that has them."""
        if not isinstance(release, Release):
            raise ConfidentialError("only a release may be served; protect the table first.")
        if release.y is None:
            raise DesignError(
                "inner cells are not part of this release, so no tables can be made of it. Protect "
                "with a method that releases them (safe, small-count-rounding with "
                "force_inner = true), or fit it: [fit] in the recipe."
            )
        design = release.design.require_variables("variables to make tables of")
        kept = np.flatnonzero(release.y)
        codes = tuple(
            leaves.astype(np.min_scalar_type(len(axis)))
            for leaves, axis in zip(design.leaf_positions(kept), design.axes, strict=True)
        )
        rules = tuple({v: sorted(map(str, c)) for v, c in rule.items()} for rule in zeros)
        return cls(
            release.design.axes,
            codes,
            np.asarray(release.y)[kept],
            release.unit,
            release.statement,
            edition,
            rules,
            made_from,
        )

    def margin(self, names: Sequence[str], slots: Sequence[Index | None] = ()) -> Array:
        """The sums by the codes of some variables, as an array of their crossing.

        Cost: some 5 ms for a million cells and two variables.

        Args:
          names: The variables.
          slots: For each of them the place of each of its finest codes in the array, where that
            is another one.
        """
        places = [self._place(name) for name in names]
        given = list(slots) or [None] * len(places)
        shape = [
            len(self.axes[k]) if to is None else int(to.max()) + 1
            for k, to in zip(places, given, strict=True)
        ]
        size = math.prod(shape)
        if size > LARGEST_DENSE:
            raise DesignError(f"a crossing of {size:,} cells is too large to be held.")
        sums = np.zeros(size)  # exact: counts stay below 2⁵³
        step = max(_CHUNK, 4 * size)
        for start in range(0, len(self.values), step):
            part = slice(start, start + step)
            flat = np.zeros(len(self.values[part]), dtype=np.int64)
            for k, to, length in zip(places, given, shape, strict=True):
                flat *= length
                flat += self.codes[k][part] if to is None else to[self.codes[k][part]]
            sums += np.bincount(flat, self.values[part], size)
        if np.issubdtype(self.values.dtype, np.integer):
            sums = np.rint(sums).astype(np.int64)
        return sums.reshape(shape)

    def axis(self, name: str) -> Axis:
        """The variable of this name."""
        return self.axes[self._place(name)]

    def _place(self, name: str) -> int:
        return next(k for k, axis in enumerate(self.axes) if axis.name == name)

    def write(self, folder: Path) -> None:
        """Write the table into a folder, one file for each column."""
        # Plain .npy files, since all processes of a site map the same pages of them: two million
        # cells open in 1 ms, where an .npz file is read whole, in 77 ms, by each process.
        for k, codes in enumerate(self.codes):
            np.save(folder / f"codes{k}.npy", np.ascontiguousarray(codes))
        np.save(folder / _VALUES, np.ascontiguousarray(self.values))
        for name, cubes in self.sums.items():
            for k, cube in enumerate(cubes):
                write_cube(cube, folder / _SUM.format(name, k))
        header = {
            "format": _FORMAT,
            "axes": [axis_to_json(axis) for axis in self.axes],
            "unit": self.unit,
            "statement": self.statement.to_json(),
            "edition": self.edition,
            "zeros": [dict(rule) for rule in self.zeros],
            "made_from": self.made_from,
            "made": datetime.now(UTC).date().isoformat(),
            "sums": {name: len(cubes) for name, cubes in self.sums.items()},
        }
        text = json.dumps(header, ensure_ascii=False)
        (folder / _HEADER).write_text(text, encoding="utf-8", newline="\n")
        sums = {path.name: _checksum(path) for path in sorted(folder.iterdir())}
        (folder / _CHECKSUMS).write_text(json.dumps(sums), encoding="ascii", newline="\n")

    @classmethod
    def read(cls, folder: Path) -> InnerTable:
        """A table from its folder, its columns mapped into memory, every byte as it was written."""
        damaged = damaged_files(folder)
        if damaged:
            raise DataError(
                f"{folder} was damaged after it was built: {', '.join(damaged)}. Nothing of it is "
                "served. Build it again: discreet build site.toml."
            )
        try:
            header = json.loads((folder / _HEADER).read_text(encoding="utf-8"))
            axes = tuple(map(axis_from_json, header["axes"]))
            columns = [np.load(folder / f"codes{k}.npy", mmap_mode="r") for k in range(len(axes))]
            values = np.load(folder / _VALUES, mmap_mode="r")
            sums = {
                name: tuple(read_cube(folder / _SUM.format(name, k)) for k in range(many))
                for name, many in header.get("sums", {}).items()
            }
        except (OSError, ValueError, KeyError) as error:
            raise DataError(
                f"{folder} holds no inner table that can be read ({type(error).__name__}). "
                "Build it again: discreet build site.toml."
            ) from None
        if header["format"] != _FORMAT:
            raise DataError(
                f"{folder} was written by another version of discreet; build it again: "
                "discreet build site.toml."
            )
        return cls(
            axes,
            tuple(columns),
            values,
            header["unit"],
            Statement.from_json(header["statement"]),
            header["edition"],
            tuple(header["zeros"]),
            header["made_from"],
            header.get("made", ""),  # builds of 0.2 do not tell
            sums,
        )


def damaged_files(folder: Path) -> list[str]:
    """Files of a build that are not as they were written; none where version 0.2 wrote it."""
    try:
        sums = json.loads((folder / _CHECKSUMS).read_text(encoding="ascii"))
        return [name for name, known in sums.items() if _checksum(folder / name) != known]
    except FileNotFoundError as error:
        return [] if Path(str(error.filename)).name == _CHECKSUMS else [Path(error.filename).name]
    except (OSError, ValueError, AttributeError):
        return [_CHECKSUMS]


def _checksum(path: Path) -> str:
    with path.open("rb") as file:  # 0.4 s for the 10⁷ cells of a large census
        return hashlib.file_digest(file, "blake2b").hexdigest()


class InnerSource:
    """Tables of one protected inner table.

    Args:
      table: The inner table.
      names: What is on offer, `region` or `region[province]`; every variable when empty.
      titles: Names of variables for readers.
    """

    mode: Mode = "release-once"
    budget: BudgetStatus | None = None
    is_current = True  # a build never changes; it is looked at when its site is read again

    def __init__(
        self,
        table: InnerTable,
        names: Sequence[str] = (),
        titles: Mapping[str, str] | None = None,
    ) -> None:
        self.table = table
        chosen = list(names) or [axis.name for axis in table.axes]
        axes = {name: _find_axis(table.axes, name) for name in chosen}
        self.variables = variables_on_offer(axes, chosen, titles)
        self.edition, self.made_on = table.edition, table.made_on
        self.statement, self.units = table.statement, (table.unit,)
        self._asked = by_detail(self.variables)

    def price(self, asked: Sequence[DetailedVariable]) -> Price:
        """What the crossing costs: protected cells are added up."""
        return price_of(asked, "protected", len(self.table.values))

    def has(self, details: tuple[str, ...], unit: str) -> bool:
        """Every crossing is at hand: nothing is counted for it."""
        return True

    def cube(self, details: tuple[str, ...], unit: str) -> Cube:
        """The crossing of these details, summed from the inner table."""
        asked = [self._asked[detail] for detail in details]
        # Summed from the cells every time. Sums of wider margins at hand gained 1 ms of a page of
        # 15 ms on the demo's census, and gave decimals other last digits by what was asked before.
        axes = [self.table.axis(one.name) for one in asked]
        design = complete_design(axes, crossing(details), self.table.zeros)
        step = Step("tabulate", {"margins": [":".join(details)]})
        statement = self.table.statement.then(step, changes_values=False)
        return Cube.of(Release(design, self._sums(design, asked), statement, unit))

    def _sums(self, design: StructuredDesign, asked: Sequence[DetailedVariable]) -> Array:
        """The published cells of a crossing.

        Four variables at coarse levels have a thousand of them, and thirty million combinations of
        their finest categories: an array of those took 1.5 s and 700 MB.
        """
        names = [one.name for one in asked]
        if math.prod(design.shape) <= _MOST_LEAVES:
            margin = self.table.margin(names).ravel()
            # What cannot occur is no cell of the design.
            return design.aggregate(
                margin[slice(None) if design.product_form else design.flat_cells()]
            )
        slots = [one.slots for one in asked]
        sums = self.table.margin(names, slots)
        some = np.nonzero(sums)
        firsts = [np.unique(to, return_index=True)[1] for to in slots]  # one category of each slot
        codes = [first[places] for first, places in zip(firsts, some, strict=True)]
        listed = SparseDesign.within(design, codes, occurring=False)
        everywhere = listed.crossing.to_public_cells(listed.aggregate(sums[some]))
        return design.crossing.from_public_cells(everywhere)


def _find_axis(axes: Sequence[Axis], name: str) -> Axis:
    """The axis that a name such as `region`, `region[province]` or `province` belongs to."""
    for axis in axes:
        levels = {level.name for level in axis.levels} | {axis.short_name(v) for v in axis.levels}
        if name in {axis.name, f"{axis.name}[leaves]"} | levels:
            return axis
    raise UnknownNameError("variable or level", name, [axis.name for axis in axes])


def write_build(table: InnerTable, folder: Path) -> Path:
    """Write an inner table and make it the one that is served; returns its place."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / f"build-{secrets.token_hex(6)}"
        partial = place.with_name(place.name + _PARTIAL)
        partial.mkdir()
    except OSError as error:
        raise DataError(f"cannot write to {folder}: {error.strerror}.") from error
    try:
        table.write(partial)
        for path in [*partial.iterdir(), partial]:  # on the disk before the pointer names them
            flush(path)
        _take_effect(partial, place)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return place


def read_build(folder: Path, made_from: str) -> InnerTable:
    """The inner table that is served from a folder.

    Args:
      folder: The data set's folder.
      made_from: What the table must have been made from.

    Raises:
      DataError: There is none, or it was made by another recipe or from another edition.
    """
    place = current_build(folder)
    if place is None or not place.is_dir():
        raise DataError(
            f"data set {folder.name!r} has not been built: there is no inner table in {folder}. "
            "Build it: discreet build site.toml."
        )
    table = InnerTable.read(place)
    # The secret's mark follows the dot; where the secret is not at hand it is not compared.
    (built, _, mark), (wanted, _, known) = table.made_from.partition("."), made_from.partition(".")
    if built != wanted or (known and mark != known):
        raise DataError(
            f"the inner table of data set {folder.name!r} (edition {table.edition}) was built with "
            "another recipe, edition or code list, or other keys, than the site's file names now. "
            "Build it again: discreet build site.toml."
        )
    return table


def is_built(folder: Path, made_from: str) -> bool:
    """Whether a folder holds the inner table that is wanted."""
    try:
        read_build(folder, made_from)
    except DataError:
        return False
    return True


def current_build(folder: Path) -> Path | None:
    """The build that is served from a folder, if there is one."""
    try:
        name = (folder / POINTER).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return folder / name if name and name == Path(name).name else None


def _take_effect(partial: Path, place: Path) -> None:
    """Make a build the one that is served, and remove those that nobody needs any more."""
    folder = place.parent
    with held_lock(folder / _LOCK):
        os.replace(partial, place)
        before = current_build(folder)
        with written_whole(folder / POINTER) as temporary:
            temporary.write_text(place.name, encoding="ascii", newline="\n")
        # Servers that have not reloaded yet may still open the build before this one.
        _remove_others(folder, {place.name, before.name if before else ""})


def _remove_others(folder: Path, kept: set[str]) -> None:
    """Remove all builds but some, and what builds that were killed have left."""
    for path in folder.glob("build-*"):
        if not path.name.endswith(_PARTIAL):
            is_needed = path.name in kept
        else:
            try:
                is_needed = time.time() - path.stat().st_mtime <= _ABANDONED
            except OSError:  # another process has removed it
                continue
        if not is_needed:
            shutil.rmtree(path, ignore_errors=True)
