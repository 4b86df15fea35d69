from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import discreet as dc
from discreet.design import MISSING
from discreet.design.codes import canonical
from discreet.errors import CodeError, DataError, ParameterError, UnknownNameError
from discreet.records.backend import fetch
from discreet.records.recode import Moves, moved_rules

REGION = dc.Hierarchy(
    "Total",
    {"N": "Total", "S": "Total", "N1": "N", "N2": "N", "S1": "S", "X": "Total"},
    level_names=("country", "province", "town"),
)


def column(data, name):
    """A column's canonical codes, in the order of the ids."""
    table = fetch(data.backend, data.table.order_by("id").select(name), "test")
    return [canonical(v) for v in table.column(0).to_pylist()]


def people(values, kind=None, name="v"):
    return dc.open(pa.table({"id": range(len(values)), name: pa.array(values, kind)}), id="id")


@pytest.mark.parametrize(
    ("points", "labels"),
    [
        ([0, 15, 25, 65], ("0-14", "15-24", "25-64", "65+")),
        ([0, 1, 2], ("0", "1", "2+")),
        ([-5, 0, 5], ("-5--1", "0-4", "5+")),
        ([0, 1.5, 3], ("0 to <1.5", "1.5 to <3", "3+")),
        ([10], ("10+",)),
    ],
)
def test_labels_of_cuts(points, labels):
    assert dc.records.cut(points).labels == labels


@pytest.mark.parametrize("points", [[], [3, 2], [1, 1]])
def test_cut_points_must_increase(points):
    with pytest.raises(ParameterError, match="increase"):
        dc.records.cut(points, labels=["a"] * len(points))


@pytest.mark.parametrize("labels", [["a"], ["a", "a"], ["a", "b", "c"]])
def test_a_label_for_each_class(labels):
    with pytest.raises(ParameterError, match="labels"):
        dc.records.cut([0, 1], labels=labels)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int64(), pa.float64(), pa.string()])
def test_cut_on_numbers_of_any_type(kind):
    ages = pa.array([0, 14, 15, 64, 65, 99, None]).cast(kind)
    data = people(ages, kind).recode(v=dc.records.cut([0, 15, 65]))
    assert column(data, "v") == ["0-14", "0-14", "15-64", "15-64", "65+", "65+", MISSING]


def test_nan_is_missing_not_the_last_class():
    data = people([1.0, float("nan")]).recode(v=dc.records.cut([0, 15]))
    assert column(data, "v") == ["0-14", MISSING]


def test_classes_are_a_code_list_even_when_empty():
    table = people([70, 3]).recode(v=dc.records.cut([0, 15, 65])).tabulate("v")
    assert dict(zip(table.to_pandas()["v"], table.z, strict=True)) == {
        "0-14": 1,
        "15-64": 0,
        "65+": 1,
        "Total": 2,
    }


def test_below_the_first_point_is_an_error_that_names_it():
    with pytest.raises(CodeError, match="'<0'"):
        people([-1, 3]).recode(v=dc.records.cut([0, 15])).tabulate("v")


def test_text_that_is_no_number_cannot_be_cut():
    with pytest.raises(DataError, match="could not be read"):
        people(["a"]).recode(v=dc.records.cut([0])).tabulate("v")
    with pytest.raises(ParameterError, match="only numbers"):
        people([date(2020, 1, 1)]).recode(v=dc.records.cut([0]))


@pytest.mark.parametrize(
    ("values", "kind", "mapping", "expected"),
    [
        (["a", "b", "c"], None, {"a": "A", "b": "A"}, ["A", "A", "c"]),
        ([1, 2, 3], pa.int16(), {1: "one", "2": "two"}, ["one", "two", "3"]),
        ([1, 2, 3], pa.uint64(), {1: 3}, ["3", "2", "3"]),
        ([1.0, 2.0, 0.5], None, {1: "one", 0.5: "half"}, ["one", "2", "half"]),
        ([1.0, float("inf"), 1e300], None, {1: "one"}, ["one", "inf", None]),
        ([True, False], None, {True: "yes"}, ["yes", "false"]),
        ([date(2020, 1, 2), date(2021, 1, 1)], None, {"2020-01-02": "x"}, ["x", "2021-01-01"]),
        ([Decimal("1.50"), Decimal("2.00")], None, {"1.5": "x"}, ["x", "2"]),
        ([Decimal(1), Decimal(2)], pa.decimal128(5, 0), {1: "x"}, ["x", "2"]),
        (["ü", "数", "o'hara"], None, {"ü": "数", "o'hara": "\\'; --"}, ["数", "数", "\\'; --"]),
        (["a", None], None, {"a": None}, [MISSING, MISSING]),
        (["a", None], None, {None: "unknown"}, ["a", "unknown"]),
        ([1.0, None], None, {None: "unknown"}, ["1", "unknown"]),
        (["a", "b"], None, {}, ["a", "b"]),
    ],
)
def test_recode_by_mapping(values, kind, mapping, expected):
    found = column(people(values, kind).recode(v=mapping), "v")
    assert [f for f, e in zip(found, expected, strict=True) if e is not None] == [
        e for e in expected if e is not None
    ]


def test_default_takes_whatever_is_not_listed_but_missing():
    data = people(["a", "b", "c", None]).recode(v={"a": "A"}, default="other")
    assert column(data, "v") == ["A", "other", "other", MISSING]
    stamps = people([datetime(2020, 1, 1), datetime(2021, 1, 1)])
    assert column(stamps.recode(v={"2020-01-01T00:00:00": "x"}, default=0), "v") == ["x", "0"]
    with pytest.raises(ParameterError, match="default="):
        stamps.recode(v={"2020-01-01T00:00:00": "x"})


@pytest.mark.parametrize(
    ("kind", "code"), [(pa.int8(), 300), (pa.int64(), "01"), (pa.int64(), "x"), (pa.bool_(), "yes")]
)
def test_codes_that_cannot_occur_are_refused(kind, code):
    with pytest.raises(CodeError, match="cannot occur"):
        people(pa.array([1, 0]).cast(kind), kind).recode(v={code: "x"})


def test_other_columns_and_names_are_untouched():
    names = {"id": [1], "old_code": ["p"], "OLD_CODE_": ["q"], "new_code": ["r"], "v": ["a"]}
    data = dc.open(pa.table(names), id="id").recode(v={"a": "b"})
    assert data.columns == tuple(names)
    assert [column(data, c) for c in names] == [["1"], ["p"], ["q"], ["r"], ["b"]]


def test_hostile_names_can_be_recoded():
    name = 'a"; DROP TABLE x; --'
    data = people(["1", "2"], name=name).recode({name: {"1": "one"}})
    assert column(data, name) == ["one", "2"]


def test_recode_by_level_shortens_the_hierarchy():
    data = people(["N1", "N2", "S1", "X"]).with_hierarchies(v=REGION).recode(v="province")
    assert column(data, "v") == ["N", "N", "S", "X"]
    assert data.hierarchies["v"][0].leaves == ("N", "S", "X")
    assert data.tabulate("v").z.tolist() == [2, 1, 1, 4]


def test_recode_by_level_of_whole_number_codes():
    tree = dc.Hierarchy(
        "T", {"10": "T", "11": "10", "12": "10", "01": "T"}, level_names=("t", "big", "small")
    )
    data = people([11, 12]).with_hierarchies(v=tree).recode(v="big")
    assert column(data, "v") == ["10", "10"]


def test_unknown_names_have_suggestions():
    data = people(["N1"]).with_hierarchies(v=REGION)
    with pytest.raises(UnknownNameError, match="Did you mean 'province'"):
        data.recode(v="provinse")
    with pytest.raises(UnknownNameError, match="variable"):
        data.recode(w={"a": "b"})
    with pytest.raises(UnknownNameError):
        data.recode(id={"a": "b"})
    with pytest.raises(ParameterError, match="mapping"):
        data.recode(v=3)
    with pytest.raises(ParameterError, match="default="):
        data.recode(v="province", default="x")


def test_a_mapping_keeps_the_hierarchy_only_if_it_fits():
    data = people(["N1", "N2", "old"]).with_hierarchies(v=REGION)
    kept = data.recode(v={"old": "S1"})
    assert kept.hierarchies == data.hierarchies
    assert "v" not in data.recode(v={"N1": "elsewhere"}).hierarchies


def test_recodes_add_up_and_leave_the_original_alone():
    data = people([3, 70, 20])
    twice = data.recode(v=dc.records.cut([0, 15, 65])).recode(v={"0-14": "young", "15-64": "adult"})
    assert column(twice, "v") == ["young", "65+", "adult"]
    assert column(data, "v") == ["3", "70", "20"]


RULES = ({"v": ["N"], "w": ["1"]}, {"v": ["N1", "S1"]}, {"w": ["2"]})


def test_structural_zeros_follow_a_level():
    up = REGION.ancestor_at(1)
    moved = moved_rules(RULES, "v", Moves(up), (REGION,))
    assert moved == (
        {"v": frozenset({"N"}), "w": ["1"]},
        {"v": frozenset({"S"})},  # N2 is possible, so N is
        {"w": ["2"]},
    )


def test_structural_zeros_follow_a_mapping_or_go():
    rules = ({"v": ["a"], "w": ["1"]},)
    into_a = moved_rules(rules, "v", Moves({"b": "a"}), ())
    assert into_a == ()
    renamed = moved_rules(rules, "v", Moves({"a": "A"}), ())
    assert renamed == ({"v": frozenset({"A"}), "w": ["1"]},)
    assert moved_rules(rules, "v", Moves({"c": "C"}, rest="other"), ()) == ()
    assert moved_rules(rules, "v", None, ()) == ()
