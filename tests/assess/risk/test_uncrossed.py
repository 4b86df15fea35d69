"""Tables published side by side: against sets of possible categories, written out."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.assessment import NotApplicableError
from discreet.assessment.risk.disclosure import Exact
from discreet.assessment.risk.uncrossed import IntersectionDisclosure, TableDisclosure
from discreet.errors import UnknownNameError
from tests.assess.helpers import TEST

MARGINS = [("s", "a"), ("s", "b"), ("a", "b"), ("a",)]


@st.composite
def grids(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    margins = draw(st.lists(st.sampled_from(MARGINS), min_size=2, max_size=4, unique=True))
    margins = [("s", "a"), ("s", "b"), *(m for m in margins if m not in MARGINS[:2])]
    design = dc.Design.product({"s": 3, "a": 3, "b": 2}, margins)
    table = dc.Table.from_inner(design, rng.choice([0, 0, 0, 1, 4], design.n_inner))
    z = np.maximum(table.z + rng.integers(-1, 2, design.n_published), 0)
    return table, dc.Release(design, z, TEST)


def lookup(design, z):
    return {frozenset(design.cell(k).items()): z[k] for k in range(design.n_published)}


def possible(design, z, known):
    """Categories of s that no published cell rules out for people with the known codes."""
    cells = lookup(design, z)
    found = []
    for s in "123":
        person = {**known, "s": s}
        holding = [v for cell, v in cells.items() if cell <= set(person.items())]
        if all(v > 0 for v in holding):
            found.append(s)
    return found


def counted(true, shown):
    a = sum(len(t) == 1 for t in true)
    b = sum(len(r) == 1 for r in shown)
    c = sum(len(t) == 1 and t == r for t, r in zip(true, shown, strict=True))
    return Exact(a, b, c)


@settings(max_examples=80)
@given(grids())
def test_intersections_against_sets(case):
    table, release = case
    design, y = table.design, table.y.reshape(3, 3, 2)
    true, shown = [], []
    for a, b in itertools.product("123", "12"):
        if y[:, int(a) - 1, int(b) - 1].sum():
            true.append(possible(design, table.z, {"a": a, "b": b}))
            shown.append(possible(design, release.z, {"a": a, "b": b}))
    expected = counted(true, shown)
    score = IntersectionDisclosure(sensitive="s")(table, release)
    row = score.breakdown.to_pylist()[0]
    assert (row["a"], row["b"], row["c"]) == expected
    assert score.value == pytest.approx(expected.f_score())


@settings(max_examples=80)
@given(grids())
def test_single_tables_against_sets(case):
    table, release = case
    y = table.y.reshape(3, 3, 2)
    counts = {}
    for name, axis, codes in (("a", 2, "123"), ("b", 1, "12")):
        true, shown = [], []
        for k, code in enumerate(codes):
            if y.sum(axis=axis)[:, k].sum():
                for found, z in ((true, table.z), (shown, release.z)):
                    cells = lookup(table.design, z)
                    found.append(
                        [s for s in "123" if cells[frozenset({("s", s), (name, code)})] > 0]
                    )
        counts[f"s×{name}"] = counted(true, shown)
    rows = TableDisclosure(sensitive="s")(table, release).breakdown.to_pylist()
    assert {r["table"]: (r["a"], r["b"], r["c"]) for r in rows} == counts


def test_what_no_table_says_alone_they_may_say_together():
    design = dc.Design.product({"party": list("ABC"), "age": 2, "sex": 2}, "party*age + party*sex")
    y = np.array([[[0, 0], [0, 2]], [[0, 2], [0, 0]], [[3, 0], [0, 0]]])
    y[2, 0, 1] = 1  # age 1 has parties B, C; sex 1 only C
    y[0, 1, 0] = 2  # … and now A too: only both tables together leave C
    table = dc.Table.from_inner(design, y.ravel())
    release = dc.Release(design, table.z, TEST)
    rows = TableDisclosure(sensitive="party")(table, release).breakdown.to_pylist()
    assert {r["table"]: r["a"] for r in rows} == {"party×age": 1, "party×sex": 0}
    together = IntersectionDisclosure(sensitive="party")(table, release)
    assert together.breakdown.to_pydict()["a"] == [3]  # age 2 (twice), and age 1 × sex 1
    assert together.value == 1


def test_hiding_the_zeros_hides_the_disclosure():
    design = dc.Design.product({"s": 2, "grid": 3}, "s*grid")
    table = dc.Table.from_inner(design, np.array([3, 0, 2, 0, 4, 2]))
    noisy = dc.Release(design, table.z + 1, TEST)
    assert TableDisclosure(sensitive="s")(table, noisy).value == 0
    withheld = dc.Release(design, np.where(table.z == 0, np.nan, table.z), TEST)
    assert TableDisclosure(sensitive="s")(table, withheld).value == 0


def test_tables_with_unknown_variables_can_be_left_out():
    design = dc.Design.product({"s": 2, "a": 2, "b": 2}, [("s", "a"), ("s", "b"), ("s", "a", "b")])
    table = dc.Table.from_inner(design, np.arange(8))
    release = dc.Release(design, table.z, TEST)
    rows = TableDisclosure(sensitive="s", quasi=["a"])(table, release).breakdown
    assert rows["table"].to_pylist() == ["s×a"]
    with pytest.raises(UnknownNameError, match="'s'"):
        TableDisclosure(sensitive="x")(table, release)
    with pytest.raises(NotApplicableError, match="crosses"):
        TableDisclosure(sensitive="s", quasi=[])(table, release)


def test_a_table_whose_inner_cells_were_not_read():
    frame = {"s": ["u", "v", "Total"], "n": [3, 0, 3]}
    table = dc.Table.from_frame(frame, "s", count="n")
    bare = dc.Table(table.design, table.published)
    release = dc.Release(table.design, table.z, TEST)
    assert IntersectionDisclosure(sensitive="s")(bare, release).value == 1
