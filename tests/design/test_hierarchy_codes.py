"""One text for every value, factorised arrays and the order people read."""

import datetime as dt
import enum
import random
from decimal import Decimal
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.design import MISSING
from discreet.design.codes import (
    canonical,
    canonical_array,
    factorise,
    natural_order,
    nearest_codes,
)
from discreet.errors import CodeError


class Colour(enum.Enum):
    RED = "red"
    ONE = 1


class Text(str, enum.Enum):  # noqa: UP042 - its str() is not its value
    A = "a"


class Number(enum.IntEnum):
    SEVEN = 7


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Ærø", "Ærø"),
        ("", ""),
        (np.str_("x"), "x"),
        (7, "7"),
        (-3, "-3"),
        (np.int8(-3), "-3"),
        (np.uint64(2**64 - 1), "18446744073709551615"),
        (2**70, "1180591620717411303424"),
        (True, "true"),
        (np.bool_(False), "false"),
        (1.0, "1"),
        (-0.0, "0"),
        (1e16, "10000000000000000"),
        (0.1, "0.1"),
        (-2.5, "-2.5"),
        (1e-7, "1e-07"),
        (float("inf"), "inf"),
        (np.float64(3.0), "3"),
        (np.float32(0.5), "0.5"),
        (Decimal("1.500"), "1.5"),
        (Decimal("100"), "100"),
        (Decimal("1E+3"), "1000"),
        (Decimal("-0.00"), "0"),
        (Decimal("0.10000000000000000000000000000000000001"), "0." + "1".ljust(37, "0") + "1"),
        (b"abc", "abc"),
        ("é".encode(), "é"),
        (b"\xff\x00", "ff00"),
        (bytearray(b"k"), "k"),
        (dt.date(2020, 2, 29), "2020-02-29"),
        (dt.datetime(2020, 1, 1, 5), "2020-01-01T05:00:00"),
        (dt.time(5, 30), "05:30:00"),
        (np.datetime64("2020-02-29"), "2020-02-29"),
        (np.datetime64("2020-01-01T05:00:00", "ns"), "2020-01-01T05:00:00"),
        (np.datetime64("2020-01-01T05:00:00.000000001"), "2020-01-01T05:00:00.000000001"),
        (pd.Timestamp("2020-01-01 05:00"), "2020-01-01T05:00:00"),
        (Colour.RED, "red"),
        (Colour.ONE, "1"),
        (Text.A, "a"),
        (Number.SEVEN, "7"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (None, MISSING),
        (float("nan"), MISSING),
        (np.float32("nan"), MISSING),
        (Decimal("NaN"), MISSING),
        (pd.NA, MISSING),
        (pd.NaT, MISSING),
        (np.datetime64("NaT"), MISSING),
    ],
    ids=repr,
)
def test_every_value_has_one_text(value, text):
    result = canonical(value)
    assert result == text
    assert type(result) is str


@pytest.mark.parametrize("value", [[1], (1, 2), {"a": 1}, {1}, np.array([1, 2])], ids=repr)
def test_containers_are_no_codes(value):
    with pytest.raises(CodeError, match="cannot be a code"):
        canonical(value)


MIXED = [1, "1", 1.0, None, "a", True, float("nan"), dt.date(2020, 1, 1)]
ARRAYS = {
    "list": [3, 1, None, 3],
    "numpy floats": np.array([3.0, 1.0, np.nan, 3.0]),
    "numpy objects": np.array([3, 1, None, 3], dtype=object),
    "arrow": pa.array([3, 1, None, 3]),
    "arrow chunks": pa.chunked_array([pa.array([3, 1]), pa.array([None, 3], pa.int64())]),
    "arrow dictionary": pa.array(["3", "1", None, "3"]).dictionary_encode(),
    "pandas nullable": pd.Series([3, 1, None, 3], dtype="Int64"),
    "pandas objects": pd.Series([3, 1, None, 3], dtype=object),
    "pandas text": pd.Series(["3", "1", None, "3"]),
    "pandas categories": pd.Series(
        pd.Categorical(["3", "1", None, "3"], categories=["3", "1", "unused"])
    ),
    "polars": pl.Series([3, 1, None, 3]),
    "polars text": pl.Series(["3", "1", None, "3"]),
    "polars categories": pl.Series(["3", "1", None, "3"], dtype=pl.Categorical),
    "decimals": pa.array([Decimal("3.0"), Decimal("1.0"), None, Decimal("3.0")]),
    "tuple": (3, 1, None, 3),
}


@pytest.mark.parametrize("values", ARRAYS.values(), ids=ARRAYS)
def test_every_kind_of_array_gives_the_same_codes(values):
    codes, positions = canonical_array(values)
    assert codes == ["3", "1", MISSING]
    assert positions.tolist() == [0, 1, 2, 0]
    assert positions.dtype == np.int32
    without, minus = factorise(values)
    assert without == ["3", "1"]
    assert minus.tolist() == [0, 1, -1, 0]


def test_values_of_one_text_are_one_code():
    codes, positions = canonical_array(MIXED)
    assert codes == ["1", "a", "true", "2020-01-01", MISSING]
    assert positions.tolist() == [0, 0, 0, 4, 1, 2, 4, 3]
    merged, _ = canonical_array(pa.array([b"a", b"a\x00", b"a"]))
    assert merged == ["a", "a\x00"]


def test_mixed_types_that_arrow_would_change_keep_their_text():
    assert canonical_array([dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 3)])[0] == [
        "2020-01-01",
        "2020-01-01T03:00:00",
    ]
    assert canonical_array([1.0, True])[0] == ["1", "true"]


def test_chunks_with_different_dictionaries_are_unified():
    chunks = [pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", "b"]).dictionary_encode()]
    codes, positions = canonical_array(pa.chunked_array(chunks))
    assert [codes[i] for i in positions] == ["a", "b", "c", "b"]
    assert len(codes) == 3


def test_times_finer_than_microseconds_keep_their_digits():
    nano = np.array(["2020-01-01T00:00:00.000000001", "NaT"], dtype="datetime64[ns]")
    assert canonical_array(pa.array(nano))[0] == ["2020-01-01T00:00:00.000000001", MISSING]
    whole = pa.array(nano.astype("datetime64[s]")).cast(pa.timestamp("ns"))
    assert canonical_array(whole)[0] == ["2020-01-01T00:00:00", MISSING]


@pytest.mark.parametrize("empty", [[], np.array([]), pa.array([], pa.string()), pd.Series([])])
def test_empty_arrays_have_no_codes(empty):
    codes, positions = canonical_array(empty)
    assert codes == []
    assert positions.tolist() == []


def test_only_nulls_are_one_missing_code():
    codes, positions = canonical_array(pa.nulls(3))
    assert codes == [MISSING]
    assert positions.tolist() == [0, 0, 0]


def test_text_that_reads_missing_is_refused_beside_nulls_only():
    assert canonical_array([MISSING, "a"])[0] == [MISSING, "a"]
    with pytest.raises(CodeError, match="occurs beside missing values"):
        canonical_array([MISSING, None])


def test_nested_arrays_are_refused():
    with pytest.raises(CodeError, match="array"):
        canonical_array(pa.array([[1], [2]]))


values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.dates()
)


@given(st.lists(values, max_size=30))
def test_factorised_arrays_spell_every_value(sample):
    expected = [None if v is None or v != v else canonical(v) for v in sample]
    codes, positions = factorise(sample)
    assert [None if i < 0 else codes[i] for i in positions.tolist()] == expected
    assert len(set(codes)) == len(codes)


def test_natural_order_is_how_people_list_codes():
    numbers = ["-5", "-1.5", "0", "0-4", "01", "1", "1.25", "1.5", "2", "5-9", "10", "10-14", "90+"]
    ordered = [*numbers, "A", "A2", "A10", "B1", "a", "Ö", MISSING]
    shuffled = random.Random(1).sample(ordered, len(ordered))
    assert natural_order(shuffled) == ordered


def test_natural_order_follows_classification_codes():
    codes = ["10", "10.1", "10.11", "10.11.5", "10.2", "11"]
    assert natural_order(reversed(codes)) == codes


def test_natural_order_reads_numbers_of_any_length():
    long = "9" * 5000
    assert natural_order([long, "2"]) == ["2", long]


def test_nearest_codes_are_neighbours_or_typing_errors():
    assert nearest_codes("A9", [f"A{i}" for i in range(1, 9)]) == ["A8", "A7"]
    assert nearest_codes("A3", ["A1", "A2", "A4", "A5", "A9"]) == ["A2", "A4"]
    assert nearest_codes("Olso", ["Bergen", "Oslo", "Tromsø"]) == ["Oslo"]
    assert nearest_codes("zzz", ["Bergen", "Oslo"]) == []
    assert nearest_codes("50001x", [str(i) for i in range(100_000)], limit=1) == ["50001"]
