"""What each written form of a hierarchy means, and what is refused in it."""

import json
import re

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from discreet import Hierarchy
from discreet.design import MISSING
from discreet.errors import CodeError, DataError, ParameterError, UnknownNameError

HRC = "A\n@A1\n@@A11\n@A2\nB\n"
TREE = {"Total": {"A": {"A1": ["A11"], "A2": []}, "B": []}}


def error_of(error, call, *args, **kwargs):
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    return str(caught.value)


class TestHrc:
    def test_depth_is_the_number_of_leading_signs(self):
        assert Hierarchy.from_hrc(HRC).to_dict() == TREE

    @pytest.mark.parametrize(
        "text",
        [
            HRC.replace("\n", "\r\n"),
            HRC.replace("\n", "   \n"),
            HRC.replace("\n", "\n\n"),
            "\n" + HRC.rstrip("\n"),
            HRC.replace("@", "--"),
        ],
        ids=["CRLF", "trailing blanks", "empty lines", "no last line break", "other sign"],
    )
    def test_variants_read_the_same(self, text):
        leading = "--" if "--" in text else "@"
        assert Hierarchy.from_hrc(text, leading=leading).to_dict() == TREE

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
    def test_files_in_utf8_or_windows_encoding(self, tmp_path, encoding):
        path = tmp_path / "towns.hrc"
        path.write_text("Tromsø\n@Tromsøya\n", encoding=encoding)
        for source in (path, str(path)):
            tree = Hierarchy.from_hrc(source, root="Norge")
            assert tree.to_dict() == {"Norge": {"Tromsø": ["Tromsøya"]}}

    def test_written_text_is_the_file(self, tmp_path):
        tree = Hierarchy.from_hrc(HRC)
        assert tree.to_hrc(tmp_path / "t.hrc") == HRC
        assert (tmp_path / "t.hrc").read_bytes().decode() == HRC

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "A\n@A1\nB\n\n@B1\n@B2\n@@@B221\n",
                "line 7: 'B221' is 4 levels deep under a code of depth 2",
            ),
            ("@A\n", "line 1: 'A' is 2 levels deep under a code of depth 0"),
            ("A\n@\n", "line 2: no code stands behind its depth"),
            ("A\n@X\nB\n@X\n", "code 'X' stands under 'A' and under 'B'"),
            ("A\n@X\n@X\n", "code 'X' is listed twice under 'A'"),
            ("A\n@Total\n", "code 'Total' is the root"),
        ],
    )
    def test_refused(self, text, message):
        assert message in error_of(CodeError, Hierarchy.from_hrc, text)

    def test_the_jump_of_depth_is_told_by_line(self):
        message = error_of(CodeError, Hierarchy.from_hrc, "A\n@@A11\n")
        assert message.startswith("line 2: 'A11' is 3 levels deep under a code of depth 1")

    def test_unreadable_files_and_signs(self, tmp_path):
        assert "no.hrc" in error_of(DataError, Hierarchy.from_hrc, tmp_path / "no.hrc")
        (tmp_path / "bad.hrc").write_bytes(b"\x81\xff\x8d")
        assert "UTF-8" in error_of(DataError, Hierarchy.from_hrc, tmp_path / "bad.hrc")
        assert "leading" in error_of(ParameterError, Hierarchy.from_hrc, HRC, leading="")

    @pytest.mark.parametrize("code", ["@A", " A", "A ", "A\nB"])
    def test_codes_that_would_not_be_read_back_are_not_written(self, code):
        assert repr(code) in error_of(CodeError, Hierarchy.flat([code]).to_hrc)
        assert "X" in Hierarchy.flat(["X"]).to_hrc()


class TestOfR:
    """Hierarchies as R packages hold them: as a file, and as a frame."""

    LEVELS, CODES = ("@", "@@", "@@@", "@@@", "@@"), ("All", "EU", "Spain", "Malta", "Norway")
    TREE = {"All": {"EU": ["Spain", "Malta"], "Norway": []}}

    def test_a_dim_list(self, tmp_path):
        frame = {"levels": list(self.LEVELS), "codes": list(self.CODES)}
        assert Hierarchy.read(pa.table(frame)).to_dict() == self.TREE
        rows = zip(self.LEVELS, self.CODES, strict=True)
        text = "levels,codes\n" + "".join(f"{level},{code}\n" for level, code in rows)
        (tmp_path / "geo.csv").write_text(text)
        assert Hierarchy.read(tmp_path / "geo.csv").to_dict() == self.TREE
        under = Hierarchy.read(tmp_path / "geo.csv", root="World")
        assert under.to_dict() == {"World": self.TREE}

    def test_maps_of_codes_to_their_groups(self):
        maps = {"mapsFrom": ["a", "b", "G"], "mapsTo": ["G", "G", "All"], "level": [1, 1, 2]}
        tree = {"All": {"G": ["a", "b"]}}
        assert Hierarchy.read(pa.table({**maps, "sign": [1, 1, 1]})).to_dict() == tree
        assert Hierarchy.read(pa.table(maps)).level_names == ()
        message = error_of(CodeError, Hierarchy.read, pa.table({**maps, "sign": [1, 1, -1]}))
        assert message.startswith("column 'sign' holds '-1'; here codes are added")

    @pytest.mark.parametrize(
        ("levels", "message"),
        [
            (["@", "@@", "@@@@"], "row 3: 'c' is 3 levels deep under a code of depth 1"),
            (["@", "@@", "2"], "column 'levels' holds '2'; it tells the depth"),
            (["@", "@", "@@@"], "row 3: 'c' is 3 levels deep under a code of depth 1"),
        ],
    )
    def test_refused(self, levels, message):
        frame = pa.table({"levels": levels, "codes": ["a", "b", "c"]})
        assert message in error_of(CodeError, Hierarchy.read, frame)
        assert "no codes" in error_of(CodeError, Hierarchy.read, frame.slice(0, 0))

    def test_a_frame_is_given_like_a_file(self):
        counts = {"geo": ["Spain", "Malta", "Norway"], "n": [3, 4, 5]}
        dim_list = pa.table({"levels": list(self.LEVELS), "codes": list(self.CODES)})
        table = dc.Table.from_counts(counts, "n", "~geo", hierarchies={"geo": dim_list})
        assert table.z[table.design.position({"geo": "EU"})] == 7


class TestDigits:
    def test_groups_are_leading_characters(self):
        tree = Hierarchy.from_digits(["01101", "01102", "01201", "02"], "2 1 2")
        assert tree.to_dict() == {
            "Total": {"01": {"011": ["01101", "01102"], "012": ["01201"]}, "02": []}
        }
        assert Hierarchy.from_digits(["01101", "01101"], [2, 1, 2, 0, 0]).depth == 3

    def test_refused(self):
        lost = error_of(CodeError, Hierarchy.from_digits, ["01101", 1101], "2 1 2")
        assert lost.startswith("code '1101' has 4 characters; the levels end at 2, 3, 5.")
        for wrong in ("2 x", "", "0 0", "2 -1", [2.5, "a"]):
            assert "digits" in error_of(ParameterError, Hierarchy.from_digits, ["01"], wrong)


class TestDict:
    def test_lists_dicts_and_nothing_may_be_mixed(self):
        mixed = {"Total": {"A": [{"A1": ["A11"]}, "A2"], "B": None}}
        assert Hierarchy.from_dict(mixed).to_dict() == TREE

    def test_several_codes_at_the_top_need_a_root(self):
        assert Hierarchy.from_dict(TREE["Total"], root="Total").to_dict() == TREE
        assert Hierarchy.from_dict({"A": ["A1"]}, root="All").to_dict() == {"All": {"A": ["A1"]}}
        message = error_of(CodeError, Hierarchy.from_dict, TREE["Total"])
        assert "('A', 'B')" in message
        assert "root=" in message

    @pytest.mark.parametrize("wrong", [{"T": "abc"}, {"T": {"A": 5}}, {"T": [["A"]]}])
    def test_refused(self, wrong):
        error_of(CodeError, Hierarchy.from_dict, wrong)

    def test_empty(self):
        assert "no codes" in error_of(CodeError, Hierarchy.from_dict, {})
        assert Hierarchy.from_dict({"T": []}).leaves == ()


ROWS = {
    "code": ["Total", "A", "A1", "A11", "A2", "B"],
    "over": [None, "Total", "A", "A1", "A", "Total"],
    "name": ["All", "Alpha", None, "", "Alpha two", "Beta"],
}


class TestParentChild:
    @pytest.mark.parametrize(
        "frame",
        [ROWS, pa.table(ROWS), pd.DataFrame(ROWS), pl.DataFrame(ROWS)],
        ids=["dict", "arrow", "pandas", "polars"],
    )
    def test_frames_of_any_library(self, frame):
        tree = Hierarchy.from_parent_child(frame, child="code", parent="over", label="name")
        assert tree.to_dict() == TREE
        assert tree.labels == {"Total": "All", "A": "Alpha", "A2": "Alpha two", "B": "Beta"}

    def test_lazy_frames_and_databases(self):
        frame = pl.LazyFrame(ROWS)
        assert Hierarchy.from_parent_child(frame, "code", "over").to_dict() == TREE
        rows = pa.table(ROWS)  # noqa: F841 - read by name
        relation = duckdb.sql("select * from rows")
        tree = Hierarchy.from_parent_child(relation, "code", "over")
        assert set(tree.parents.items()) == set(Hierarchy.from_dict(TREE).parents.items())

    def test_the_root_is_the_one_parent_without_a_row(self):
        pairs = [("A", "Total"), ("B", "Total"), ("A1", "A")]
        assert Hierarchy.from_parent_child(pairs).root == "Total"
        assert Hierarchy.from_parent_child(iter(pairs)).leaves == ("A1", "B")

    def test_codes_without_a_parent_go_under_the_given_root(self):
        pairs = [("A", None), ("B", ""), ("A1", "A"), ("C", float("nan"))]
        tree = Hierarchy.from_parent_child(pairs, root="All")
        assert tree.to_dict() == {"All": {"A": ["A1"], "B": [], "C": []}}
        with_root = Hierarchy.from_parent_child([("All", None), *pairs], root="All")
        assert with_root == tree

    def test_a_parent_may_be_called_missing(self):
        tree = Hierarchy.from_parent_child([(MISSING, "T"), ("x", MISSING)])
        assert tree.to_dict() == {"T": {MISSING: ["x"]}}

    @pytest.mark.parametrize(
        ("pairs", "message"),
        [
            ([("A1", "A"), ("B1", "B")], "several codes stand at the top ('A', 'B')"),
            ([("A", None), ("B", None)], "several codes stand at the top ('A', 'B')"),
            ([("T", None), ("A1", "A")], "parent 'A' of code 'A1' is neither a code"),
            ([("A", "B"), ("B", "A")], "circle: 'A' under 'B' under 'A'"),
            ([("T", None), ("A", "B"), ("B", "A")], "circle: 'A' under 'B' under 'A'"),
            ([("A", "T"), ("A", "T")], "code 'A' is listed twice under 'T'"),
            ([("A", "T"), ("B", "T"), ("A", "B")], "code 'A' stands under 'T' and under 'B'"),
            ([("", "T")], "an empty code stands under 'T'"),
            ([], "there are no codes"),
        ],
    )
    def test_refused(self, pairs, message):
        assert message in error_of(CodeError, Hierarchy.from_parent_child, pairs)

    def test_repeated_rows_of_a_frame_are_refused(self):
        twice = pa.table({"child": ["T", "A", "A"], "parent": [None, "T", "T"]})
        assert "'A' is listed twice" in error_of(CodeError, Hierarchy.from_parent_child, twice)

    def test_wrong_input(self):
        message = error_of(UnknownNameError, Hierarchy.from_parent_child, ROWS, "codes", "over")
        assert "Did you mean 'code'" in message
        assert "pairs" in error_of(ParameterError, Hierarchy.from_parent_child, [("A", "B", "C")])
        assert "frame" in error_of(DataError, Hierarchy.from_parent_child, 5)


NESTED = {
    "region": ["A", "A", "B", "A", "C", "A"],
    "county": ["A1", "A2", None, "A1", "C", "A1"],
    "town": [11, 21, None, 12, "C", 11],
}


class TestColumns:
    def test_branches_end_at_empty_or_repeated_cells(self):
        frame = pd.DataFrame(NESTED, dtype=object)
        tree = Hierarchy.from_columns(frame, ["region", "county", "town"])
        assert tree.to_dict() == {
            "Total": {"A": {"A1": ["11", "12"], "A2": ["21"]}, "B": [], "C": []}
        }
        assert tree.level_names == ("Total", "region", "county", "town")
        assert tree.level("county") == 2

    def test_levels_no_row_reaches_have_no_name(self):
        tree = Hierarchy.from_columns({"a": ["x", "y"], "b": ["", None]}, ["a", "b"])
        assert tree.level_names == ("Total", "a")

    def test_a_row_of_the_total_adds_nothing(self):
        tree = Hierarchy.from_columns({"a": ["All", "x"], "b": ["All", "x1"]}, ["a", "b"], "All")
        assert tree.to_dict() == {"All": {"x": ["x1"]}}

    @pytest.mark.parametrize("wrap", [pa.table, pd.DataFrame, pl.DataFrame, pl.LazyFrame])
    def test_repeated_rows_count_once_in_order_of_appearance(self, wrap):
        many = {"a": ["x", "y"] * 500, "b": [f"{i % 100:02d}" for i in range(1000)]}
        tree = Hierarchy.from_columns(wrap(many), ["a", "b"])
        assert tree.children("Total") == ("x", "y")
        assert tree.children("y") == tuple(f"{i:02d}" for i in range(1, 100, 2))

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            (
                {"a": ["1", "2"], "b": ["9", "9"]},
                "code '9' of column 'b' stands under '1' and under '2'",
            ),
            (
                {"a": ["1", "2"], "b": ["2", "3"]},
                "code '2' occurs in column 'b' and in column 'a'",
            ),
            (
                {"a": ["1"], "b": [None], "c": ["5"]},
                "code '5' of column 'c' stands below '1', but column 'b' between them is empty",
            ),
            (
                {"a": [None], "b": ["5"]},
                "code '5' of column 'b' stands below 'Total', but column 'a'",
            ),
            ({"a": ["1"], "b": ["1"], "c": ["5"]}, "empty or repeats '1'"),
        ],
    )
    def test_refused(self, columns, message):
        assert message in error_of(CodeError, Hierarchy.from_columns, columns, list(columns))

    def test_wrong_columns(self):
        assert "no columns" in error_of(ParameterError, Hierarchy.from_columns, NESTED, [])
        for wrong in ("ab", ["region", "region"]):
            assert "coarsest" in error_of(ParameterError, Hierarchy.from_columns, NESTED, wrong)
        frame = {"region": ["A"], "county": ["A1"]}
        message = error_of(UnknownNameError, Hierarchy.from_columns, frame, ["regoin", "county"])
        assert "Did you mean 'region'" in message

    def test_written_columns_have_names_of_levels(self):
        assert Hierarchy.from_dict(TREE).to_columns().to_pydict() == {
            "level1": ["A", "A", "B"],
            "level2": ["A1", "A2", None],
            "level3": ["A11", None, None],
        }


class TestFiles:
    @pytest.mark.parametrize("delimiter", [",", ";", "\t"])
    def test_csv_cells_stay_text(self, tmp_path, delimiter):
        path = tmp_path / "codes.csv"
        rows = [
            ("child", "parent", "label"),
            ("T", "", "All"),
            ("01", "T", "eins, zwei"),
            ("1", "T", ""),
        ]
        lines = [delimiter.join(f'"{cell}"' for cell in row) for row in rows]
        path.write_text("\r\n".join(lines) + "\r\n", encoding="utf-8-sig", newline="")
        tree = Hierarchy.read(path)
        assert tree.leaves == ("01", "1")
        assert tree.labels == {"T": "All", "01": "eins, zwei"}

    def test_csv_with_a_column_per_level(self, tmp_path):
        path = tmp_path / "codes.csv"
        path.write_text("region,county\nA,A1\nA,A2\nB,\n")
        tree = Hierarchy.read(str(path), root="All")
        assert tree.to_dict() == {"All": {"A": ["A1", "A2"], "B": []}}
        assert tree.level_names == ("All", "region", "county")

    def test_json_of_nested_dicts(self, tmp_path):
        path = tmp_path / "codes.json"
        path.write_text(json.dumps(TREE))
        assert Hierarchy.read(path).to_dict() == TREE

    @pytest.mark.parametrize(
        ("name", "content", "error", "message"),
        [
            ("x.json", b"{", DataError, "is not JSON"),
            ("x.json", b"5", CodeError, "the hierarchy holds 5; expected a dict"),
            ("x.csv", b"a,b\n1\n", DataError, "has 1 cells"),
            ("x.csv", b"", ParameterError, "columns"),
            ("x.parquet", b"PAR1", DataError, "Parquet"),
            ("x.xml", b"<a/>", DataError, "SDMX"),
            ("x.xml", b"", DataError, "SDMX"),
            ("x.doc", b"", UnknownNameError, "'.doc'"),
        ],
    )
    def test_damaged_files_are_told_by_name(self, tmp_path, name, content, error, message):
        path = tmp_path / name
        path.write_bytes(content)
        assert re.search(message, error_of(error, Hierarchy.read, path))

    @pytest.mark.parametrize("suffix", [".hrc", ".json", ".csv", ".parquet", ".xml"])
    def test_absent_files(self, tmp_path, suffix):
        assert "absent" in error_of(DataError, Hierarchy.read, tmp_path / f"absent{suffix}")
