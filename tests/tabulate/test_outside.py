"""Records outside a code list go where the list says, and leave no trace in what is public."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.errors import CodeError
from discreet.records import tabulate
from discreet.records import tabulate as plan
from discreet.records.code_list import CodeLists, Outside
from discreet.tables.storage import design_to_json

ROLES = {"weight": "w", "key": "k"}
TREES = {
    "sex": (dc.Hierarchy.flat(["m", "f"]),),
    "region": (dc.Hierarchy.from_dict({"All": {"N": ["N1", "N2"], "S": []}}),),
}
RECORDS = {
    "sex": ["f", "m", "f", "x", None, "m", "f"],
    "region": ["N1", "N2", "S", "S", "N1", "Q", None],
    "w": [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0],
    "k": [1, 2, 4, 8, 16, 32, 64],
}
DROP, REFUSE = Outside("drop", "drop"), Outside("refuse", "refuse")


def lists(sex=REFUSE, region=REFUSE):
    return CodeLists(TREES, {"sex": sex, "region": region})


def tabulated(place, margins, codes, records=RECORDS, **options):
    return place.tabulate(pa.table(records), margins, roles={**ROLES, "codes": codes}, **options)


def values(table, **cell):
    k = table.design.position(cell)
    return int(table.z[k]), float(table.weights[k]), int(table.cell_keys[k])


def test_dropped_records_leave_counts_weights_and_keys(place):
    table = tabulated(place, "sex*region", lists(DROP, DROP))
    assert values(table) == (3, 7.0, 7)
    assert values(table, sex="f") == (2, 5.0, 5)
    assert values(table, region="N") == (2, 3.0, 3)


def test_dropped_records_are_dropped_from_every_table(place):
    codes = lists(DROP, DROP)
    crossed = tabulated(place, "sex*region", codes)
    alone = tabulated(place, "sex", codes)
    assert [values(alone, sex=s) for s in "mf"] == [values(crossed, sex=s) for s in "mf"]


def test_dropped_records_are_dropped_from_margins_read_one_by_one(place, monkeypatch):
    codes = lists(DROP, DROP)
    whole = tabulated(place, "sex + region", codes)
    for module in (plan, tabulate):
        monkeypatch.setattr(module, "HELD", 0)
    monkeypatch.setattr(plan, "_AFFORDABLE", 0)
    parts = tabulated(place, "sex + region", codes)
    assert parts.inner is None
    assert parts.to_arrow().equals(whole.to_arrow())


def test_a_code_takes_in_other_records(place):
    codes = lists(Outside("m", "f"), Outside("S", "drop"))
    table = tabulated(place, "sex*region", codes)
    assert values(table) == (6, 63.0, 63)
    assert values(table, sex="m") == (3, 42.0, 42)
    assert values(table, sex="f", region="N1") == (2, 17.0, 17)
    assert values(table, region="S") == (3, 44.0, 44)


@pytest.mark.parametrize(
    ("records", "words"),
    [({"sex": ["f", "HIV"]}, "'HIV'"), ({"sex": ["f", None]}, "without a value")],
)
def test_refusals_name_the_code_on_the_confidential_side_alone(place, records, words):
    frame = {**records, "region": ["S", "S"], "w": [1.0, 1.0], "k": [1, 2]}
    with pytest.raises(CodeError, match=words) as caught:
        tabulated(place, "sex", lists(), frame)
    for word in ("HIV", "sex", "value"):
        assert word not in caught.value.public()


def test_a_code_that_reads_like_a_word_takes_nobody_in(place):
    codes = CodeLists({"sex": (dc.Hierarchy.flat(["f", "m", "refuse"]),)}, {"sex": REFUSE})
    with pytest.raises(CodeError, match="'x'"):
        tabulated(place, "sex", codes)


def test_the_text_missing_is_a_code_beside_missing_values(place):
    records = {**RECORDS, "sex": ["(missing)", None, "f", "f", "f", "f", "m"]}
    table = tabulated(place, "sex", lists(Outside("m", "f"), DROP), records)
    assert values(table, sex="m")[0] == 1
    assert values(table, sex="f")[0] == 4


def test_which_axes_are_declared(place):
    complete = {**RECORDS, "sex": ["f", "m"] * 3 + ["f"], "region": ["N1"] * 7}

    def declared(records, **roles):
        table = place.tabulate(pa.table(records), "sex*region", roles=roles)
        return [axis.declared for axis in table.design.axes]

    assert declared(complete) == [False, False]
    assert declared(complete, hierarchies={"sex": TREES["sex"]}) == [True, False]
    assert declared(complete, hierarchies=TREES) == [True, True]
    with_null = {**complete, "sex": ["f", "m"] * 3 + [None]}
    assert declared(with_null, hierarchies=TREES) == [False, True]
    assert declared(with_null, codes=lists(DROP, DROP)) == [True, True]
    listed = {"sex": dc.Hierarchy.flat(["f", "m", "(missing)"])}
    assert declared(with_null, hierarchies=listed) == [True, False]


RULES = st.builds(Outside, st.sampled_from(["drop", "m", "f"]), st.sampled_from(["drop", "m", "f"]))
CODES = st.sampled_from(["f", "m", "HIV", "Total", "(missing)", "", None])
MARGINS = st.sampled_from(["sex", "sex*region", "sex + region[1]", "region"])


def public(table):
    """All that a reader could see of a table but its values."""
    arrow = table.to_arrow()
    labels = {axis.name: arrow.column(axis.name).to_pylist() for axis in table.design.axes}
    return design_to_json(table.design), labels, arrow.schema, table.data_set, table.unit


@pytest.mark.slow
@settings(max_examples=40)
@given(RULES, st.lists(CODES, max_size=5), CODES, MARGINS)
def test_one_more_record_changes_no_label_shape_or_metadata(rule, before, added, margins):
    codes = lists(rule, Outside("drop", "S"))

    def table(sexes):
        frame = pa.table(
            {
                "sex": pa.array(sexes, pa.string()),
                "region": pa.array(["N1"] * len(sexes), pa.string()),
                "w": pa.array(np.ones(len(sexes))),
                "k": pa.array(np.arange(len(sexes))),
            }
        )
        return dc.open(frame, codes=codes, **ROLES).tabulate(margins)

    assert public(table(before)) == public(table([*before, added]))


def test_the_property_fails_without_code_lists():
    def table(sexes):
        return dc.open({"sex": sexes}).tabulate("sex")

    before, after = table(["f", "m"]), table(["f", "m", "HIV"])
    assert design_to_json(before.design) != design_to_json(after.design)
