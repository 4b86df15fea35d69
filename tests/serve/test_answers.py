"""Every figure of an answer is a sum of protected cells, in either mode."""

import itertools

import numpy as np
import pytest

from discreet.serve import Policy, Query, Refusal
from discreet.serve.data.source import crossing
from discreet.serve.web.wording import populations_of
from discreet.tables import CellStatus
from tests.serve.records import RECIPE, small_country
from tests.serve.sites import ZEROS, inner_table, live, once

ADDRESSES = [
    "rows=region",
    "rows=region&columns=sex",
    "columns=sex&rows=region[part]",
    "rows=region[leaves]&columns=age&layers=sex",
    "rows=sex&where.age=0-14&where.age=65%2B",
    "rows=region&columns=sex&where.region=N",
    "rows=region&where.region=N1&where.region=S",
    "rows=age&columns=sex&group.age=Adults|15-64|65%2B&group.age=Children|0-14",
    "rows=region[county]&pick.region=N1&pick.region=S1&columns=age",
    "rows=region&where.sex=F&pick.region=N",
]


def leaves_of(axis, code):
    """Slow and obvious: the leaves under a code."""
    if code in axis.leaf_position:
        return {code}
    return {axis.leaves[k] for k in axis.node_leaves[code]}


def reference(answer, codes):
    """The sum over inner cells of whatever the codes and filters name."""
    table = inner_table()
    wanted = {axis.name: set(axis.leaves) for axis in table.axes}
    for name, chosen in answer.query.where.items():
        wanted[name] &= set().union(*(leaves_of(table.axis(name), c) for c in chosen))
    for name, code in codes.items():
        groups = answer.query.groups.get(name, {})
        if code != table.axis(name).total:
            parts = groups.get(code, [code])
            wanted[name] &= set().union(*(leaves_of(table.axis(name), c) for c in parts))
    found = 0
    for k, value in enumerate(table.values):
        cell = [axis.leaves[c[k]] for axis, c in zip(table.axes, table.codes, strict=True)]
        inside = all(leaf in wanted[a.name] for leaf, a in zip(cell, table.axes, strict=True))
        found += int(value) if inside else 0
    return found


@pytest.mark.parametrize("address", ADDRESSES)
def test_release_once_figures_are_sums_of_the_inner_table(site, address):
    answer = site.dataset("once").answer(Query.parse(address))
    cube = answer.cube
    for place in itertools.product(*(range(len(axis)) for axis in cube.axes)):
        codes = {a.name: a.entries[k].code for a, k in zip(cube.axes, place, strict=True)}
        assert cube.values[place] == reference(answer, codes), codes


@pytest.mark.parametrize("address", ADDRESSES[:4])
def test_on_the_fly_figures_are_those_of_the_recipe(site, address):
    dataset = site.dataset("live")
    answer = dataset.answer(Query.parse(address))
    release = RECIPE.of(crossing(answer.question.details)).run(small_country(zeros=ZEROS))
    cube = answer.cube
    for place in itertools.product(*(range(len(axis)) for axis in cube.axes)):
        entries = {a.name: a.entries[k] for a, k in zip(cube.axes, place, strict=True)}
        cell = {name: e.code for name, e in entries.items() if not e.is_total}
        if cube.status[place] == CellStatus.structural_zero:
            continue
        assert cube.values[place] == release.z[release.design.position(cell)]


def test_a_filter_on_the_fly_draws_no_noise_of_its_own(site):
    dataset = site.dataset("live")
    one = dataset.answer(Query.parse("rows=sex&where.age=0-14")).cube
    two = dataset.answer(Query.parse("rows=sex&where.age=15-64")).cube
    both = dataset.answer(Query.parse("rows=sex&where.age=0-14&where.age=15-64")).cube
    group = dataset.answer(Query.parse("rows=sex&columns=age&group.age=Y|0-14|15-64")).cube
    np.testing.assert_array_equal(both.values, one.values + two.values)
    np.testing.assert_array_equal(group.at("age", "Y").values, both.values)


def test_rows_columns_and_layers_come_in_this_order(site):
    answer = site.dataset("once").answer(Query.parse("layers=age&columns=sex&rows=region[part]"))
    assert answer.cube.names == ("region", "sex", "age")
    assert (answer.rows, answer.columns) == (("region",), ("sex",))


def test_a_population_is_named(site):
    answer = site.dataset("once").answer(Query.parse("rows=sex&where.region=N&where.region=S"))
    assert populations_of(answer) == ["Region: North, South"]


def test_impossible_cells_are_marked(site):
    for name in ("once", "live"):
        cube = site.dataset(name).answer(Query.parse("rows=region&columns=age")).cube
        place = cube.axis("region").place("ABROAD"), cube.axis("age").place("65+")
        assert cube.status[place] == CellStatus.structural_zero


@pytest.mark.parametrize(("show", "over"), [("row", 1), ("column", 0), ("total", None)])
def test_shares_are_of_the_released_totals(site, show, over):
    answer = site.dataset("once").answer(Query.parse(f"rows=sex&columns=age&show={show}"))
    values = answer.cube.values
    base = values[:1, :1] if over is None else values.take([0], over)
    np.testing.assert_allclose(answer.shown.values, 100 * values / base)


def test_the_order_of_a_question_does_not_change_the_figures(site):
    dataset = site.dataset("live")
    one = dataset.answer(Query.parse("rows=region[part]&columns=sex")).cube
    turned = dataset.answer(Query.parse("rows=sex&columns=region[part]")).cube
    np.testing.assert_array_equal(one.values, turned.values.T)


REFUSED = [
    ("rows=", "no_variables"),
    ("rows=regoin", "unknown_name"),
    ("rows=region&columns=region[part]", "repeated_variable"),
    ("rows=sex&where.height=1", "unknown_name"),
    ("rows=sex&where.age=16", "unknown_code"),
    ("rows=sex&pick.age=0-14", "unknown_name"),
    ("rows=region[part]&pick.region=N1", "unknown_code"),
    ("rows=age&group.age=Both|0-14|16", "unknown_code"),
    ("rows=region&group.region=Twice|N|N1", "overlapping_codes"),
    ("rows=sex&where.region=N&where.region=N1", "overlapping_codes"),
    ("rows=sex&unit=weight", "unknown_unit"),
    ("rows=region&group.region=all|N", "unreadable_group"),
    ("rows=region&group.region=Whole country|N", "unreadable_group"),
    ("rows=age&group.age=A|0-14&pick.age=0-14", "unknown_code"),
]


@pytest.mark.parametrize(("address", "code"), REFUSED)
def test_what_is_not_on_offer_is_refused_without_a_look_at_figures(address, code):
    dataset = once()
    with pytest.raises(Refusal) as caught:
        dataset.answer(Query.parse(address))
    assert caught.value.code == code
    assert caught.value.allowed
    assert not len(dataset._cubes)


def test_figures_are_kept_for_the_next_visitor():
    dataset = live()
    first = dataset.cube(("age", "sex"), "count")
    assert dataset.cube(("age", "sex"), "count") is first


def test_a_refusal_by_public_sizes_adds_nothing_up():
    """A refusal is cheap: tables that it offers are judged by their sizes, where these decide."""
    dataset = once(Policy(max_cells=20))
    with pytest.raises(Refusal) as caught:
        dataset.answer(Query.parse("rows=region&columns=age&layers=sex"))
    assert caught.value.offers
    assert not len(dataset._cubes)


@pytest.mark.parametrize("name", ["once", "live"])
def test_totals_may_be_named_like_any_code(site, name):
    plain = site.dataset(name).answer(Query.parse("rows=sex")).cube
    for address in ("rows=sex&where.region=ALL", "rows=sex&where.sex=T", "rows=sex&pick.sex=T"):
        assert site.dataset(name).answer(Query.parse(address)).cube.values[0] == plain.values[0]


@pytest.mark.parametrize("address", ["rows=sex&show=row", "columns=sex&show=column"])
def test_shares_that_would_all_be_the_whole_are_refused(address):
    with pytest.raises(Refusal, match="would all be 100") as caught:
        once().answer(Query.parse(address))
    assert caught.value.code == "no_shares"
    ((_, offered),) = caught.value.offers
    assert once().answer(offered).query.view.show == "count"


@pytest.mark.parametrize("rest", ["where.region=N&where.region=N1", "group.sex=Both|F|M|T"])
def test_a_question_with_two_faults_is_offered_nothing_that_has_the_other(rest):
    with pytest.raises(Refusal, match="would all be 100") as caught:
        once().answer(Query.parse(f"rows=sex&show=row&{rest}"))
    assert caught.value.offers == ()


def test_layers_alone_have_no_shares_and_offers_drop_those_that_lost_their_meaning():
    assert Query.parse("layers=sex&show=total").shows == ["count"]
    with pytest.raises(Refusal) as caught:
        once(Policy(max_variables=1)).answer(Query.parse("rows=region&columns=sex&show=row"))
    offered = {query.address for _, query in caught.value.offers}
    assert {"rows=region", "columns=sex&show=row"} <= offered
