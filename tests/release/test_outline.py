"""Codes in reading order, against the hierarchy's own order."""

import pytest

from discreet import Hierarchy
from discreet.design import Axis
from discreet.release.cube import outline
from tests.serve.records import REGION


def test_all_levels_give_the_tree_in_its_own_order():
    axis = Axis.from_hierarchies("region", [REGION])
    entries = outline(axis, axis.levels)
    assert [e.code for e in entries] == list(REGION.codes)
    assert [e.depth for e in entries] == [REGION.depth_of(c) for c in REGION.codes]
    assert [e.is_sum for e in entries] == [bool(REGION.children(c)) for c in REGION.codes]


def test_some_levels_give_the_tree_without_the_others():
    axis = Axis.from_hierarchies("region", [REGION])
    part, _, town = axis.levels
    entries = outline(axis, [part, town])
    codes = [c for c in REGION.codes if REGION.depth_of(c) != 2]
    assert [e.code for e in entries] == codes
    assert {e.code: e.depth for e in entries}["N1-1"] == 2


def test_labels_stand_in_for_codes_where_there_are_any():
    axis = Axis.from_hierarchies("region", [REGION])
    entries = {e.code: e for e in outline(axis, axis.levels)}
    assert (entries["N1"].label, entries["N1"].shows_code) == ("Høytland", True)
    assert (entries["N1-1"].label, entries["N1-1"].shows_code) == ("N1-1", False)
    assert entries["ALL"].is_total
    assert not entries["ALL"].shows_code


def test_groups_that_cross_the_hierarchy_come_last():
    tree = Hierarchy.from_dict({"T": {"A": ["a1", "a2"], "B": ["b1", "b2"]}})
    other = Hierarchy.from_dict({"T2": {"odd": ["a1", "b1"], "even": ["a2", "b2"]}})
    axis = Axis.from_hierarchies("v", [tree, other])
    entries = outline(axis, axis.levels)
    assert [e.code for e in entries] == ["T", "A", "a1", "a2", "B", "b1", "b2", "odd", "even"]
    assert [e.depth for e in entries] == [0, 1, 2, 2, 1, 2, 2, 1, 1]


def test_coarser_groups_of_groups_that_are_not_side_by_side_stay_together():
    tree = Hierarchy.from_dict({"T": {"A": ["a1", "a2"], "B": ["b1"], "C": ["c1"]}})
    other = Hierarchy.from_dict({"T": {"X": ["a1", "a2", "c1"], "Y": ["b1"]}})
    axis = Axis.from_hierarchies("v", [tree, other])
    entries = [(e.code, e.depth) for e in outline(axis, axis.levels)]
    assert entries == [
        ("T", 0),
        *(("X", 1), ("A", 2), ("a1", 3), ("a2", 3), ("C", 2), ("c1", 3)),
        *(("Y", 1), ("B", 2), ("b1", 3)),
    ]


@pytest.mark.parametrize("codes", [["only"], ["b", "a", "c"]])
def test_a_flat_variable_is_its_total_and_its_codes(codes):
    axis = Axis.flat("v", codes)
    assert [e.code for e in outline(axis, axis.levels)] == ["Total", *codes]
