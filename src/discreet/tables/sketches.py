"""Sketches of tables: how many records changed between two editions, without the records.

A *table* is a largest margin with the margins inside it. It has two sketches. One is of its cells,
keyed by the custodian's ledger, so that neither another secret nor other ids change it. One is of
its records, made in the engine from their keys. The smaller number of changes counts.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.arrays import Unsigned64, Whole
from discreet.design.axis import Axis, Level
from discreet.design.base import Design
from discreet.design.codes import MISSING, canonical_array
from discreet.digests import digest
from discreet.errors import ParameterError
from discreet.frames import Frame

BUCKETS = 16**3  # three hexadecimal digits of a hash, which every engine can cut out of a text
_NUMBER = re.compile(r"\d+")
_WHOLE = re.compile(r"-?\d+")
_WORD_BYTES = 8

Labels = tuple[str, ...]
"""What a table is known by: its variables in order, `region[province]` where not the leaves."""


@dataclass(frozen=True, eq=False)
class Sketch:
    r"""Signed sums over hashes of records or cells, :math:`s_b = \sum_{h(i) = b} \pm n_i`.

    Promise: `changed_since` is never above the number of records that came, went or changed, where
    one that went and one that came count as one. With 4,096 buckets it falls short by about 2 % at
    100 changes of different cells, 11 % at 500 and a half at 5,000.
    Source: Charikar, Chen and Farach-Colton, "Finding frequent items in data streams", 2004.

    Attributes:
      vector: The sums.
      total: The number of records.
    """

    vector: Whole
    total: int

    def __post_init__(self) -> None:
        vector = np.asarray(self.vector)
        if vector.shape != (BUCKETS,) or vector.dtype.kind != "i":
            raise ParameterError(
                f"a sketch must be a vector of {BUCKETS:,} whole numbers, got shape "
                f"{vector.shape} of {vector.dtype}."
            )
        object.__setattr__(self, "vector", vector.astype(np.int64))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sketch) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    def changed_since(self, other: Sketch) -> int:
        """How many records, at least, came, went or changed between two sketches."""
        moved = int(np.abs(self.vector - other.vector).sum())
        return (moved + abs(self.total - other.total)) // 2

    def likeness(self, other: Sketch) -> float:
        """The cosine of two sketches: about 1 for the same cells, 0 ± 0.016 for unrelated ones."""
        ours, theirs = self.vector.astype(np.float64), other.vector.astype(np.float64)
        size = float(np.linalg.norm(ours) * np.linalg.norm(theirs))
        return float(ours @ theirs) / size if size else float(self.total == other.total)

    def to_bytes(self) -> bytes:
        """The sketch as bytes, to be stored."""
        return zlib.compress(np.append(self.vector, self.total).astype("<i8").tobytes())

    @classmethod
    def from_bytes(cls, stored: bytes) -> Sketch:
        """The sketch that was stored as bytes."""
        both = np.frombuffer(zlib.decompress(stored), dtype="<i8").astype(np.int64)
        return cls(both[:-1], int(both[-1]))


@dataclass(frozen=True)
class Passage:
    """What passes by itself from one edition to the next.

    Attributes:
      time: Variables that say which time a record is of; sketches leave them out.
      moves: By variable how far it moves from one edition to the next, such as 1 for age in
        years; sketches move it back. The number in an edition's name says how often it moved.
    """

    time: Sequence[str] = ()
    moves: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        time = (self.time,) if isinstance(self.time, str) else tuple(self.time)
        object.__setattr__(self, "time", time)
        for name, step in self.moves.items():
            if isinstance(step, bool) or not isinstance(step, int):
                raise ParameterError(
                    f"moves says by how many whole steps a variable moves in an edition, "
                    f"{{'age': 1}}; got {step!r} for {name!r}."
                )

    def join(self, other: Passage) -> Passage:
        """What both declare."""
        time = tuple(dict.fromkeys((*self.time, *other.time)))
        return Passage(time, {**self.moves, **other.moves})

    def shift(self, variable: str, edition: str) -> int | None:
        """How far a variable has moved in an edition; `None` for one that stays where it is."""
        if variable not in self.moves:
            return None
        found = _NUMBER.search(edition)
        if found is None:
            raise ParameterError(
                f"{variable!r} moves from edition to edition, so the name of an edition must have "
                f"a number in it, such as the year; got {edition!r}."
            )
        return self.moves[variable] * int(found[0])

    def to_json(self) -> dict[str, Any]:
        """The declaration as plain data."""
        return {"time": list(self.time), "moves": dict(self.moves)}


@dataclass(frozen=True, eq=False)
class RecordSketches:
    """Sketches of records by their keys, without the keys.

    Promise: without the record keys they tell nothing of anybody, since a hash of a key that is
    not known puts its record in any bucket, with any sign.
    """

    mark: str  # which keys these are: the mark of the secret behind them, and their convention
    # A sketch of key and codes for the variables of each table; `()` is of the keys alone.
    by_variables: Mapping[Labels, Sketch]

    @property
    def secret_mark(self) -> str | None:
        """The mark of the secret alone, where there is one."""
        return self.mark.split("/", 1)[0] or None

    def to_json(self) -> dict[str, Any]:
        """The sketches as plain data."""
        stored = [
            [list(names), base64.b64encode(sketch.to_bytes()).decode()]
            for names, sketch in self.by_variables.items()
        ]
        return {"mark": self.mark, "sketches": stored}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RecordSketches:
        """The inverse of `to_json`."""
        found = {
            tuple(names): Sketch.from_bytes(base64.b64decode(text))
            for names, text in stored["sketches"]
        }
        return cls(stored["mark"], found)


@dataclass(frozen=True, eq=False)
class SketchedTable:
    """One table of a design, ready to be sketched under a ledger's key."""

    labels: Labels  # what it is known by
    variables: Labels  # its variables, which say what record sketch belongs to it
    # Digest of all that must be the same for two editions to be compared: the labels, code lists
    # that were declared, and what moves.
    design: str
    # For each label that is sketched its codes, moved back where they move, and the code of every
    # cell that is not empty. Groups of a variable that moves are left out.
    parts: tuple[tuple[str, tuple[str, ...], Whole], ...]
    counts: Whole  # the counts of these cells

    @property
    def name(self) -> str:
        """The table in a formula's words."""
        return table_name(self.labels)

    def sketch(self, key: bytes) -> Sketch:
        """The sketch of the cells: every code has a keyed word, and a cell has those of its codes.

        Cost: one keyed hash for each code, one pass over the cells for each variable.
        """
        words = np.full(len(self.counts), _words(key, "", ("cell",))[0])
        for label, codes, place in self.parts:
            words = words ^ _words(key, label, codes)[place]
        bucket = (words % np.uint64(BUCKETS)).astype(np.int64)
        sign = 1 - 2 * (words >> np.uint64(63)).astype(np.int64)
        vector = np.zeros(BUCKETS, dtype=np.int64)
        np.add.at(vector, bucket, sign * self.counts)
        return Sketch(vector, int(self.counts.sum()))


def table_name(labels: Iterable[str]) -> str:
    """A table in a formula's words; the total alone is `1`."""
    return "*".join(labels) or "1"


def tables_of(
    design: Design, counts: Whole, passage: Passage, edition: str
) -> tuple[SketchedTable, ...]:
    """The tables of a design: its blocks that no other refines, each with its counts.

    A block whose variables, time left out, lie in another's is part of that table. A table with a
    variable that moves comes twice, moved back and as it stands: one that was said to move and did
    not is then found out.
    """
    structured = design.over_variables
    if structured is None:  # cells of a matrix are known by their places
        some = _disjoint(design)
        some = some[counts[some] > 0]
        axis = Axis.flat("cell", [str(i) for i in range(len(counts))])
        return (_table([axis], [axis.finest], [some], counts[some], passage, edition),)
    found: dict[Labels, list[SketchedTable]] = {}
    for k in (k for k, source in structured.plan if source is None):
        values = counts[structured.slice_of(k)]
        some = np.flatnonzero(values)
        block = structured.blocks[k]
        places = structured.block_cells(k)[some]
        groups = np.unravel_index(places, block.shape) if structured.axes else ()
        cells = structured.axes, block.levels, groups, values[some], passage, edition
        made = [_table(*cells)]
        if not passage.moves.keys().isdisjoint(made[0].variables):
            made.append(_table(*cells, is_still=True))
        found.setdefault(made[0].labels, made)
    largest = [s for s in found if not any(set(s) < set(other) for other in found)]
    return tuple(table for labels in largest for table in found[labels])


def _disjoint(design: Design) -> Whole:
    """Published cells of a matrix that share no inner cell, small ones first."""
    columns = design.matrix().tocsc()
    taken = np.zeros(design.n_inner, dtype=bool)
    chosen = []
    for cell in np.argsort(np.diff(columns.indptr), kind="stable"):
        members = columns.indices[columns.indptr[cell] : columns.indptr[cell + 1]]
        if not taken[members].any():
            taken[members] = True
            chosen.append(cell)
    return np.sort(np.array(chosen, dtype=np.int64))


def table_of_columns(content: Frame, names: Sequence[str]) -> SketchedTable:
    """Records as a table of their own: every combination of codes in some columns is a cell.

    Columns of numbers with decimals are left out, since they change from edition to edition.
    """
    kept = [n for n in sorted(names) if not _has_decimals(content.column(n).kind)]
    coded = [(name, *canonical_array(content.column(name))) for name in kept]
    parts = tuple((name, tuple(codes), index.astype(np.int64)) for name, codes, index in coded)
    design = digest([(name, None) for name in kept]).hex()
    counts = np.ones(len(content), dtype=np.int64)
    return SketchedTable(tuple(kept), tuple(kept), design, parts, counts)


def _has_decimals(kind: str) -> bool:
    return kind.startswith(("float", "decimal"))


def _table(
    axes: Sequence[Axis],
    levels: Sequence[Level | None],
    groups: Sequence[Any],
    counts: Whole,
    passage: Passage,
    edition: str,
    is_still: bool = False,
) -> SketchedTable:
    named, parts = [], []
    said: list[tuple[str, object]] = []
    for axis, level, group in zip(axes, levels, groups, strict=True):
        if level is None or axis.name in passage.time:
            continue
        shift, codes = passage.shift(axis.name, edition), level.codes
        label = axis.name if set(codes) >= set(axis.leaves) else f"{axis.name}[{level.name}]"
        named.append((label, axis.name))
        if shift is None:
            said.append((label, sorted(codes) if axis.declared else None))
        else:
            said.append((label, (passage.moves[axis.name], is_still)))
            shift = 0 if is_still else shift
            if not is_still and not all(
                code == MISSING or _WHOLE.fullmatch(code) for code in codes
            ):
                continue
            if shift:
                codes = tuple(c if c == MISSING else str(int(c) - shift) for c in codes)
        parts.append((label, codes, np.asarray(group, dtype=np.int64)))
    labels, variables = (tuple(sorted(pair[i] for pair in named)) for i in (0, 1))
    design = digest(sorted(said, key=lambda part: part[0])).hex()
    return SketchedTable(labels, variables, design, tuple(parts), counts)


def _words(key: bytes, label: str, codes: Sequence[str]) -> Unsigned64:
    """A keyed word of 64 bits for each code of a variable."""
    state = hashlib.blake2b(key=key, digest_size=_WORD_BYTES)
    name = label.encode("utf-8", "surrogatepass")
    state.update(len(name).to_bytes(8, "big") + name)
    digests = []
    for code in codes:
        one = state.copy()
        one.update(code.encode("utf-8", "surrogatepass"))
        digests.append(one.digest())
    return np.frombuffer(b"".join(digests), dtype=">u8").astype(np.uint64)
