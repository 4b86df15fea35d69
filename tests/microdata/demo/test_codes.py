from __future__ import annotations

import pytest

from discreet import demo
from discreet.demo.geography import flat_codes

LISTS = demo.code_lists()


@pytest.mark.parametrize("variable", LISTS)
def test_one_total_and_every_parent_stands_before_its_children(variable):
    seen: set[str] = set()
    for entry in LISTS[variable].entries:
        assert entry.parent in seen or (entry.parent is None and not seen)
        seen.add(entry.code)
    assert LISTS[variable].entries[0].code == "TOTAL"


@pytest.mark.parametrize("variable", LISTS)
def test_codes_are_unique_so_the_parent_map_is_a_function(variable):
    codes = [entry.code for entry in LISTS[variable].entries]
    assert len(codes) == len(set(codes))
    assert len(LISTS[variable].parents) == len(codes) - 1


def depths(codes):
    found = {}
    for entry in codes.entries:
        found[entry.code] = 1 + found.get(entry.parent, 0)
    return found


@pytest.mark.parametrize("variable", LISTS)
def test_every_code_has_a_label_and_no_level_is_missing(variable):
    codes = LISTS[variable]
    assert all(entry.label.strip() == entry.label != "" for entry in codes.entries)
    depth = depths(codes)
    assert max(depth[leaf] for leaf in codes.leaves) == len(codes.levels)


def test_region_codes_are_nested_by_prefix_in_four_levels():
    region = LISTS["region"]
    for code, parent in region.parents.items():
        assert parent == "TOTAL" or code.startswith(parent)
    depth = list(depths(region).values())
    assert [depth.count(d) for d in (1, 2, 3, 4)] == [1, 8, 60, 401]
    assert len(set(region.labels.values())) == len(region.entries)


def test_sizes_of_the_other_lists():
    sizes = {variable: len(codes.leaves) for variable, codes in LISTS.items()}
    assert sizes["occupation"] == 41
    assert sizes["industry"] == 84
    assert sizes["citizenship"] == 30
    assert sizes["age"] == 20


def test_leaves_under_a_group():
    assert LISTS["age"].leaves_under("Y_LT15") == {"Y00-04", "Y05-09", "Y10-14"}
    assert LISTS["age"].leaves_under("TOTAL") == set(LISTS["age"].leaves)
    assert flat_codes("x", [("a", "A")]).leaves_under("b") == frozenset()


def test_structural_zeros_name_known_leaves_of_two_variables():
    for impossible in demo.structural_zeros():
        assert len(impossible) == 2
        for variable, codes in impossible.items():
            assert codes
            assert codes <= set(LISTS[variable].leaves)
