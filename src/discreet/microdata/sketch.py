"""A sketch of records, made by the engine that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.ledger.sketch import Sketch
from discreet.microdata.backend import border, fetch

if TYPE_CHECKING:
    from discreet.microdata.records import UnitRecords

BUCKETS = 16**3
_BUCKET_DIGITS = 3
_SEPARATOR, _MISSING = "\x1f", "\x1e"


def sketch_of(data: UnitRecords) -> Sketch:
    """A sketch of the records as they were opened: what a ledger tells editions apart by.

    A record is hashed with all its columns but the record key, and once more by its id alone;
    without an id the second part is empty, and changes are undercounted. Three hexadecimal digits
    of the hash are the bucket and the fourth is the sign. Recodes and the order of records and
    columns make no difference.
    Cost: one query that returns at most 8,192 sums.
    """
    columns = sorted(name for name in data.opened.columns if name != data.key)
    parts = [columns] if data.id is None else [columns, [data.id]]
    queries = [_sums(data, part, i) for i, part in enumerate(parts)]
    found = fetch(data.backend, reduce(lambda a, b: a.union(b), queries), data.origin)
    vectors = np.zeros((2, BUCKETS), dtype=np.int64)
    for row in found.to_pylist():
        vectors[row["part"], int(row["bucket"], 16)] = row["total"]
    return Sketch(ids=vectors[1], rows=vectors[0])


def _sums(data: UnitRecords, columns: Sequence[str], part: int) -> Any:
    """The signed number of records in each bucket, by a hash of some columns."""
    import ibis

    table = data.opened
    digest = border(data.backend).digest(_as_text([table[name] for name in columns]))
    hashed = table.select(digest=digest)
    sign = ibis.ifelse(hashed.digest.substr(_BUCKET_DIGITS, 1).isin(list("01234567")), 1, -1)
    bucket = hashed.digest.substr(0, _BUCKET_DIGITS)
    sums = hashed.group_by(bucket=bucket).aggregate(total=sign.sum().cast("int64"))
    return sums.select(part=ibis.literal(part, "int64"), bucket=sums.bucket, total=sums.total)


def _as_text(columns: Sequence[Any]) -> Any:
    """All values of a record in one text."""
    import ibis

    texts = [column.cast("string").fill_null(_MISSING) for column in columns]
    return ibis.literal(_SEPARATOR).join(texts)
