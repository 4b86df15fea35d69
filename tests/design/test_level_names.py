"""Names of levels survive tables of children and parents."""

import pyarrow.csv
import pytest

import discreet as dc
from discreet.design.axis import Axis
from discreet.errors import CodeError

TREE = dc.Hierarchy(
    "All",
    {"N": "All", "N1": "N", "N2": "N", "S": "All"},
    {"N": "North"},
    ("country", "part", "place"),
)


def test_levels_are_written_and_read(tmp_path):
    path = tmp_path / "region.csv"
    pyarrow.csv.write_csv(TREE.to_parent_child().to_arrow(), path)
    assert dc.Hierarchy.read(path) == TREE
    codes = tmp_path / "codes.toml"
    codes.write_text('[region]\nhierarchy = "region.csv"\n')
    people = dc.open({"region": ["N1", "S"]}, codes=codes)
    assert people.tabulate("part").design.n_published == 3


def test_frames_name_their_column_of_levels():
    frame = TREE.to_parent_child().rename_columns(["c", "p", "l", "v"])
    assert dc.Hierarchy.from_parent_child(frame, "c", "p", "l", level="v") == TREE


def test_the_level_of_a_root_without_a_row_is_called_by_its_code():
    frame = {"child": ["a", "b"], "parent": ["T", "T"], "level": ["x", "x"]}
    assert dc.Hierarchy.from_parent_child(frame, level="level").level_names == ("T", "x")


def test_two_names_for_one_depth_are_refused():
    frame = {"child": ["a", "b"], "parent": ["T", "T"], "level": ["x", "y"]}
    with pytest.raises(CodeError, match="each depth has one name"):
        dc.Hierarchy.from_parent_child(frame, level="level")


def test_levels_that_are_named_in_part_are_not_named():
    frame = {"child": ["a", "b"], "parent": ["T", "a"], "level": ["x", None]}
    assert dc.Hierarchy.from_parent_child(frame, level="level").level_names == ()


def test_a_root_that_leaves_categories_out_is_not_called_like_the_total():
    """Its cells would be told, and asked for, as those of everybody."""
    whole = dc.Hierarchy("all", {"a": "all", "b": "all", "c": "all"})
    part = dc.Hierarchy("all", {"a": "all", "b": "all"})
    with pytest.raises(CodeError, match="'all' of variable 'x' is its total"):
        Axis.from_hierarchies("x", [whole, part])
    named = dc.Hierarchy("some", {"a": "some", "b": "some"})
    assert Axis.from_hierarchies("x", [whole, named]).levels[0].codes == ("some",)
