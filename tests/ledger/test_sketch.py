import numpy as np
import pytest

from discreet.errors import ParameterError
from discreet.ledger import Sketch

BUCKETS = 4096


def hashed(words):
    """A mixing function of 64 bits, as a stand-in for a hash."""
    mixed = np.asarray(words, dtype=np.uint64)
    for shift, factor in ((33, 0xFF51AFD7ED558CCD), (33, 0xC4CEB9FE1A85EC53), (33, 1)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed


def vector(words):
    found = hashed(words)
    signs = 1 - 2 * (found >> np.uint64(63)).astype(np.int64)
    sums = np.zeros(BUCKETS, dtype=np.int64)
    np.add.at(sums, (found % np.uint64(BUCKETS)).astype(np.int64), signs)
    return sums


def sketch(ids, versions):
    ids = np.asarray(ids, dtype=np.uint64)
    return Sketch(vector(ids), vector(ids * np.uint64(1000) + np.asarray(versions, np.uint64)))


@pytest.mark.parametrize(
    ("added", "removed", "changed", "short"),
    [
        (1, 0, 0, 0.0),
        (0, 1, 0, 0.0),
        (0, 0, 1, 0.0),
        (10, 5, 7, 0.2),
        (50, 50, 0, 0.1),
        (100, 200, 200, 0.2),
        (0, 0, 5_000, 0.6),
    ],
)
def test_the_number_of_changed_records_is_near_and_never_overstated(added, removed, changed, short):
    n, true = 50_000, added + removed + changed
    for first in (0, 10**6, 10**9):
        ids, versions = first + np.arange(n), np.zeros(n, dtype=int)
        later = versions.copy()
        later[:changed] = 1
        new_ids = np.concatenate([ids[: n - removed], first + n + np.arange(added)])
        new_versions = np.concatenate([later[: n - removed], np.zeros(added, dtype=int)])
        before, after = sketch(ids, versions), sketch(new_ids, new_versions)
        assert true * (1 - short) <= after.changed_since(before) <= true
        assert before.changed_since(after) == after.changed_since(before)


def test_records_that_are_the_same_and_have_no_id_count_one_by_one():
    none = np.zeros(BUCKETS, dtype=np.int64)
    few, more = (Sketch(none, vector(np.full(n, 7))) for n in (100, 110))
    assert more.changed_since(few) == 5  # half of them: each could be a version of another


def test_the_order_of_records_is_no_change():
    ids = np.arange(1000)
    one, other = sketch(ids, ids % 7), sketch(ids[::-1], ids[::-1] % 7)
    assert one == other
    assert hash(one) == hash(other)
    assert one.changed_since(other) == 0


def test_a_sketch_comes_back_from_its_bytes():
    one = sketch(np.arange(1000), np.arange(1000) % 3)
    again = Sketch.from_bytes(one.to_bytes())
    assert again == one
    assert again != sketch(np.arange(999), np.arange(999) % 3)
    np.testing.assert_array_equal(again.rows, one.rows)
    assert len(one.to_bytes()) < 2 * 8 * BUCKETS / 2


def test_sums_of_many_records_do_not_overflow():
    big, none = np.full(BUCKETS, 2**40), np.zeros(BUCKETS, dtype=np.int64)
    assert Sketch(big, big).changed_since(Sketch(none, none)) == BUCKETS * 2**40


def test_vectors_that_are_no_sketch_are_refused():
    with pytest.raises(ParameterError, match="whole numbers"):
        Sketch(np.zeros(4), np.zeros(4))
    with pytest.raises(ParameterError, match="same number of buckets, got 4 and 5"):
        Sketch(np.zeros(4, dtype=int), np.zeros(5, dtype=int))
    zero = np.zeros(5, dtype=int)
    short, long = Sketch(zero[:4], zero[:4]), Sketch(zero, zero)
    with pytest.raises(ParameterError, match="4 and 5 buckets"):
        short.changed_since(long)
