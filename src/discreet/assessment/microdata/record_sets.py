"""Sets of records side by side: the same columns, coded alike."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from discreet.arrays import Array, Mask, Real, Whole
from discreet.assessment.measure import BaseMeasure, NotApplicableError, Score
from discreet.columns import Column, join_columns
from discreet.errors import ColumnError, DataError, check_known
from discreet.frames import Frame, read_frame
from discreet.synthesis.model import holds_numbers
from discreet.synthesis.result import Synthesized, read_records

ORIGINAL, SYNTHETIC, CONTROL = 0, 1, 2
"""Places of the sets."""
SAME = 1e-6
"""Numbers are equal up to this share of their spread."""


@dataclass(frozen=True, eq=False)
class RecordSets:
    """Original, synthetic and perhaps control records, one below the other."""

    numbers: dict[str, Array]  # columns of numbers; a missing value is NaN
    # Columns of codes, numbered from 0; a missing value is a code of its own.
    codes: dict[str, Whole]
    labels: dict[str, list[str | None]]  # what the codes mean, by column
    sizes: tuple[int, ...]  # number of records in each set

    @property
    def names(self) -> list[str]:
        """All columns."""
        return [*self.numbers, *self.codes]

    @property
    def on(self) -> str:
        """The columns in words."""
        return ", ".join(self.names)

    def only(self, name: str) -> RecordSets:
        """The same records with one column."""
        numbers = {n: column for n, column in self.numbers.items() if n == name}
        codes = {n: column for n, column in self.codes.items() if n == name}
        return RecordSets(numbers, codes, self.labels, self.sizes)

    def rows(self, place: int) -> slice:
        """The rows of one set."""
        start = sum(self.sizes[:place])
        return slice(start, start + self.sizes[place])

    def is_in(self, place: int) -> Mask:
        """Which of all rows belong to a set."""
        inside = np.zeros(sum(self.sizes), dtype=bool)
        inside[self.rows(place)] = True
        return inside

    def classes(self, name: str, number: int) -> Whole:
        """A column as codes; numbers are cut at quantiles of the original."""
        if name in self.codes:
            return self.codes[name]
        values = self.numbers[name]
        known = values[self.rows(ORIGINAL)]
        known = known[~np.isnan(known)]
        shares = np.arange(1, number) / number
        cuts = np.unique(np.quantile(known, shares)) if len(known) else np.zeros(0)
        cut = np.searchsorted(cuts, values, side="left").astype(np.int64)
        return np.where(np.isnan(values), len(cuts) + 1, cut)

    def exact(self, name: str) -> Whole:
        """A column as codes that are the same where values are, up to rounding."""
        if name in self.codes:
            return self.codes[name]
        steps = np.round(self.numbers[name] / (SAME * self.spread(name)))
        return np.unique(steps, return_inverse=True)[1].astype(np.int64)

    def spread(self, name: str) -> float:
        """Standard deviation of a column of original numbers; 1 where they do not vary."""
        values = self.numbers[name][self.rows(ORIGINAL)]
        return float(np.std(values[~np.isnan(values)])) or 1.0 if len(values) else 1.0


@dataclass(frozen=True)
class RecordMeasure(BaseMeasure):
    """A measure of synthetic records against the original ones.

    Args:
      columns: The columns to look at; by default all that both have.
      codes: Columns of numbers that are codes.
    """

    columns: tuple[str, ...] | None = None
    codes: tuple[str, ...] = ()

    @abstractmethod
    def __call__(self, original: Any, synthetic: Any) -> Score:
        """Compare synthetic records with the original ones, or say why they cannot be.

        Args:
          original: `Microdata`, or a pandas, polars or Arrow frame.
          synthetic: What `discreet.synthesis` made, or a frame.
        """

    def sets(self, *frames: Any) -> RecordSets:
        """The records that are compared."""
        return record_sets(frames, self.columns, self.codes)


def record_sets(
    frames: Sequence[Any], columns: Sequence[str] | None, codes: Sequence[str] = ()
) -> RecordSets:
    """Records of several frames with the columns that all of them have.

    Args:
      frames: The frames, the original first.
      columns: The columns to read; by default all that every frame has.
      codes: Columns of numbers that are codes.
    """
    tables = [_table(frame) for frame in frames]
    if any(not len(table) for table in tables):
        raise DataError("there are no records in one of the sets that are compared.")
    names = _common(tables, columns)
    numbers: dict[str, Array] = {}
    coded: dict[str, Whole] = {}
    labels: dict[str, list[str | None]] = {}
    for name in names:
        parts = [table.column(name) for table in tables]
        floats = None if name in codes else _numbers(parts)
        if floats is None:
            coded[name], labels[name] = _code_texts(parts)
        else:
            numbers[name] = floats
    return RecordSets(numbers, coded, labels, tuple(len(table) for table in tables))


def row_classes(columns: Sequence[Whole]) -> Whole:
    """One code for each combination of codes, numbered from 0."""
    found = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        found = np.unique(found * (int(column.max()) + 1) + column, return_inverse=True)[1]
    return np.asarray(found, dtype=np.int64)


def _table(frame: Any) -> Frame:
    """Records of any source, without the columns that are never published."""
    if isinstance(frame, Synthesized):
        return read_frame(frame.frame)
    records = read_records(frame, secret=None, name=None, edition=None, ledger=None)
    return records.table.select([c for c in records.columns if c not in records.withheld])


def _common(tables: Sequence[Frame], columns: Sequence[str] | None) -> list[str]:
    shared = [c for c in tables[0].column_names if all(c in t.column_names for t in tables)]
    check_known("column of all records", columns or (), shared)
    names = shared if columns is None else list(columns)
    if not names:
        raise NotApplicableError("the records have no column in common.")
    return names


def _numbers(parts: Sequence[Column]) -> Array | None:
    """Numbers, where all parts hold numbers, or one does and the texts of the others are some."""
    if not any(holds_numbers(part) for part in parts):
        return None
    try:
        return np.concatenate([part.cast("float64").to_numpy() for part in parts])
    except ColumnError:
        return None


def _code_texts(parts: Sequence[Column]) -> tuple[Whole, list[str | None]]:
    found, distinct = join_columns([part.cast("string") for part in parts]).encoded()
    codes, texts = found.astype(np.int64), distinct.to_pylist()
    gaps = codes < 0
    if gaps.any():  # like any other text, a missing one stands where it first appears
        place = int(codes[: gaps.argmax()].max(initial=-1)) + 1
        codes[codes >= place] += 1
        codes[gaps] = place
        texts.insert(place, None)
    return codes, texts


def main_effects(sets: RecordSets, most: int, *, all_levels: bool = False) -> dict[str, Real]:
    """The columns of each variable: a number centred and scaled, or indicators of its codes.

    Missing numbers are the mean, and have an indicator of their own.

    Args:
      sets: The records.
      most: The largest number of columns altogether.
      all_levels: Whether the first code has an indicator as well.
    """
    width = len(sets.numbers) + sum(len(sets.labels[name]) for name in sets.codes)
    if width > most:
        raise NotApplicableError(
            f"the records have {width:,} numbers and codes, and at most {most:,} are taken; name "
            "fewer columns: columns=."
        )
    found = {name: _number(sets, name) for name in sets.numbers}
    for name, codes in sets.codes.items():
        found[name] = np.eye(len(sets.labels[name]))[:, 0 if all_levels else 1 :][codes]
    return found


def with_products(blocks: dict[str, Real], most: int) -> Real:
    """All columns, their squares, and the products of columns of different variables."""
    width = sum(block.shape[1] for block in blocks.values())
    if width * (width + 1) // 2 + width > most:
        raise NotApplicableError(
            f"{width} columns have too many products for these records; use order=1, or name "
            "fewer columns: columns=."
        )
    parts = list(blocks.values())
    parts += [block**2 for block in blocks.values() if block.shape[1] == 1]
    for a, b in combinations(list(blocks.values()), 2):
        parts.append((a[:, :, None] * b[:, None, :]).reshape(len(a), -1))
    return np.hstack(parts)


def _number(sets: RecordSets, name: str) -> Real:
    values = sets.numbers[name]
    is_missing = np.isnan(values)
    first = values[sets.rows(ORIGINAL)]
    first = first[~np.isnan(first)]
    centre = float(first.mean()) if len(first) else 0.0
    scaled = np.where(is_missing, 0.0, values - centre) / sets.spread(name)
    return np.column_stack([scaled, is_missing]) if is_missing.any() else scaled[:, None]
