"""Subtracting published tables from each other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.assessment import NotApplicableError
from discreet.assessment.risk.uncrossed import Differencing
from discreet.design import Axis, ProductDesign
from tests.assess.helpers import TEST
from tests.references import design_matrix

TERMS = dc.margins(["a", "b", "c"], order=3)


def slow(table, z, small):
    """All pairs of cells that differ in one variable, and the sums of all cells inside one."""
    design = table.design
    X = design_matrix(design).astype(bool)
    cells = [design.cell(k) for k in range(design.n_published)]
    tried = []
    for outer in range(len(cells)):
        inside = {}
        for inner in range(len(cells)):
            more = cells[inner].keys() - cells[outer].keys()
            one = len(more) == 1 and cells[inner].keys() - more == cells[outer].keys()
            if one and (X[:, inner] <= X[:, outer]).all():
                inside.setdefault(min(more), []).append(inner)
        for group in inside.values():
            tried += [[outer, [k]] for k in group] + ([[outer, group]] if len(group) > 1 else [])
    hits = []
    for outer, group in tried:
        d, shown = (v[outer] - v[group].sum() for v in (table.z, z))
        if 1 <= d <= small:
            hits.append(abs(shown - d) < 0.5)
    return np.mean(hits) if hits else None


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(TERMS), min_size=1, max_size=5, unique=True),
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
)
def test_differences_of_flat_tables_against_loops(margins, seed, small):
    names = sorted({v for term in margins for v in term}) or ["a"]
    design = dc.Design.product({name: 2 + k for k, name in enumerate(names)}, margins)
    rng = np.random.default_rng(seed)
    table = dc.Table.from_inner(design, rng.choice([0, 0, 1, 2, 9], design.n_inner))
    z = table.z + rng.integers(-1, 2, design.n_published)
    expected = slow(table, z, small)
    measure = Differencing(small=small)
    release = dc.Release(design, z, TEST)
    if expected is None:
        with pytest.raises(NotApplicableError, match="differ"):
            measure(table, release)
    else:
        assert measure(table, release).value == pytest.approx(expected)


def two_geographies(counts):
    """Squares of a grid in towns and in school districts, which do not nest."""
    squares = [f"s{k}" for k in range(6)]
    trees = []
    for level, cut in (("town", 3), ("school", 2)):
        names = [f"{level} {1 if k < cut else 2}" for k in range(6)]
        parents = dict(zip(squares, names, strict=True)) | dict.fromkeys(names, "All")
        trees.append(dc.Hierarchy("All", parents, level_names=("all", level, "square")))
    axis = Axis.from_hierarchies("place", trees)
    return dc.Table.from_inner(
        ProductDesign([axis], [("place[town]",), ("place[school]",)]), np.array(counts)
    )


def test_two_geographies_that_do_not_nest_reveal_what_lies_between():
    table = two_geographies([30, 20, 1, 40, 50, 60])
    names = [table.design.cell(k)["place"] for k in range(table.design.n_published)]
    place = {name: k for k, name in enumerate(names)}
    rows = Differencing()(table, dc.Release(table.design, table.z, TEST))
    assert rows.value == 1.0  # town 1 without school 1 is the third square, one person
    z = table.z.copy()
    z[place["town 1"]] += 1
    hidden = Differencing()(table, dc.Release(table.design, z, TEST))
    assert hidden.value == 0.5  # school 2 without town 2 is the same person
    parts = rows.breakdown.to_pylist()
    assert sum(p["small"] for p in parts) == 2


def test_withheld_cells_reveal_nothing():
    table = dc.Table.from_inner(dc.Design.product({"a": 3}, "a"), np.array([40, 7, 1]))
    release = dc.Release(table.design, np.array([np.nan, 7, 1, 48]), TEST)
    assert Differencing(small=8)(table, release).value == 0.0


def test_a_design_made_from_a_matrix_has_no_tables():
    table = dc.Table.from_inner(dc.Design.from_matrix(np.eye(2)), np.array([4, 5]))
    with pytest.raises(NotApplicableError, match="no tables"):
        Differencing()(table, dc.Release(table.design, table.z, TEST))
