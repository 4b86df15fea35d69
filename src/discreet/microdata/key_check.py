"""Given record keys, counted by the engine that holds them and judged once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Whole
from discreet.microdata.backend import fetch
from discreet.microdata.expressions import whole_keys
from discreet.tables.uniform_keys import SAMPLED, KeyCounts, buckets_of, require_uniform

if TYPE_CHECKING:
    from discreet.microdata.records import UnitRecords


class KeyCheck:
    """Looks at given keys once; copies of the records with the same keys share the check."""

    def __init__(self) -> None:
        self._is_done = False

    def __call__(self, data: UnitRecords) -> None:
        """Refuse the keys of the records when they are predictable."""
        if not self._is_done:
            require_uniform(counted_keys(data), "record keys")
            self._is_done = True


def counted_keys(data: UnitRecords) -> KeyCounts:
    """The counts of the records' keys, in one query that returns at most 64 × 64 of them."""
    import ibis

    table, key = data.keyed()
    rule, buckets = data.convention, buckets_of(data.convention)
    whole, in_range = whole_keys(table[key], rule.modulus)
    keys = table.filter(in_range).select(k=whole.cast("int64"))
    high, low = (keys.k * buckets // rule.modulus).cast("int64"), (keys.k % buckets).cast("int64")
    sampled = ibis.ifelse(low < SAMPLED, keys.k, ibis.null("int64"))
    once = keys.group_by(high=high, low=low, k=sampled).aggregate(times=keys.count())
    found = once.group_by("high", "low").aggregate(
        n=once.times.sum().cast("int64"), distinct=once.k.count().cast("int64")
    )
    columns = (np.asarray(c) for c in fetch(data.backend, found, data.origin).columns)
    at_high, at_low, n, distinct = columns
    return KeyCounts(
        _summed(at_high, n, buckets), _summed(at_low, n, buckets), int(distinct.sum()), rule
    )


def _summed(place: Whole, n: Whole, buckets: int) -> Whole:
    sums = np.zeros(buckets, dtype=np.int64)
    np.add.at(sums, place, n)
    return sums
