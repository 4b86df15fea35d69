"""Whatever a visitor does to a table, the choices that still have a meaning are kept."""

import pytest

from discreet.serve import Query, moves
from tests.serve.sites import once


@pytest.fixture(scope="module")
def dataset():
    return once()


START = Query.parse("rows=region&columns=sex&pick.region=N&where.age=65%2B&sort=-F&chart=bars")


def find(query, dataset, name):
    return next(one for one in moves.placed(query, dataset.variables) if one.name == name)


def variable(dataset, name):
    return next(v for v in dataset.variables if v.name == name)


def detail(dataset, name, label):
    return next(d for d in variable(dataset, name).details if d.name == label)


@pytest.mark.parametrize("place", moves.PLACES)
def test_what_is_added_can_be_removed(dataset, place):
    age = variable(dataset, "age")
    start = START.changed(where={}, sort="")
    more = moves.add(start, place, age, age.smallest)
    assert find(more, dataset, "age").place == place
    assert moves.removed(more, find(more, dataset, "age")) == start


def test_rows_and_columns_swapped_twice_are_as_they_were(dataset):
    start = START.changed(sort="", show="row")
    assert moves.swap_sides(start).view.show == "column"
    assert moves.swap_sides(moves.swap_sides(start)) == start


def test_a_sort_by_a_column_that_is_gone_is_dropped(dataset):
    assert moves.move(START, find(START, dataset, "sex"), "rows").view.sort == ""
    assert moves.move(START, find(START, dataset, "region"), "layers").view.sort == "-F"


def test_moving_keeps_what_was_picked_and_who_is_counted(dataset):
    moved = moves.move(START, find(START, dataset, "region"), "columns")
    assert moved.columns == ("sex", "region")
    assert (moved.picked, moved.where) == (START.picked, START.where)
    assert moved.view.chart == "bars"


def test_removing_forgets_the_variable_alone(dataset):
    left = moves.removed(START, find(START, dataset, "region"))
    assert left.picked == {}
    assert left.where == START.where


def test_shares_of_rows_need_columns(dataset):
    query = Query.parse("rows=region&columns=sex&show=row")
    assert query.shows == ["count", "row", "column", "total"]
    alone = moves.removed(query, find(query, dataset, "sex"))
    assert alone.shows == ["count", "column", "total"]
    assert alone.view.show == "count"


def test_a_layer_is_forgotten_when_its_variable_leaves_the_layers(dataset):
    query = Query.parse("rows=region&layers=sex&layer.sex=F")
    assert moves.move(query, find(query, dataset, "sex"), "rows").view.layer == {}


def test_another_level_keeps_the_codes_that_it_has(dataset):
    query = Query.parse("rows=region&pick.region=N&pick.region=N1-1&fold.region=S")
    coarse = detail(dataset, "region", "region[part]")
    changed = moves.at_level(query, find(query, dataset, "region"), coarse)
    assert changed.rows == ("region[part]",)
    assert changed.picked == {"region": ("N",)}
    assert changed.view.folded == {"region": ("S",)}


def test_raising_exchanges_neighbours(dataset):
    query = Query.parse("rows=region&rows=sex&rows=age")
    assert moves.move_up(query, find(query, dataset, "age")).rows == ("region", "age", "sex")


def test_columns_are_sorted_down_then_up_then_not_at_all():
    query = Query.parse("rows=region&columns=sex")
    seen = []
    for _ in range(3):
        query = moves.next_sort(query, "F")
        seen.append(query.view.sort)
    assert seen == ["-F", "F", ""]
    assert moves.next_sort(query.changed(sort="M"), "F").view.sort == "-F"


def test_folding_twice_is_unfolding():
    query = Query.parse("rows=region")
    folded = moves.toggle_fold(query, "region", "N")
    assert folded.view.folded == {"region": ("N",)}
    assert moves.toggle_fold(folded, "region", "N") == query


def test_groups_come_and_go():
    query = Query.parse("rows=age&pick.age=65%2B")
    grouped = moves.with_group(query, "age", "Not old", ["15-64", "0-14"])
    assert grouped.groups == {"age": {"Not old": ("0-14", "15-64")}}
    assert grouped.picked == {}
    assert moves.without_group(grouped, "age", "Not old") == query.changed(picked={})


def test_names_that_do_not_exist_are_passed_over(dataset):
    query = Query.parse("rows=nothing&rows=region&columns=sex[nowhere]")
    assert [one.name for one in moves.placed(query, dataset.variables)] == ["region"]
