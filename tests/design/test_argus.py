"""Files of τ-ARGUS: metadata, tables, a-priori files, and what is wrong with them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet.design import Axis
from discreet.errors import DataError, DesignError, ParameterError, UnknownNameError
from discreet.suppress import argus
from discreet.suppress.argus.tables import tree_of
from tests.strategies import trees

METADATA = """\
<SEPARATOR> ";"
<UNSAFE> "X"
Size "99"
   <RECODEABLE>
   <TOTCODE> "All"
Region
   <RECODEABLE>
   <TOTCODE> "All"
   <HIERARCHICAL>
   <HIERCODELIST> "region.hrc"
   <HIERLEADSTRING> "@"
Turnover
   <NUMERIC>
   <DECIMALS> 2
Firms
   <FREQUENCY>
Top1
   <MAXSCORE>
Top2
   <MAXSCORE>
Status
   <STATUS>
Below
   <NUMERIC> <LOWERPL>
Above
   <NUMERIC> <UPPERPL>
"""
ROWS = """\
All;All;60.5;9;20;10;S;0;0
All;N;30.5;5;20;5;S;0;0
All;n1;20.5;2;20;0.5;X;1.5;1.5
All;n2;10;3;5;3;S;0;0

All;S;30;4;10;10;S;0;0
1;All;50.5;7;20;10;S;0;0
1;N;30.5;5;20;5;S;0;0
1;n1;20.5;2;20;0.5;X;1.5;1.5
1;n2;10;3;5;3;S;0;0
1;S;20;2;10;10;P;0;0
99;All;10;2;6;4;S;0;0
99;S;10;2;6;4;M;0;0
"""
HRC = "N\n@n1\n@n2\nS\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "t.rda").write_text(METADATA)
    (tmp_path / "t.tab").write_text(ROWS)
    (tmp_path / "region.hrc").write_text(HRC)
    return tmp_path


def test_metadata_say_what_the_columns_are():
    about = argus.read_metadata(METADATA)
    assert about.separator == ";"
    assert about.statuses == {"SAFE": "S", "UNSAFE": "X", "PROTECT": "P"}
    assert [v.name for v in about.dimensions] == ["Size", "Region"]
    assert about.variable("Size").missing == ("99",)
    assert about.variable("Region").total == "All"
    assert about.variable("Turnover").options["DECIMALS"] == ("2",)
    assert [v.name for v in about.with_option("MAXSCORE")] == ["Top1", "Top2"]
    assert about.variable("Below").is_number
    with pytest.raises(UnknownNameError, match="Did you mean 'Region'"):
        about.variable("Regin")


def test_metadata_come_back_as_they_were(tmp_path):
    about = argus.read_metadata(METADATA)
    assert argus.read_metadata(about.write(tmp_path / "again.rda")) == about


FIXED = """\
Year 1  2 99
  <RECODEABLE>
Industry 4  5 99999
  <RECODEABLE>
  <HIERLEVELS>  3 1 1 0 0
Wgt 10 4 9999
  <DECIMALS> 1
  <WEIGHT>
Var1 14 6
  <NUMERIC>
Request 21 1
  <REQUEST> "1" "2"
"""


def test_records_of_fixed_width(tmp_path):
    path = tmp_path / "records.asc"
    path.write_text("03 01101 1.5   12.5 1\n99 01102 2.0        0\n")
    about = argus.read_metadata(FIXED)
    assert argus.read_metadata(about.text) == about
    rows = argus.read_rows(path, about)
    assert rows.to_pydict() == {
        "Year": ["03", None],
        "Industry": ["01101", "01102"],
        "Wgt": [1.5, 2.0],
        "Var1": [12.5, None],
        "Request": ["1", "0"],
    }
    tree = about.variable("Industry").hierarchy(tmp_path, rows.column("Industry").to_pylist())
    assert tree.leaves_of("0110") == ("01101", "01102")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<RECODEABLE>\nRegion\n", "line 1: <RECODEABLE> stands before the first column"),
        ('<SEPARATOR> ";"\nRegion\n <TOTCODE>\n', "line 3: <TOTCODE> needs a value"),
        ('<SEPARATOR> ";"\nRegion\n <TOTCODE> "All\n', "line 3: .* is not closed"),
        ('<SEPARATOR> ";"\nRegion\n<NUMERIC>\n<NUMERIC>\n', "line 4: <NUMERIC> is said twice"),
        ('<SEPARATOR> ";"\nRegion <NUMERIC>\n', "line 2: .* lines of their own"),
        ('<SEPARATOR> ";"\nRegion\nRegion\n', "column 'Region' twice"),
        ("Region\n<RECODEABLE>\n", "no place and width"),
        ('<SEPARATOR> ";"\n', "name no column"),
    ],
)
def test_metadata_that_cannot_be_read_are_told_by_line(text, message):
    with pytest.raises(DataError, match=message):
        argus.read_metadata(text)


def test_a_table_with_its_status_and_levels(folder):
    read = argus.read_table(folder / "t.tab", folder / "t.rda")
    table, given = read.table, read.table.contributions
    assert (read.response, given.value) == ("Turnover", "Turnover")
    k = table.design.position({"Size": "1", "Region": "n1"})
    assert (given.sum[k], given.count[k], read.status[k]) == (20.5, 2, "U")
    assert (read.lower[k], read.upper[k]) == (1.5, 1.5)
    assert given.largest[k].tolist() == [20.0, 0.5]
    assert read.status[table.design.position({"Size": "1", "Region": "S"})] == "P"
    assert read.status[table.design.position({"Size": "99", "Region": "S"})] == "M"
    empty = table.design.position({"Size": "99", "Region": "n1"})
    assert (read.status[empty], given.sum[empty], table.z[empty]) == ("E", 0.0, 0)
    assert read.cost is None
    assert given.owners == ()
    assert dc.rules.PPercent(10).primaries(table)[k]
    assert dc.rules.PPercent(10).needs(table)[1][k] == pytest.approx(2.0)


def test_branches_of_unequal_depth_have_inner_cells(folder):
    read = argus.read_table(folder / "t.tab", folder / "t.rda")
    design = read.table.design
    inner = read.table.contributions.inner
    assert inner.sum[design.inner_position({"Size": "1", "Region": "S"})] == 20.0
    np.testing.assert_allclose(design.aggregate(inner.sum), read.table.contributions.sum)


def test_what_is_written_is_read_again(folder):
    read = argus.read_table(folder / "t.tab", folder / "t.rda")
    files = argus.write_table(
        read.table, folder / "again.tab", status=read.status, lower=read.lower, upper=read.upper
    )
    assert set(files) == {"table", "metadata", "Region"}
    assert oct(files["table"].stat().st_mode & 0o777) == "0o600"
    again = argus.read_table(files["table"], files["metadata"])
    for part in ("sum", "count", "largest"):
        np.testing.assert_array_equal(
            getattr(again.table.contributions, part), getattr(read.table.contributions, part)
        )
    np.testing.assert_array_equal(again.status, read.status)
    np.testing.assert_array_equal(again.upper, read.upper)


def test_counts_are_written_and_read_as_counts(tmp_path):
    frame = pd.DataFrame({"a": ["x", "x", "y"], "b": ["p", "q", "q"], "n": [3, 1, 5]})
    table = dc.Table.from_counts(frame, "n", "a*b")
    argus.write_table(table, tmp_path / "t.tab", separator=",")
    again = argus.read_table(tmp_path / "t.tab", tmp_path / "t.rda").table
    np.testing.assert_array_equal(again.z, table.z)
    np.testing.assert_array_equal(again.y, table.y)
    assert again.contributions is None


def test_an_empty_code_is_the_total(folder):
    (folder / "t.tab").write_text(ROWS.replace("All;All", '"";""'))
    read = argus.read_table(folder / "t.tab", folder / "t.rda")
    assert read.table.contributions.sum[read.table.design.position({})] == 60.5


def test_decimal_commas(folder):
    (folder / "t.tab").write_text(ROWS.replace(".", ","))
    read = argus.read_table(folder / "t.tab", folder / "t.rda", decimal=",")
    assert read.table.contributions.sum[read.table.design.position({})] == 60.5
    with pytest.raises(DataError, match="line 1: '60,5' in column 'Turnover' is not a number"):
        argus.read_table(folder / "t.tab", folder / "t.rda")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1;n1;20.5;2;20;0.5;X;1.5;1.5", "1;n1;20.5;2;20", "line 9 has 5 values, .* 9 columns"),
        ("1;n1;20.5", "1;n7;20.5", "line 9: cell .*'n7'.* not among"),
        ("1;n1;20.5", "1;n2;20.5", "lines 9 and 10 are of the same cell"),
        ("1;n1;20.5;2", "1;n1;20.5;2.5", "counts must be whole"),
        ("n1;20.5;2;20;0.5;X", "n1;20.5;2;20;0.5;?", "line 3: status '\\?' is not known"),
    ],
)
def test_tables_that_cannot_be_read_are_told_by_line(folder, old, new, message):
    (folder / "t.tab").write_text(ROWS.replace(old, new))
    with pytest.raises(dc.DiscreetError, match=message):
        argus.read_table(folder / "t.tab", folder / "t.rda")


def test_metadata_that_do_not_describe_a_table_are_refused(folder):
    bare = METADATA.replace("Firms\n   <FREQUENCY>", "Firms\n   <SHADOW>")
    (folder / "t.rda").write_text(bare)
    with pytest.raises(DataError, match="no column has <FREQUENCY>"):
        argus.read_table(folder / "t.tab", folder / "t.rda")
    (folder / "t.rda").write_text(METADATA.replace("   <RECODEABLE>\n", ""))
    with pytest.raises(DataError, match="no <RECODEABLE> column"):
        argus.read_table(folder / "t.tab", folder / "t.rda")
    (folder / "t.rda").write_text(METADATA.replace("<UPPERPL>", "<LOWERPL>"))
    with pytest.raises(DataError, match="2 columns with <LOWERPL>"):
        argus.read_table(folder / "t.tab", folder / "t.rda")


def test_only_full_crossings_are_written(tmp_path):
    frame = pd.DataFrame({"a": ["x", "y"], "b": ["p", "q"], "n": [3, 1]})
    with pytest.raises(DesignError, match="3 of 4 margins"):
        argus.write_table(dc.Table.from_counts(frame, "n", "a + b"), tmp_path / "t.tab")
    table = dc.Table.from_counts(frame.assign(a=["x;1", "y"]), "n", "a")
    with pytest.raises(DataError, match="'x;1' cannot stand"):
        argus.write_table(table, tmp_path / "t.tab")
    with pytest.raises(DataError, match="status needs a value for each of 3"):
        argus.write_table(table, tmp_path / "t.tab", separator=",", status=np.array(["S"]))


def test_groups_that_overlap_are_refused():
    one = dc.Hierarchy.from_dict({"All": {"A": ["a", "b"], "B": ["c"]}})
    two = dc.Hierarchy.from_dict({"All": {"low": ["a"], "high": ["b", "c"]}})
    with pytest.raises(DesignError, match="overlap"):
        tree_of(Axis.from_hierarchies("v", [one, two]))


@given(trees())
def test_the_hierarchy_of_an_axis_is_the_one_it_was_made_of(tree):
    found = tree_of(Axis.from_hierarchies("v", [tree]))
    assert found.leaves == tree.leaves
    for code in tree.codes:
        assert found.leaves_of(code) == tree.leaves_of(code)


codes = st.text("abc01; ,", max_size=4).map(str.strip)
entries = st.one_of(
    st.sampled_from(["u", "s", "p"]),
    st.tuples(st.just("c"), st.floats(0, 1e6)),
    st.tuples(st.just("pl"), st.floats(0, 1e6), st.floats(0, 1e6)),
)


@given(st.dictionaries(st.tuples(codes, codes), entries, min_size=1), st.sampled_from(",;"))
def test_a_priori_files_come_back_as_they_were(cells, separator):
    file = argus.APriori.of_cells(cells)
    assert argus.read_apriori(file.text(separator), separator=separator) == file


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,n,u\nx,n\n", "line 2: 'x,n' does not end in one of u"),
        ("x,n,u\nx;n;s\n", "line 2: .* is the separator ','"),
        ("x,n,c,b\n", "line 1: 'b' are no numbers"),
        ("x,n,pl,-1,2\n", "line 1: .* must not be negative"),
    ],
)
def test_a_priori_files_that_cannot_be_read_are_told_by_line(text, message):
    with pytest.raises(DataError, match=message):
        argus.read_apriori(text)


def test_a_priori_cells_of_another_table_are_refused():
    table = dc.Table.from_counts(pd.DataFrame({"a": ["x"], "n": [1]}), "n", "a")
    with pytest.raises(DataError, match="2 codes were given, but the table has 1 variables"):
        argus.APriori.of_cells({("x", ""): "u"}).cells(table.design)
    with pytest.raises(ParameterError, match="'c' with 0 numbers"):
        argus.APriori.of_cells({("x",): "c"})
