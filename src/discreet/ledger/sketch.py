r"""A summary of records that tells how many of them changed, and nothing about any of them.

A count sketch: a hash gives each record a bucket and a sign, and each bucket holds the sum of its
signs. Records that two data sets share cancel in the difference :math:`\Delta` of their sketches,
and every other record moves one bucket by one. So :math:`\lVert\Delta\rVert_1` is never above the
number of records they do not share, and it is near that number while most buckets are untouched.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Whole
from discreet.errors import ParameterError


@dataclass(frozen=True, eq=False)
class Sketch:
    r"""Sketches of the ids of some records, and of their ids with all their values.

    Promise: `changed_since` is never above the true number of changed records. With 4,096 buckets
    it falls short by about 2 % at 100 changed records, 11 % at 500 and a half at 5,000.

    Attributes:
      ids: Signed sums over hashes of the ids; zeros where records have none.
      rows: Signed sums over hashes of the whole records.
    """

    ids: Whole
    rows: Whole

    def __post_init__(self) -> None:
        for name in ("ids", "rows"):
            vector = np.asarray(getattr(self, name))
            if vector.ndim != 1 or vector.dtype.kind != "i":
                raise ParameterError(
                    f"{name} of a sketch must be a vector of whole numbers, got shape "
                    f"{vector.shape} of {vector.dtype}."
                )
            object.__setattr__(self, name, vector.astype(np.int64))
        if len(self.ids) != len(self.rows):
            raise ParameterError(
                f"ids and rows of a sketch must have the same number of buckets, got "
                f"{len(self.ids)} and {len(self.rows)}."
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sketch) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    def changed_since(self, other: Sketch) -> float:
        """How many records, at least, were added, removed or changed between two sketches.

        A changed record has its id in both but other values: it counts twice in the rows, as a
        version that went and a version that came, and not in the ids.
        """
        if len(self.ids) != len(other.ids):
            raise ParameterError(
                f"sketches of {len(self.ids)} and {len(other.ids)} buckets cannot be compared."
            )
        ids = int(np.abs(self.ids - other.ids).sum())
        rows = int(np.abs(self.rows - other.rows).sum())
        return ids + max(0, rows - ids) / 2

    def to_bytes(self) -> bytes:
        """The sketch as bytes, to be stored."""
        return zlib.compress(np.concatenate([self.ids, self.rows]).astype("<i8").tobytes())

    @classmethod
    def from_bytes(cls, stored: bytes) -> Sketch:
        """The sketch that was stored as bytes."""
        both = np.frombuffer(zlib.decompress(stored), dtype="<i8").astype(np.int64)
        return cls(both[: len(both) // 2], both[len(both) // 2 :])
