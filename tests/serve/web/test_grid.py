"""A grid says what the layout says."""

from types import SimpleNamespace

import numpy as np
import pytest

from discreet.release import CubeAxis, CubeEntry
from discreet.serve import View, texts
from discreet.serve.web.grid import HIDDEN, IMPOSSIBLE, UNDEFINED, grid_parts, layout_of
from discreet.tables import CellStatus
from tests.serve.web.cubes import AGE, REGION, SEX, cube_of, hidden_at

NUMBERS = texts("en").numbers


def grid_of(cube, n_rows, n_columns, view=None):
    view = view or View()
    return SimpleNamespace(**grid_parts(layout_of(cube, n_rows, n_columns, view), view, NUMBERS))


def test_a_group_is_led_by_its_own_total():
    grid = grid_of(cube_of(REGION, AGE, SEX), 2, 1)
    assert [len(group.rows) for group in grid.groups] == [3] * 5
    north = grid.groups[1]
    assert north.title is None
    assert [[e.label for e in row.entries] for row in north.rows] == [
        ["North"],
        ["0 to 14"],
        ["15 and older"],
    ]
    assert [row.indent for row in north.rows] == [1, 2, 2]


def test_without_totals_a_group_is_named_by_a_line_of_its_own():
    grid = grid_of(cube_of(REGION, AGE, SEX), 2, 1, View(totals=False))
    assert [group.title.code for group in grid.groups] == ["N", "N1", "N2", "S"]
    assert all(not row.is_lead for group in grid.groups for row in group.rows)


def test_headers_stand_over_all_columns():
    grid = grid_of(cube_of(REGION, SEX, AGE), 1, 2)
    for line in grid.heads:
        assert sum(head.span for head in line) == len(grid.layout.columns) == 9
    assert [head.column for head in grid.heads[1][:4]] == ["T|T", "T|0-14", "T|15+", "F|T"]
    assert {head.column for head in grid.heads[0]} == {""}


def test_only_codes_with_parts_can_be_folded():
    (group,) = grid_of(cube_of(REGION, SEX), 1, 1).groups
    folds = {row.entries[0].code: row.fold for row in group.rows}
    assert [code for code, fold in folds.items() if fold] == ["N"]
    assert folds["N"].is_open
    (group,) = grid_of(cube_of(REGION, SEX), 1, 1, View(folded={"region": ("N",)})).groups
    assert [row.fold.is_open for row in group.rows if row.fold] == [False]


def test_symbols_stand_where_there_is_no_number():
    cube = hidden_at(cube_of(SEX, AGE), 1, 1)
    cube = hidden_at(cube, 1, 2, status=CellStatus.structural_zero)
    cube = hidden_at(cube, 2, 2, status=CellStatus.below_threshold)
    grid = grid_of(cube, 1, 1)
    (group,) = grid.groups
    assert group.rows[1].cells == ("13", HIDDEN, IMPOSSIBLE)
    assert group.rows[2].cells == ("16", "17", HIDDEN)
    assert grid.symbols == {IMPOSSIBLE: "impossible", HIDDEN: "hidden"}


def test_a_share_of_nothing_is_not_a_number():
    cube = cube_of(SEX, AGE, values=np.array([[0, 0, 0], [0, 0, 0], [0, 0, 0]]))
    grid = grid_of(cube.shares(["age"]), 1, 1, View(show="row"))
    assert set(grid.groups[0].rows[0].cells) == {UNDEFINED}


def test_shares_have_one_decimal():
    cube = cube_of(SEX, AGE, values=np.array([[8, 1, 7], [4, 1, 3], [4, 0, 4]]))
    grid = grid_of(cube.shares(["age"]), 1, 1, View(show="row"))
    assert grid.groups[0].rows[0].cells == ("100.0", "12.5", "87.5")


def wide_axis(name, n, label="{}"):
    entries = [CubeEntry("T", "Total", 0, is_sum=True)]
    entries += [CubeEntry(f"{k}", label.format(k), 1, is_sum=False) for k in range(n)]
    return CubeAxis(name, name, tuple(entries))


def test_a_table_that_has_room_is_printed_as_it_is():
    assert grid_of(cube_of(REGION, SEX), 1, 1).blocks == []
    assert grid_of(cube_of(REGION), 1, 0).blocks == []


@pytest.mark.parametrize("n", [9, 30, 100])
@pytest.mark.parametrize("label", ["{}", "Wholesale of {} and other household goods"])
def test_parts_for_paper_have_every_column_once(n, label):
    grid = grid_of(cube_of(SEX, wide_axis("area", n, label), AGE), 1, 2)
    places = [k for block in grid.blocks for k in range(block.first, block.last)]
    assert places == list(range(3 * (n + 1)))
    for block in grid.blocks:
        size = block.last - block.first
        assert [sum(head.span for head in line) for line in block.heads] == [size, size]
        named = [head.column for head in block.heads[-1]]
        assert named == [h.column for h in grid.heads[-1]][block.first : block.last]
        assert size % 3 == 0  # what stands under one header stays together


def test_one_column_that_is_wider_than_paper_is_a_part_of_its_own():
    grid = grid_of(cube_of(SEX, wide_axis("area", 3, "x" * 400 + "{}")), 1, 1)
    assert [(b.first, b.last) for b in grid.blocks][1:] == [(1, 2), (2, 3), (3, 4)]
