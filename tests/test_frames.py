"""Columns and frames hold what every library gives them, and other libraries read the same."""

import io
from datetime import UTC, date, datetime, time
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.columns import Column, join_columns
from discreet.delimited import read_delimited, write_delimited
from discreet.errors import ColumnError, DataError, UnknownNameError
from discreet.frames import Frame, concat, numbers, read_frame
from discreet.parquet import parquet_bytes, parquet_metadata, read_parquet, write_parquet

VALUES = {
    "texts": ["a", None, "b", "a"],
    "whole": [1, None, 2**53 + 1],
    "large": [2**63 + 5, 1],
    "floats": [1.5, None, -0.1],
    "truth": [True, None, False],
    "days": [date(1900, 2, 28), None, date(2024, 2, 29)],
    "moments": [datetime(2024, 1, 1, 12, 30, 1, 5), None],
    "moments in UTC": [datetime(2024, 1, 1, 12, tzinfo=UTC), None],
    "times": [time(1, 2, 3, 4), None],
    "decimals": [Decimal("1.50"), None, Decimal("-0.01"), Decimal("1.50")],
    "bytes": [b"x", None],
}
ARROW = {"large": pa.uint64()}
FRAME = pd.DataFrame(
    {
        "whole": [1, 2, 3],
        "floats": [1.5, np.nan, 2.0],
        "texts": ["a", None, "b"],
        "codes": pd.Categorical(["x", None, "y"]),
        "moments": pd.to_datetime(["2020-01-01", None, "2021-01-01"]),
        "zoned": pd.to_datetime(["2020-06-01", None, "2021-01-01"]).tz_localize("Europe/Berlin"),
        "Int16": pd.array([1, None, 3], dtype="Int16"),
        "boolean": pd.array([True, None, False], dtype="boolean"),
        "Float64": pd.array([1.5, None, 3], dtype="Float64"),
        "string": pd.array(["a", None, "b"], dtype="string"),
        "arrow": pd.array(["a", None, "b"], dtype=pd.ArrowDtype(pa.string())),
        "days": [date(2020, 1, 1), None, date(2021, 1, 1)],
        "truth": [True, False, True],
    }
)


@pytest.mark.parametrize("name", VALUES)
def test_values_of_python_are_the_column_that_pyarrow_makes_of_them(name):
    column, theirs = Column(VALUES[name]), pa.array(VALUES[name], ARROW.get(name))
    mine = pa.chunked_array(column)
    assert mine.type == theirs.type
    assert mine.to_pylist() == theirs.to_pylist() == column.to_pylist() == VALUES[name]
    assert column.null_count == theirs.null_count == column.is_null().sum()
    assert column.unique().to_pylist() == theirs.unique().to_pylist()
    codes, distinct = column.encoded()
    told = [*distinct.to_pylist(), None]
    assert [told[code] for code in codes] == VALUES[name]
    assert column.dictionary_encode() == column == Column(theirs)
    np.testing.assert_array_equal(column.to_numpy(), theirs.to_numpy(zero_copy_only=False))


@given(st.lists(st.none() | st.text(max_size=3), max_size=40), st.data())
def test_texts_are_taken_joined_and_filled_as_lists_are(values, data):
    column = Column(values, "string")
    places = data.draw(
        st.lists(st.integers(-1, len(values) - 1), max_size=20) if values else st.just([])
    )
    wanted = [None if place < 0 else values[place] for place in places]
    for held in (column, column.dictionary_encode()):
        taken = held.take(places)
        assert taken.to_pylist() == wanted
        assert taken.is_null().tolist() == [value is None for value in wanted]
        assert taken.fill_null("?").to_pylist() == ["?" if v is None else v for v in wanted]
        assert taken.equal("a").tolist() == [value == "a" for value in wanted]
        assert join_columns([held, taken]).to_pylist() == values + wanted
        assert held.slice(2, 3).to_pylist() == values[2:5]
        assert held.drop_null().to_pylist() == [v for v in values if v is not None]
        assert (held == Column(values, "string")) is True
        assert held != Column([*values[:-1], "other"], "string")


@pytest.mark.parametrize(
    "values",
    [
        [1, "a"],
        [True, 1],
        [date(2020, 1, 1), datetime(2020, 1, 1)],
        [[1]],
        [2**70],
        [2**60 + 1, 0.5],
    ],
)
def test_values_that_one_column_would_change_are_refused(values):
    with pytest.raises(ColumnError):
        Column(values)


@pytest.mark.parametrize(
    ("values", "kind", "wanted"),
    [
        (["1", "2"], "int64", [1, 2]),
        ([1.0, 2.0], "int64", [1, 2]),
        ([1, None], "float64", [1.0, None]),
        ([1.0, 0.1, None], "string", ["1", "0.1", None]),
        ([Decimal("2.0")], "int64", [2]),
        ([None, None], "int64", [None, None]),
    ],
)
def test_a_cast_keeps_values(values, kind, wanted):
    for column in (Column(values), Column(values).dictionary_encode()):
        made = column.cast(kind)
        assert (made.kind, made.to_pylist()) == (kind, wanted)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "x"], "int64"),
        ([1.5], "int64"),
        ([300], "uint8"),
        ([2**53 + 1], "float64"),
        ([Decimal("2.5")], "int64"),
        ([datetime(2020, 1, 1, 0, 0, 0, 1)], "timestamp(3)"),
    ],
)
def test_a_cast_that_would_change_a_value_is_refused(values, kind):
    with pytest.raises(ColumnError, match="cannot be held"):
        Column(values).cast(kind)


def test_codes_are_kept_once_and_read_by_all():
    column = Column.of_codes(np.array([0, 1, -1, 1]), ["x", "y"])
    assert column.is_dictionary
    assert pa.chunked_array(column).type == pa.dictionary(pa.int32(), pa.string())
    assert column.to_pylist() == ["x", "y", None, "y"]


def test_dictionaries_that_list_a_value_twice_or_null_are_told_apart_by_value():
    theirs = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3]), pa.array(["x", "y", "x", None]))
    codes, distinct = Column(theirs).encoded()
    assert (codes.tolist(), distinct.to_pylist()) == ([0, 1, 0, -1], ["x", "y"])
    assert Column(theirs).null_count == 1


def test_frames_of_all_libraries_are_read_alike():
    table = pa.Table.from_pandas(FRAME)
    found = read_frame(FRAME)
    assert found.to_pydict() == table.to_pydict()
    sources = [table, table.combine_chunks().to_batches()[0], pyarrow.dataset.dataset(table)]
    sources += [pl.DataFrame(table), pl.DataFrame(table).lazy(), FRAME.to_dict("series"), found]
    for source in sources:
        assert read_frame(source).to_pydict() == table.to_pydict()
        assert read_frame(source, ["texts"]).column_names == ["texts"]
        with pytest.raises(UnknownNameError, match="Did you mean 'texts'"):
            read_frame(source, ["text"])


def test_a_frame_is_what_pyarrow_polars_and_pandas_make_of_it():
    frame = read_frame(FRAME)
    assert pa.table(frame).equals(frame.to_arrow())
    assert frame.to_polars().equals(pl.DataFrame(frame.to_arrow()))
    pd.testing.assert_frame_equal(frame.to_pandas(), frame.to_arrow().to_pandas())


@pytest.mark.parametrize("source", [3, {"a": [1, "x"]}, {"a": [1], "b": [1, 2]}])
def test_what_is_no_frame_is_refused_without_its_values(source):
    with pytest.raises(DataError) as refused:
        read_frame(source)
    assert "x" not in str(refused.value).replace("Unexpected", "")


def test_columns_of_the_same_name_are_refused():
    for twice in (
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pa.table([[1], [2]], names=["a", "a"]),
    ):
        with pytest.raises(DataError, match="two columns"):
            read_frame(twice)


def test_rows_are_told_apart_filtered_and_joined():
    frame = Frame({"a": ["x", "y", "x", None], "b": [1, 2, 1, 2]})
    assert frame.distinct().to_pylist() == [
        {"a": "x", "b": 1},
        {"a": "y", "b": 2},
        {"a": None, "b": 2},
    ]
    assert frame.filter(frame["a"].equal("x"))["b"].to_pylist() == [1, 1]
    more = concat([frame, Frame({"b": [2.5], "c": ["new"]})])
    assert more.to_pylist()[-1] == {"a": None, "b": 2.5, "c": "new"}
    assert more.with_column("first", range(5), 0).column_names == ["first", "a", "b", "c"]
    with pytest.raises(DataError, match="missing values"):
        numbers(frame.with_column("n", [1, None, 2, 3]), "n")


def test_files_have_the_same_bytes_twice_and_other_programs_read_them(tmp_path):
    frame = read_frame(FRAME).with_column(
        "codes", Column.of_codes(np.array([0, -1, 1]), ["x", "ü"])
    )
    told = {"discreet": '{"a": "ü\'"}'.encode(), "bytes": bytes(range(256))}
    path = tmp_path / "odd [1]* name'.parquet"
    (tmp_path / "odd 1x name'.parquet").write_bytes(b"another")
    write_parquet(path, frame, told)
    assert path.read_bytes() == parquet_bytes(frame, told)
    assert read_parquet(path).to_pydict() == frame.to_pydict()
    assert read_parquet(path).without("zoned") == frame.without("zoned")
    assert parquet_metadata(path) == told
    theirs = pq.read_table(path)
    assert theirs.schema.metadata == {key.encode(): value for key, value in told.items()}
    assert theirs.to_pydict() == frame.to_pydict()


def test_frames_are_written_one_after_the_other_as_they_are_made(tmp_path):
    made = []

    def frames():
        for k in range(3):
            made.append(k)
            yield Frame({"k": [k] * 2_500, "t": ["a"] * 2_500})

    write_parquet(tmp_path / "a.parquet", frames(), rows_per_group=2_500)
    assert (
        pq.read_table(tmp_path / "a.parquet")["k"].to_pylist()
        == [0] * 2500 + [1] * 2500 + [2] * 2500
    )
    write_parquet(tmp_path / "empty.parquet", frames().__next__().slice(0, 0))
    assert read_parquet(tmp_path / "empty.parquet").kinds == {"k": "int64", "t": "string"}


def test_a_file_that_is_no_parquet_is_refused(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 truncated")
    for read in (read_parquet, parquet_metadata):
        with pytest.raises(DataError, match="no file"):
            read(tmp_path / "absent.parquet")
        with pytest.raises(DataError, match="could not be read as Parquet"):
            read(tmp_path / "a.parquet")


FLOATS = st.floats() | st.sampled_from([1e10, 1e-7, -0.0, 123456789012.5, 0.00001, 100000.0])


@given(st.lists(st.tuples(st.text("ab\",\n'", max_size=4), FLOATS, st.none() | st.integers(-9, 9))))
def test_text_is_written_as_arrow_writes_it(rows):
    kinds = {"a,b": "string", "f": "float64", "i": "int64"}
    frame = Frame.from_rows([dict(zip(kinds, row, strict=True)) for row in rows], kinds)
    theirs = io.BytesIO()
    pyarrow.csv.write_csv(pa.table(frame), theirs)
    assert b"".join(write_delimited(frame)) == theirs.getvalue()


def test_text_is_read_record_by_record():
    text = 'a;b\n"1";"x\ny"\n\n;\n'
    assert read_delimited(io.StringIO(text, newline=""), ";").to_pylist() == [
        {"a": "1", "b": "x\ny"},
        {"a": None, "b": None},
    ]
    with pytest.raises(DataError, match="record 3 has 1 values, not 2"):
        read_delimited(["a,b\n", "1,2\n", "3\n"])
