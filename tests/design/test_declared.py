"""Axes know whether their codes were declared beforehand or found in the records."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from discreet.design import Axis
from discreet.design.formats.tables import frame_categories
from discreet.errors import UnknownNameError
from discreet.tables.from_frames import published_to_table
from discreet.tables.storage import axis_from_json, axis_to_json

SEX = {"sex": ["f", "m"], "region": ["1", "2"], "n": [3, 4]}
TREE = dc.Hierarchy.flat(["1", "2", "3"])


def declared(table):
    return {axis.name: axis.declared for axis in table.design.axes}


def leaves(table, name):
    return next(axis.leaves for axis in table.design.axes if axis.name == name)


def test_axes_a_program_writes_are_declared():
    assert Axis.flat("sex", ["f", "m"]).declared
    assert Axis.from_hierarchies("region", [TREE]).declared
    assert not Axis.flat("sex", ["f", "m"], declared=False).declared
    assert all(axis.declared for axis in dc.Design.product({"sex": ["f", "m"]}, "sex").axes)


@pytest.mark.parametrize("flag", [True, False])
def test_files_keep_whether_codes_are_declared(flag):
    axis = Axis.flat("sex", ["f", "m"], declared=flag)
    assert axis_from_json(axis_to_json(axis)).declared is flag


def test_files_of_older_versions_hold_found_codes():
    spec = axis_to_json(Axis.flat("sex", ["f", "m"]))
    del spec["declared"]
    assert not axis_from_json(spec).declared


def test_codes_in_a_frame_of_counts_are_found_unless_said_otherwise():
    def table(**options):
        return declared(dc.Table.from_counts(SEX, "n", "region*sex", **options))

    assert table() == {"region": False, "sex": False}
    assert table(hierarchies={"region": TREE}) == {"region": True, "sex": False}
    assert table(declared=True) == {"region": True, "sex": True}
    assert table(declared=["sex"]) == {"region": False, "sex": True}
    assert table(declared="sex") == {"region": False, "sex": True}
    with pytest.raises(UnknownNameError, match="'sex'"):
        table(declared=["sexx"])


def test_codes_in_a_frame_of_published_cells_are_found_unless_said_otherwise():
    frame = {"sex": ["f", "m", "Total"], "n": [3, 4, 7]}
    options = {"count": "n", "key": None, "hierarchies": None, "convention": "discreet"}
    assert declared(published_to_table(frame, "sex", **options)) == {"sex": False}
    assert declared(published_to_table(frame, "sex", **options, declared=True)) == {"sex": True}


def test_categories_of_frames_are_kept_in_their_order_and_declared_where_that_is_said():
    kind = pd.CategoricalDtype(["m", "x", "f"])
    frame = pd.DataFrame(SEX).astype({"sex": kind})
    assert declared(dc.Table.from_counts(frame, "n", "sex")) == {"sex": False}
    table = dc.Table.from_counts(frame, "n", "sex", declared=["sex"])
    assert declared(table) == {"sex": True}
    assert leaves(table, "sex") == ("m", "x", "f")
    assert table.z.tolist() == [4, 0, 3, 7]


def test_missing_values_in_a_categorical_of_counts_leave_the_codes_found():
    frame = pd.DataFrame(SEX).assign(sex=pd.Categorical(["f", None], ["m", "f"]))
    assert declared(dc.Table.from_counts(frame, "n", "sex")) == {"sex": False}


FRAMES = {
    "pandas": (pd.DataFrame({"a": pd.Categorical(["x"], ["y", "x"])}), ["y", "x"]),
    "pandas, ordered": (pd.DataFrame({"a": pd.Categorical([1], [3, 1], ordered=True)}), ["3", "1"]),
    "pandas, empty": (pd.DataFrame({"a": pd.Categorical([], ["y", "x"])}), ["y", "x"]),
    "polars enum": (pl.DataFrame({"a": ["x"]}, {"a": pl.Enum(["y", "x"])}), ["y", "x"]),
    "lazy polars enum": (pl.LazyFrame({"a": ["x"]}, {"a": pl.Enum(["y", "x"])}), ["y", "x"]),
    "polars categorical": (pl.DataFrame({"a": ["x"]}, {"a": pl.Categorical()}), None),
    "arrow dictionary": (pa.table({"a": pa.array(["x"]).dictionary_encode()}), None),
    "text": (pd.DataFrame({"a": ["x"]}), None),
    "blank category": (pd.DataFrame({"a": pd.Categorical(["x"], ["x", " "])}), None),
    "no categories": (pd.DataFrame({"a": pd.Categorical([None], [])}), None),
}


@pytest.mark.parametrize(("frame", "codes"), FRAMES.values(), ids=FRAMES)
def test_which_frames_have_categories(frame, codes):
    assert frame_categories(frame) == ({} if codes is None else {"a": codes})
