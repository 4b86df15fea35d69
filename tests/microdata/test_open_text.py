"""Text files: encodings, decimal commas, one spelling of a code, and errors without records."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.errors import DataError, ParameterError
from discreet.frames import read_frame


def written(tmp_path, text, encoding="utf-8", name="people.csv"):
    path = tmp_path / name
    content = text.encode(encoding)
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def counts(data, by):
    table = data.tabulate(by)
    index, codes = table.design.published_codes()[0]
    return dict(zip([codes[i] for i in index], table.z.tolist(), strict=True))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["47", "47.0", "12.0", ""], {"47": 2, "12": 1, "(missing)": 1, "Total": 4}),
        (["47.0", "12.0", ""], {"47": 1, "12": 1, "(missing)": 1, "Total": 3}),
        (["47", "47.0", "-3"], {"47": 2, "-3": 1, "Total": 3}),
        (["1.0", "2.0"], {"1.0": 1, "2.0": 1, "Total": 2}),
        (["1.0", "1", "1.10"], {"1.0": 1, "1": 1, "1.10": 1, "Total": 3}),
        (["1.0", "1", "01"], {"1.0": 1, "1": 1, "01": 1, "Total": 3}),
        (["1.0", "1", "1.5"], {"1.0": 1, "1": 1, "1.5": 1, "Total": 3}),
        (["1.00", "1"], {"1.00": 1, "1": 1, "Total": 2}),
        (["1.0", "1", "A"], {"1.0": 1, "1": 1, "A": 1, "Total": 3}),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_whole_numbers_with_and_without_a_zero_are_one_code(tmp_path, values, expected, encoding):
    rows = "".join(f"{v},x\n" for v in values)
    path = written(tmp_path, f"job,other\n{rows}", encoding)
    data = dc.open(path, encoding=encoding)
    assert counts(data, "job") == expected
    is_merged = "47" in expected
    assert ("47.0 is 47" in repr(data)) == is_merged
    assert bool(data.notes) == is_merged


def test_a_code_list_can_tell_codes_apart_that_look_like_one(tmp_path):
    path = written(tmp_path, "job\n1.0\n1\n1\n")
    codes = tmp_path / "codes.toml"
    codes.write_text('[job]\ncodes = ["1", "1.0"]\n')
    assert counts(dc.open(path, codes=codes), "job") == {"1": 2, "1.0": 1, "Total": 3}


def test_ids_stay_as_they_are_spelt(tmp_path):
    path = written(tmp_path, "id,job\n1,a\n1.0,a\n2,b\n")
    assert not dc.open(path, id="id").notes


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz"])
@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16", "utf-8"])
def test_other_encodings_are_read(tmp_path, encoding, name):
    text = 'place;w\nMünchen;1.5\nKöln;2\n"A\nB";3\n;4\n'
    data = dc.open(written(tmp_path, text, encoding, name), weight="w", encoding=encoding)
    assert counts(data, "place") == {"München": 1, "Köln": 1, "A\nB": 1, "(missing)": 1, "Total": 4}
    assert data.tabulate("place").weights[-1] == 10.5


def test_a_file_in_another_encoding_says_what_to_do(tmp_path):
    path = written(tmp_path, "place\nMünchen\n" * 3, "cp850")
    with pytest.raises(DataError, match="encoding='cp850'") as caught:
        dc.open(path)
    assert "nchen" not in str(caught.value)
    with pytest.raises(DataError, match="is not text in encoding='utf-16'"):
        dc.open(path, encoding="utf-16").tabulate("place")


@pytest.mark.parametrize("encoding", [None, "cp1252"])
def test_a_decimal_comma_is_read(tmp_path, encoding):
    path = written(tmp_path, "place;w;k\na;1,5;0,25\nb;2;0,5\n", encoding or "utf-8")
    data = dc.open(path, weight="w", key="k", encoding=encoding, decimal=",")
    table = _unchecked(data).tabulate("place")
    np.testing.assert_array_equal(table.weights, [1.5, 2.0, 3.5])
    np.testing.assert_array_equal(table.cell_keys, [2**30, 2**31, 2**30 + 2**31])


def _unchecked(data):
    """The records without the look at their few keys."""
    from dataclasses import replace

    return replace(data, key_check=lambda _: None)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"decimal": ";"}, "decimal"),
        ({"encoding": "klingon"}, "unknown"),
    ],
)
def test_wrong_options_of_text_files_are_refused(tmp_path, options, said):
    with pytest.raises(ParameterError, match=said):
        dc.open(written(tmp_path, "a\n1\n"), **options)


def test_options_of_text_files_go_with_text_files(tmp_path):
    with pytest.raises(ParameterError, match="goes with a file"):
        dc.open({"a": ["x"]}, decimal=",")
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "people.parquet")
    with pytest.raises(ParameterError, match="goes with files of text, not of Parquet"):
        dc.open(tmp_path / "people.parquet", encoding="cp1252")


SECRETS = ["SECRET", "O'SECRET", 'say "SECRET"', "SECRET\nSECRET", "99999SECRET"]


@pytest.mark.parametrize("engine", ["ibis", "numpy"])
@pytest.mark.parametrize("value", SECRETS)
@pytest.mark.parametrize("late", [False, True], ids=["early", "late"])
def test_conversion_errors_never_print_a_value(tmp_path, value, engine, late):
    quoted = '"' + value.replace('"', '""') + '"'
    rows = "".join("a,1.5\n" for _ in range(30_000 if late else 2))
    path = written(tmp_path, f"place,w\n{rows}b,{quoted}\n")
    with pytest.raises(DataError, match="could not be read") as caught:
        dc.open(path, weight="w").tabulate("place", engine=engine)
    assert "SECRET" not in str(caught.value)
    assert "99999" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_line_that_cannot_be_read_is_not_printed(tmp_path):
    rows = "".join("a,1.5\n" for _ in range(30_000))
    path = written(tmp_path, f'place,w\n{rows}SECRET,"SECRET\nSECRET",2,SECRET\n')
    with pytest.raises(DataError, match=r"line \d+") as caught:
        dc.open(path, weight="w").tabulate("place")
    assert "SECRET" not in str(caught.value)


def test_a_frame_that_cannot_be_read_does_not_print_its_values():
    with pytest.raises(DataError, match="cannot be read as a frame") as caught:
        read_frame({"a": [1, "SECRET"]})
    assert "SECRET" not in str(caught.value)
    assert "int and str" in str(caught.value)


def test_a_copy_with_keys_serves_records_without_ids(tmp_path):
    rows = "".join(f"{p},{s}\n" for p in "abc" for s in "mf" for _ in range(20))
    path, copy = written(tmp_path, f"place,sex\n{rows}"), tmp_path / "with-keys.parquet"
    first = dc.open(path, random_keys=copy)
    assert first.key == "record_key"
    assert first.data_set.name == "people"
    assert copy.stat().st_mode & 0o777 == 0o600
    table = first.tabulate("place*sex")
    again = dc.open(path, random_keys=copy).tabulate("place*sex")
    np.testing.assert_array_equal(table.cell_keys, again.cell_keys)
    np.testing.assert_array_equal(table.z, dc.open(path).tabulate("place*sex").z)
    shuffled = "".join(sorted(rows.splitlines(keepends=True), reverse=True))
    written(tmp_path, f"place,sex\n{shuffled}")
    same = dc.open(path, random_keys=copy).tabulate("place*sex")
    np.testing.assert_array_equal(table.cell_keys, same.cell_keys)


def test_a_copy_of_other_records_is_refused(tmp_path):
    path, copy = written(tmp_path, "place\na\nb\n"), tmp_path / "with-keys.parquet"
    dc.open(path, random_keys=copy)
    written(tmp_path, "place\na\nc\n")
    with pytest.raises(dc.DiscreetError, match="holds other records"):
        dc.open(path, random_keys=copy)


def test_random_keys_beside_ids_are_kept_by_id(tmp_path):
    path, side = written(tmp_path, "id,place\n1,a\n2,b\n3,a\n"), tmp_path / "keys.parquet"
    dc.open(path, id="id", random_keys=side)
    assert pa.parquet.read_schema(side).names == ["id", "record_key"]


def test_random_keys_say_what_they_cannot_do(tmp_path):
    path = written(tmp_path, "place,k\na,1\n")
    with pytest.raises(ParameterError, match="the records have some"):
        dc.open(path, key="k", random_keys=tmp_path / "copy.parquet")
    with pytest.raises(ParameterError, match=r"must end in \.parquet"):
        dc.open(path, random_keys=tmp_path / "copy.csv")
    with pytest.raises(ParameterError, match="random_keys="):
        dc.open(path).with_random_keys()
