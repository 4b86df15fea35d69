"""Every figure of a sheet is the cube's value at the codes of its row and column."""

import itertools

import numpy as np
import pytest

from discreet.release.cube import parents
from discreet.serve import Refusal, View
from discreet.serve.web.grid import layout_of, leaves
from tests.serve.web.cubes import AGE, REGION, SEX, cube_of, hidden_at

VIEWS = {
    "plain": View(),
    "no totals": View(totals=False),
    "folded": View(folded={"region": ("N",)}),
    "sorted": View(sort="-T"),
    "small first": View(sort="F"),
    "all together": View(totals=False, folded={"region": ("N",)}, sort="-M"),
}


def value_at(cube, combination):
    """Slow and obvious: the value at the code of each variable."""
    codes = [entry.code for entry in combination]
    return cube.values[tuple(a.place(c) for a, c in zip(cube.axes, codes, strict=True))]


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("n_rows", [1, 2])
def test_every_figure_is_the_one_its_headers_name(view, n_rows):
    rng = np.random.default_rng(1)
    axes = (REGION, SEX) if n_rows == 1 else (REGION, AGE, SEX)
    cube = cube_of(*axes, values=rng.integers(0, 500, [len(a) for a in axes]))
    sheet = layout_of(cube, n_rows, 1, view)
    for (r, row), (c, column) in itertools.product(enumerate(sheet.rows), enumerate(sheet.columns)):
        assert sheet.values[r, c] == value_at(cube, row + column)


def codes(sheet):
    return ["|".join(entry.code for entry in row) for row in sheet.rows]


def test_a_folded_code_keeps_its_row_and_hides_its_parts():
    assert codes(layout_of(cube_of(REGION, SEX), 1, 1, View(folded={"region": ("N",)}))) == [
        "ALL",
        "N",
        "S",
    ]


def test_without_totals_only_the_total_is_gone():
    sheet = layout_of(cube_of(REGION, SEX), 1, 1, View(totals=False))
    assert codes(sheet) == ["N", "N1", "N2", "S"]
    assert [c[0].code for c in sheet.columns] == ["F", "M"]


def test_a_variable_that_has_only_its_total_keeps_it():
    cube = cube_of(REGION, SEX).select("sex", ["T"])
    assert layout_of(cube, 1, 1, View(totals=False)).values.shape == (4, 1)


def test_sorting_moves_siblings_and_never_takes_parts_from_their_sum():
    values = np.array([[100, 0, 0], [10, 0, 0], [1, 0, 0], [9, 0, 0], [90, 0, 0]])
    cube = cube_of(REGION, SEX, values=values)
    assert codes(layout_of(cube, 1, 1, View(sort="-T"))) == ["ALL", "S", "N", "N2", "N1"]
    assert codes(layout_of(cube, 1, 1, View(sort="T"))) == ["ALL", "N", "N1", "N2", "S"]


def test_hidden_values_come_last_whichever_way_rows_are_sorted():
    cube = hidden_at(cube_of(SEX, AGE, values=np.array([[9, 9, 9], [5, 5, 5], [1, 1, 1]])), 1, 0)
    for sort in ("T", "-T"):
        assert codes(layout_of(cube, 1, 1, View(sort=sort))) == ["T", "M", "F"]


def test_rows_of_two_variables_are_sorted_within_each_other():
    values = np.zeros((3, 3, 1), dtype=int)
    values[:, 0, 0] = 60, 20, 40  # men are more
    values[1, 1:, 0] = 15, 5
    values[2, 1:, 0] = 10, 30
    cube = cube_of(SEX, AGE, REGION, values=np.repeat(values, 5, axis=2))
    found = codes(layout_of(cube, 2, 1, View(sort="-ALL", totals=False)))
    assert found == ["M|15+", "M|0-14", "F|0-14", "F|15+"]


def test_a_table_without_columns_is_sorted_by_its_only_one():
    sheet = layout_of(cube_of(SEX, values=np.array([9, 1, 8])), 1, 0, View(sort="-value"))
    assert codes(sheet) == ["T", "M", "F"]
    assert sheet.values.shape == (3, 1)


@pytest.mark.parametrize("sort", ["X", "T|F", "value", "-"])
def test_a_sort_by_no_column_is_refused(sort):
    with pytest.raises(Refusal) as error:
        layout_of(cube_of(REGION, SEX), 1, 1, View(sort=sort))
    assert error.value.code == "unknown_column"


def test_a_layer_shows_one_category_and_the_total_by_default():
    cube = cube_of(SEX, AGE, REGION)
    whole = layout_of(cube, 1, 1, View())
    north = layout_of(cube, 1, 1, View(layer={"region": "N"}))
    assert np.array_equal(whole.values, cube.values[:, :, 0])
    assert np.array_equal(north.values, cube.values[:, :, 1])


def test_parts_stand_under_their_sum_and_nothing_stands_under_the_total():
    assert parents(REGION.entries) == [None, None, 1, 1, None]
    assert leaves(REGION.entries) == [False, False, True, True, True]
    assert leaves(REGION.entries[:1]) == [True]
