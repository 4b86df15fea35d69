"""What is said of rough records before anything runs, on the confidential side."""

import json

import pyarrow as pa
import pytest

import discreet as dc
from discreet.cli import main
from discreet.errors import ParameterError
from discreet.records.findings import look_through

ROUGH = """id;place;job;born;turnover;w
1;Bonn;47;31.12.1990;1.234,5;1,5
2;Bonn;047;1.1.2001;12;2
2;Köln;47.0;2.2.2002;7,5;x
3;Köln;12;2.2.2003;8,5;1
"""


@pytest.fixture
def rough(tmp_path):
    path = tmp_path / "rough.csv"
    path.write_text(ROUGH, "utf-8")
    return path


def test_all_is_said_before_anything_runs(rough):
    data = dc.open(rough, id="id")
    found = look_through(data, "place*job", numbers=["w"], max_codes=3)
    said = "\n".join(found.remarks)
    assert found.records == 4
    assert "decimal comma and thousands '.' in 'turnover'" in said
    assert "'id' has 1 duplicates: 2 (2 times). Remove the doubles" in said
    assert "'job' has 2 like 47, 1 like 47.0, 1 like 047" in said
    assert "'born' holds dates" in said
    assert "'w' is to be summed, and has 1 value that is no number: 'x' in record 3." in said
    assert (found.size.inner, found.size.memory) == (8, 8 * 3 * (2 * 8 + 8))
    real = dc.open(rough).tabulate("place*job")
    assert found.size.inner == real.design.n_inner


def test_many_codes_suggest_classes_and_the_flag(tmp_path):
    data = dc.open({"v": list(range(300)) * 2, "ref": [f"r{k}" for k in range(600)]})
    said = look_through(data).remarks
    assert said[0].endswith(
        "recode it into classes, or list them all with `discreet codes … --max-codes 300`."
    )
    assert "say id='ref'" in said[1]


def test_a_number_among_texts_is_no_fault_and_a_text_among_numbers_is():
    data = dc.open({"a": ["x"] * 20 + ["1"], "b": ["1"] * 20 + ["x"]})
    mixed, place = look_through(data).remarks
    assert mixed == "'a' mixes 1 numbers and 20 texts or dates."
    assert "'x' in record 21" in place


def test_clean_records_have_no_remarks():
    data = dc.open({"id": ["a", "b"], "place": ["x", "y"], "n": [1, 2]}, id="id")
    assert look_through(data, "place").remarks == ()


def test_the_command_prints_text_and_json(rough, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["check", "data", str(rough), "--id", "id", "--weight", "w", "--by", "place*job"])
    assert not ended.value.code
    assert "the table: 8 combinations of codes, 8 cells without totals" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["check", "data", str(rough), "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert (shown["side"], shown["records"]) == ("confidential", 4)


def test_the_question_on_spellings_is_answered_in_the_code_list(rough, tmp_path):
    codes = tmp_path / "codes.toml"
    codes.write_text('[job]\ncodes = ["12", "47"]\nspelling = "number"\n')
    assert dc.open(rough, codes=codes).tabulate("job").z.tolist() == [1, 3, 4]
    codes.write_text('[job]\ncodes = ["12", "47"]\nother = "drop"\n')
    assert dc.open(rough, codes=codes).tabulate("job").z.tolist() == [1, 1, 2]
    codes.write_text('[job]\ncodes = ["12", "47"]\nspelling = "loose"\n')
    with pytest.raises(dc.DiscreetError, match="spelling"):
        dc.open(rough, codes=codes)


def test_a_draft_asks_the_question(rough, tmp_path):
    from discreet.records.code_list import draft_code_lists

    rough.write_text(ROUGH + ROUGH.split("\n", 1)[1], "utf-8")
    text = draft_code_lists(dc.open(rough, id="id"), 200).text
    assert text.count('# spelling = "number"') == 1


@pytest.mark.parametrize(
    ("part", "codes"),
    [
        ("year", ["1990", "2000", "(missing)"]),
        ("quarter", ["1990-Q4", "2000-Q1", "2000-Q4", "(missing)"]),
        ("month", ["1990-12", "2000-02", "2000-11", "(missing)"]),
        ("age on 2020-11-04", ["19", "20", "29", "(missing)"]),
        ("age on 2020-11-05", ["20", "29", "(missing)"]),
    ],
)
@pytest.mark.parametrize("kind", ["text", "date"])
def test_dates_become_codes(part, codes, kind):
    born = pa.array(["1990-12-31", "2000-02-29", "2000-11-05", None])
    if kind == "date":
        born = born.cast(pa.date32())
    else:
        born = pa.array(["31.12.1990", "2000-02-29", "20001105", None])
    table = dc.open({"born": born}).recode(born=part).tabulate("born")
    assert table.design.published_codes()[0][1][:-1] == codes


def test_days_that_can_be_two_days_are_refused():
    data = dc.open({"born": ["12/11/2024"]}).recode(born="year")
    with pytest.raises(dc.DiscreetError, match="number or date"):
        data.tabulate("born")
    with pytest.raises(ParameterError, match="'age on 2024-12-31'"):
        data.recode(born="age on my birthday")


FRAME = {"id": [1, 2], "place": ["x", "y"], "v": [1.0, 2.0]}


@pytest.mark.parametrize(
    "call",
    [
        lambda d: d.tabulate("place", value=["v", "id"]),
        lambda d: d.tabulate("place", value="v", contributor=["id"]),
        lambda d: d.tabulate("place", value="v", largest="x"),
        lambda d: d.tabulate(3),
        lambda d: d.tabulate(None),
        lambda d: d.tabulate([[["place"]]]),
        lambda d: d.tabulate("place", engine=3),
        lambda d: d.recode(3),
        lambda d: d.recode(v=dc.records.cut(["a", "b"])),
        lambda d: d.recode(v=dc.records.cut([0, 1], 3)),
        lambda d: d.with_roles(weight="v", weight_bound="x"),
        lambda d: d.with_structural_zeros([3]),
        lambda d: d.with_hierarchies(place=3),
        lambda _: dc.open(FRAME, hierarchies=["place"]),
        lambda _: dc.open(FRAME, declared=[["place"]]),
        lambda _: dc.open(FRAME, weight=["v", "id"]),
        lambda _: dc.open(FRAME, codes=3),
        lambda _: dc.open(FRAME, secret=3),
        lambda _: dc.open(FRAME, ledger=3),
        lambda _: dc.open("people.csv", table=["x"]),
        lambda _: dc.open("people.csv", encoding=3),
        lambda _: dc.open("people.csv", delimiter=";;"),
        lambda _: dc.open("people.csv", thousands=",", decimal=","),
    ],
)
def test_arguments_of_wrong_types_are_refused_by_name(call):
    with pytest.raises(ParameterError, match="got|different"):
        call(dc.open(FRAME, id="id"))


def test_zeros_in_front_that_bring_codes_to_one_length_are_no_question():
    padded, odd = ["01", "12", "47"], ["1", "02", "47"]
    assert look_through(dc.open({"act": padded, "n": padded}, id="n")).remarks == ()
    (said,) = look_through(dc.open({"act": odd, "n": padded}, id="n")).remarks
    assert "'act' has 2 like 47, 1 like 047" in said


def test_amounts_that_all_differ_are_not_taken_for_ids():
    data = dc.open({"turnover": [f"{k}.5" for k in range(300)], "place": ["x"] * 300})
    (said,) = look_through(data).remarks
    assert "say value='turnover' or weight='turnover'" in said


def test_one_column_may_be_a_delimiter_that_was_not_found(tmp_path, capsys):
    (tmp_path / "one.csv").write_text("a^b^c\n1^2^3\n1^2^3\n")
    with pytest.raises(SystemExit):
        main(["check", "data", str(tmp_path / "one.csv")])
    assert "say --delimiter ';'" in capsys.readouterr().out
