"""One order for every table, whatever its variables, levels and margins are called or ordered."""

import numpy as np
import pytest

import discreet as dc
from discreet.design.canonical import canonical_order, margin_codes

TREE = {"N": "All", "N1": "N", "N2": "N", "S": "All", "S1": "S", "S2": "S"}
NAMES = ("land", "part", "town")
SECRET = dc.Secret(b"a secret that is made for tests only")


def table(margins, level_names=NAMES, turned=False):
    towns, sexes = ["N1", "N2", "S1", "S2"], ["f", "m"]
    cells = [(t, s) for t in towns for s in sexes]
    frame = {"town": [t for t, _ in cells], "sex": [s for _, s in cells], "n": range(1, 9)}
    parents = dict(reversed(TREE.items())) if turned else TREE
    tree = dc.Hierarchy("All", parents, {}, level_names)
    return dc.Table.from_counts(frame, "n", margins, hierarchies={"town": tree}).with_secret(SECRET)


def test_margins_keep_the_names_of_levels():
    order = canonical_order(table("part*sex").design)
    assert order.design.terms[-1] == ("sex[sex]", "town[part]")


def test_a_method_may_name_levels_of_the_table():
    given = table("part*sex")
    by_name = given.protect(dc.Safe(controlled="part", proposals=1e4))
    assert by_name.design.terms == given.design.terms


@pytest.mark.parametrize("names", [NAMES, ("a", "b", "c"), ()])
@pytest.mark.parametrize("margins", ["town*sex", "sex*town"])
@pytest.mark.parametrize("turned", [False, True])
def test_names_and_order_do_not_change_a_release(names, margins, turned):
    first = table("town*sex").protect(dc.ControlledRounding(5))
    other = table(margins, names, turned).protect(dc.ControlledRounding(5))
    cells = [{}, {"sex": "f"}, {"town": "S"}, {"town": "N2", "sex": "m"}, {"town": "N", "sex": "f"}]
    for cell in cells:
        here, there = first.design.position(cell), other.design.position(cell)
        assert first.z[here] == other.z[there]


def test_levels_of_two_hierarchies_may_share_a_name():
    first = dc.Hierarchy("All", TREE, {}, NAMES)
    second = dc.Hierarchy(
        "All", {"X": "All", "N1": "X", "S1": "X", "Y": "All", "N2": "Y", "S2": "Y"}, {}, NAMES
    )
    frame = {"town": ["N1", "N2", "S1", "S2"], "n": [1, 2, 3, 4]}
    design = dc.Table.from_counts(frame, "n", "town", hierarchies={"town": [first, second]}).design
    order = canonical_order(design)
    assert sorted(map(str, margin_codes(order.design))) == sorted(
        {str([None if c is None else tuple(sorted(c)) for c in m]) for m in margin_codes(design)}
    )
    assert np.array_equal(np.sort(order.published), np.arange(design.n_published))
