"""Code lists in a file: what they say, what is wrong with them, and how they are drafted."""

import tomllib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.errors import CodeError, DataError, DiscreetError, ParameterError, UnknownNameError
from discreet.records.code_list import CodeLists, Outside, draft_code_lists

SEX = '[sex]\ncodes = ["m", "f"]\n'
PEOPLE = {
    "pid": range(6),
    "sex": ["f", "m", "f", "x", None, "m"],
    "region": ["1", "1", "2", "2", "9", "1"],
    "w": [1.0, 2.0, 4.0, 8.0, 16.0, 32.0],
    "k": [1, 2, 4, 8, 16, 32],
}
ROLES = {"id": "pid", "weight": "w", "key": "k"}


@pytest.fixture
def lists(tmp_path):
    """Writes code lists to a file and reads them."""

    def read(text, name="codes.toml"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return CodeLists.read(tmp_path / name)

    return read


def opened(codes, **options):
    return dc.open(pa.table(PEOPLE), codes=codes, **ROLES, **options)


def test_a_list_keeps_its_order_and_refuses_what_it_does_not_hold(lists):
    found = lists(SEX)
    assert found.hierarchies["sex"][0].leaves == ("m", "f")
    assert found.outside == {"sex": Outside("refuse", "refuse")}


def test_a_list_with_labels(lists):
    tree = lists('[sex.codes]\nf = "female"\n9 = "unknown"\n').hierarchies["sex"][0]
    assert tree.leaves == ("f", "9")
    assert tree.labels == {"f": "female", "9": "unknown"}


def test_codes_may_be_numbers(lists):
    found = lists("[age]\ncodes = [1, 2, 9]\nother = 9\nmissing = 9\n")
    assert found.hierarchies["age"][0].leaves == ("1", "2", "9")
    assert found.outside["age"] == Outside("9", "9")


def test_a_code_named_like_the_total_leaves_the_total_another_name(lists):
    assert lists('[a]\ncodes = ["Total", "x"]\n').hierarchies["a"][0].root == "_T"


def test_hierarchies_lie_beside_the_file(lists, tmp_path):
    (tmp_path / "region.hrc").write_text("N\n@N1\n@N2\nS\n")
    (tmp_path / "even.json").write_text('{"Even": ["N2", "S"]}')
    found = lists('[region]\nhierarchy = "region.hrc"\nother = "S"\n')
    assert found.hierarchies["region"][0].leaves == ("N1", "N2", "S")
    assert found.outside["region"].other == "S"
    several = lists('[region]\nhierarchy = ["region.hrc", "even.json"]\n')
    assert len(several.hierarchies["region"]) == 2


def test_a_file_from_a_windows_editor_is_read(tmp_path):
    (tmp_path / "codes.toml").write_bytes(b"\xef\xbb\xbf" + SEX.encode())
    assert CodeLists.read(tmp_path / "codes.toml").outside


WRONG = {
    "not TOML": ("sex = [", DataError, "not valid TOML"),
    "empty": ("# nothing\n", CodeError, "lists no variable"),
    "no table": ('sex = ["f"]\n', CodeError, r"'sex' must be a table, e.g. \[sex\]"),
    "unknown key": (SEX + 'othr = "drop"\n', UnknownNameError, "Did you mean 'other'"),
    "no codes": ('[sex]\nother = "drop"\n', CodeError, "needs either codes"),
    "codes and hierarchy": (SEX + 'hierarchy = "a.hrc"\n', CodeError, "either codes"),
    "empty codes": ("[sex]\ncodes = []\n", CodeError, "must be a list"),
    "one text": ('[sex]\ncodes = "fm"\n', CodeError, "must be a list"),
    "a code twice": ('[sex]\ncodes = ["f", "f"]\n', CodeError, "'f' is listed twice"),
    "one code, two types": ('[age]\ncodes = ["1", 1]\n', CodeError, "'1' is listed twice"),
    "a nested list": ('[sex]\ncodes = [["f"]]\n', CodeError, "list"),
    "blank code": ('[sex]\ncodes = ["f", " "]\n', CodeError, "empty code"),
    "label": ('[nace.codes]\n1.1 = "crops"\n', CodeError, "need quotes"),
    "missing file": ('[a]\nhierarchy = "no.hrc"\n', DataError, "no file .*no.hrc"),
    "file list": ("[a]\nhierarchy = [1]\n", CodeError, "name of a file"),
    "other no code": (SEX + 'other = "q"\n', CodeError, "other = 'q' is neither"),
    "missing no code": (SEX + 'missing = "mm"\n', CodeError, "missing = 'mm'.*'m'"),
    "drop is a code": ('[a]\ncodes = ["drop"]\nother = "drop"\n', CodeError, "could also mean"),
}


@pytest.mark.parametrize(("text", "kind", "words"), WRONG.values(), ids=WRONG)
def test_mistakes_are_named_with_their_file(lists, text, kind, words):
    with pytest.raises(kind, match=words) as caught:
        lists(text)
    assert "codes.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_group_of_a_hierarchy_takes_no_records(lists, tmp_path):
    (tmp_path / "region.hrc").write_text("N\n@N1\n@N2\n")
    with pytest.raises(CodeError, match="other = 'N' is neither"):
        lists('[region]\nhierarchy = "region.hrc"\nother = "N"\n')


def test_an_absent_file_is_named_with_the_command_that_drafts_it(tmp_path):
    with pytest.raises(DataError, match="discreet codes"):
        dc.open(PEOPLE, codes=tmp_path / "codes.toml")


def test_a_code_list_for_a_column_that_is_not_there_is_refused(lists):
    with pytest.raises(UnknownNameError, match="'region'"):
        opened(lists('[regoin]\ncodes = ["1"]\nother = "drop"\n'))


def test_a_variable_has_one_code_list(lists):
    with pytest.raises(ParameterError, match="'sex' has a code list and a hierarchy"):
        opened(lists(SEX), hierarchies={"sex": dc.Hierarchy.flat(["f"])})


def test_a_code_list_comes_before_the_categories_of_a_frame(lists):
    import pandas as pd

    frame = pd.DataFrame({"sex": pd.Categorical(["f", "x"], ["x", "f"])})
    table = dc.open(frame, codes=lists(SEX + 'other = "m"\n')).tabulate("sex")
    assert table.design.axes[0].leaves == ("m", "f")


DROPPING = SEX + 'other = "drop"\nmissing = "drop"\n'


def test_recodes_to_codes_of_the_list_keep_the_rule(lists):
    data = opened(lists(SEX + 'other = "m"\nmissing = "f"\n')).recode(sex={"m": "f"})
    assert data.outside["sex"] == Outside("f", "f")
    assert data.tabulate("sex").z.tolist() == [0, 6, 6]


def test_recodes_to_missing_drop_where_missing_is_dropped(lists):
    data = opened(lists(DROPPING)).recode(sex={"m": None})
    assert data.tabulate("sex").z.tolist() == [0, 2, 2]


def test_recodes_to_other_codes_lose_list_and_rule(lists):
    data = opened(lists(DROPPING)).recode(sex={"m": "man"})
    assert "sex" not in data.outside
    table = data.tabulate("sex")
    assert table.z.tolist() == [2, 2, 4]
    assert not table.design.axes[0].declared


def test_recodes_by_level_take_the_rule_along(lists, tmp_path):
    (tmp_path / "region.csv").write_text("part,region\nA,1\nA,2\nB,3\n")
    text = '[region]\nhierarchy = "region.csv"\nother = "3"\nmissing = "refuse"\n'
    data = opened(lists(text)).recode(region="part")
    assert data.outside["region"] == Outside("B", "refuse")
    assert data.tabulate("region").z.tolist() == [5, 1, 6]


def test_cuts_keep_a_rule_that_names_no_code(lists):
    ages = '[region]\ncodes = ["1", "2"]\nother = "drop"\nmissing = "{}"\n'
    data = opened(lists(ages.format("refuse"))).recode(region=dc.records.cut([0, 2]))
    assert data.outside["region"] == Outside("drop", "refuse")
    assert data.tabulate("region").z.tolist() == [3, 2, 5]
    lost = opened(lists(ages.format("1"))).recode(region=dc.records.cut([0, 2]))
    assert not lost.outside


def test_other_hierarchies_replace_the_list_and_its_rule(lists):
    data = opened(lists(SEX + 'other = "m"\nmissing = "m"\n'))
    for table in (
        data.with_hierarchies(sex=dc.Hierarchy.flat(["f", "m", "x"])).tabulate("sex"),
        data.tabulate("sex", hierarchies={"sex": dc.Hierarchy.flat(["f", "m", "x"])}),
    ):
        assert table.design.axes[0].leaves == ("f", "m", "x", "(missing)")
        assert not table.design.axes[0].declared


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, None, 3], pa.int32()),
        pa.array([1.0, 2.0, float("nan"), 2.5]),
        pa.array(["1", "2", None, "zz"]),
        pa.array(["1", "2", None, "1.0"]).dictionary_encode(),
        pa.array([1, 2, None, 7], pa.decimal128(5, 2)),
    ],
    ids=lambda v: str(v.type),
)
def test_records_of_every_type_are_dropped_by_their_code(lists, values):
    codes = '[a]\ncodes = ["1", "2", "north"]\nother = "drop"\nmissing = "{}"\n'
    frame = pa.table({"a": values})
    assert dc.open(frame, codes=lists(codes.format("drop"))).tabulate("a").z.tolist() == [
        1,
        1,
        0,
        2,
    ]
    kept = dc.open(frame, codes=lists(codes.format("north")))
    assert kept.tabulate("a").z.tolist() == [1, 1, 1, 3]


def test_types_without_codes_cannot_be_dropped_by_code(lists):
    import datetime

    frame = {"a": [datetime.time(1)]}
    with pytest.raises(ParameterError, match="make it text"):
        dc.open(frame, codes=lists('[a]\ncodes = ["01:00:00"]\nother = "drop"\n'))


DRAFTED = pa.table(
    {
        "person_id": range(12),
        "number": range(100, 112),
        "sex": ["f", "m", None] * 4,
        "age": ["10-14", "5-9", "100+", "0"] * 3,
        "word": ["refuse", "drop"] * 6,
        "blank": ["a", ""] * 6,
        "nothing": pa.nulls(12, pa.string()),
        "many": [*"abcdefgh", *"abcd"],
        "w": [1.0] * 12,
        "household weight": [1, 2] * 6,
        "list": [[1], [2]] * 6,
    }
)


def test_a_draft_lists_every_variable_and_says_why_others_are_left_out(tmp_path):
    data = dc.open(DRAFTED, weight="w")
    draft = draft_code_lists(data, max_codes=7)
    assert draft.listed == ("sex", "age", "word", "blank")
    assert {name: reason.split()[-1] for name, reason in draft.skipped.items()} == {
        "person_id": "key",
        "number": "--max-codes",
        "nothing": "values",
        "many": "--max-codes",
        "w": "key",
        "household weight": "key",
        "list": "values",
    }
    for name, reason in draft.skipped.items():
        assert f"# - {name!r} {reason}.\n" in draft.text
    assert "becomes public" in draft.text
    content = tomllib.loads(draft.text)
    assert content["age"]["codes"] == ["0", "5-9", "10-14", "100+"]
    assert content["sex"]["codes"] == ["f", "m", "(missing)"]
    assert content["sex"]["missing"] == "(missing)"
    assert content["age"]["missing"] == content["age"]["other"] == "refuse"
    assert content["blank"]["codes"] == ["a"]
    assert "Blank values" in draft.text


def test_columns_with_a_value_for_each_record_look_like_ids():
    draft = draft_code_lists(dc.open(DRAFTED), max_codes=20)
    assert "like an id" in draft.skipped["number"]


def test_a_draft_opens_the_records_it_was_made_from(lists):
    frame = DRAFTED.select(["sex", "age", "word"])
    codes = lists(draft_code_lists(dc.open(frame), 200).text)
    table = dc.open(frame, codes=codes).tabulate("sex*age*word")
    assert table.to_arrow().equals(dc.open(frame).tabulate("sex*age*word").to_arrow())
    assert all(axis.declared for axis in table.design.axes)


def test_odd_names_and_codes_survive_a_draft(lists):
    frame = {'a "b"\n[c]': ['x"\\', "ø\n#", "=1"] * 2}
    draft = draft_code_lists(dc.open(frame), 200)
    assert lists(draft.text).hierarchies['a "b"\n[c]'][0].leaves == ("=1", 'x"\\', "ø\n#")


def test_a_draft_of_nothing_is_refused():
    with pytest.raises(DiscreetError, match="'pid' has the name"):
        draft_code_lists(dc.open({"pid": [1, 2]}), 200)


def test_a_draft_is_the_same_from_every_engine(tmp_path):
    frame = DRAFTED.drop_columns(["list"])
    pq.write_table(frame, tmp_path / "people.parquet")
    from_file = draft_code_lists(dc.open(tmp_path / "people.parquet"), 7)
    assert from_file.listed == draft_code_lists(dc.open(frame), 7).listed
