"""A data set of several periods: no figure anywhere adds them up."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest

from discreet.errors import ParameterError
from discreet.release import writers
from discreet.serve import Dataset, Policy, Query, Refusal, make_app
from tests.serve.client import Client
from tests.serve.sites import live, once, small_site

PERIODS = ("0-14", "15-64", "65+")


def in_periods(made=once, **policy):
    """The small data set, with ages in the place of years."""
    return replace(made(Policy(**policy)), time="age")


@pytest.fixture(scope="module")
def client():
    return Client(make_app(small_site(released={"time": "age"})))


def pooled_in(dataset):
    """Tables, by all ways to lay three variables out, that hold a sum over periods."""
    found = []
    for sides in itertools.product(("rows", "columns", "layers", ""), repeat=2):
        asked = [f"{side}={name}" for side, name in zip(sides, ("age", "sex"), strict=True) if side]
        if not asked:
            continue
        cube = dataset.answer(Query.parse("&".join(asked))).cube
        shown = "age" in cube.names and cube.axis("age").codes != PERIODS
        of_last = dataset.answer(Query.parse("&".join([*asked, "where.age=65%2B"]))).cube
        if shown or ("age" not in cube.names and not np.array_equal(cube.values, of_last.values)):
            found.append(asked)
    return found


@pytest.mark.parametrize("made", [once, live])
def test_no_table_adds_periods_up(made):
    assert pooled_in(in_periods(made)) == []


def test_a_sum_over_periods_would_be_found(monkeypatch):
    monkeypatch.setattr(Dataset, "_by_period", lambda self, cube: cube)
    assert pooled_in(in_periods())


def test_a_table_without_periods_is_about_the_last(client):
    before = once(Policy()).answer(Query.parse("rows=age&columns=sex")).cube
    cube = in_periods().answer(Query.parse("rows=sex")).cube
    assert np.array_equal(cube.values, before.at("age", "65+").values)
    led = client.get("/d/once/table?rows=sex").headers["location"]
    assert led == "table?rows=sex&where.age=65%2B"
    assert "65+" in client.get(f"/d/once/{led}").text


def test_files_hold_periods_alone(client):
    for writer in writers():
        answer = client.get(f"/d/once/table{writer.ending}?rows=age&columns=sex&labels=codes")
        assert answer.status_code == 200
    rows = client.get("/d/once/table.csv?rows=age&columns=sex").text.splitlines()[1:]
    assert {row.split(",")[0].strip('"') for row in rows} == {*PERIODS}
    px = client.get("/d/once/table.px?rows=age&columns=sex").text
    assert "TIMEVAL" not in px, "age groups are periods of no scale that PX has"


@pytest.mark.parametrize(
    "asked", ["rows=sex&where.age=0-14&where.age=15-64", "rows=age&group.age=Young|0-14|15-64"]
)
def test_periods_are_not_added_up_on_request(asked, client):
    with pytest.raises(Refusal) as caught:
        in_periods().answer(Query.parse(asked))
    assert caught.value.code == "pooled_periods"
    ((_, offered),) = caught.value.offers
    assert in_periods().answer(offered)
    assert client.get(f"/d/once/table?{asked}").status_code == 400


def test_several_periods_are_shown_beside_each_other():
    cube = in_periods().answer(Query.parse("rows=age&where.age=0-14&where.age=65%2B")).cube
    assert cube.axis("age").codes == ("0-14", "65+")


def test_shares_are_those_of_a_period(client):
    dataset = in_periods()
    shares = dataset.answer(Query.parse("rows=age&columns=sex&show=total")).shown
    assert np.allclose(shares.at("sex", shares.axis("sex").codes[0]).values, 100)
    with pytest.raises(Refusal, match="percentages"):
        dataset.answer(Query.parse("rows=sex&columns=age&show=row"))
    led = client.get("/d/once/table?rows=sex&columns=age&show=row").headers["location"]
    assert led == "table?rows=sex&columns=age"


def test_every_period_is_judged_for_itself():
    sizes = in_periods().answer(Query.parse("rows=age")).cube.values
    limit = float(sizes.min()) + 1
    assert limit < sizes.sum()
    with pytest.raises(Refusal, match="too few people"):
        in_periods(min_population=limit).answer(Query.parse("rows=age"))


def test_a_period_takes_no_variables_place():
    dataset = in_periods(max_variables=2)
    assert dataset.answer(Query.parse("rows=age&rows=sex&columns=region"))
    with pytest.raises(Refusal):
        once(Policy(max_variables=2)).answer(Query.parse("rows=age&rows=sex&columns=region"))


def test_layers_begin_with_the_last_period(client):
    page = client.get("/d/once/table?rows=sex&layers=age").text
    of_last = in_periods().answer(Query.parse("rows=sex&where.age=65%2B")).cube
    assert f"{int(of_last.values[0]):,}" in page
    assert ">65+</option>" in page


def test_pages_count_periods_without_a_total(client):
    for place in ("table?rows=age&columns=sex", "about"):
        page = client.get(f"/d/once/{place}").text
        assert "3 categories</span>" in page
        assert "2 categories and the total</span>" in page


def test_lines_are_drawn_along_time(client):
    sides = ("rows=age&columns=sex", "rows=sex&columns=age")
    drawn = [client.get(f"/d/once/chart.svg?{s}&chart=lines").text for s in sides]
    paths, crossed = (re.findall(r"<path[^>]*>", svg) for svg in drawn)
    assert paths
    assert paths == crossed
    bars = [client.get(f"/d/once/chart.svg?{s}&chart=bars").text for s in sides]
    assert re.findall(r"<rect[^>]*>", bars[0]) != re.findall(r"<rect[^>]*>", bars[1])


def test_levels_that_add_periods_up_are_not_offered():
    dataset = replace(once(Policy()), time="region")
    assert [d.has_total for v in dataset.variables if v.is_time for d in v.details] == [False]
    variable = next(v for v in once(Policy()).variables if v.name == "region")
    coarse = replace(variable, details=tuple(d for d in variable.details if "[" in d.name)[:1])
    with pytest.raises(ParameterError, match="add periods up"):
        coarse.as_periods()


def test_programs_select_a_period(client):
    root = "/api/pxweb/v2/tables/once"
    told = client.get(f"{root}/metadata").json()["dimension"]["age"]
    assert told["extension"]["elimination"] is False
    assert tuple(told["category"]["index"]) == PERIODS
    assert client.get(f"{root}/data").status_code == 200
    assert client.get(f"{root}/data?valueCodes[sex]=*").status_code == 400
    found = client.get(f"{root}/data?valueCodes[sex]=*&valueCodes[age]=top(1)").json()
    assert tuple(found["dimension"]["age"]["category"]["index"]) == ("65+",)


def test_periods_of_which_a_filter_leaves_none_are_refused_in_words():
    with pytest.raises(Refusal, match="No period of age is left") as refused:
        in_periods().answer(Query.parse("rows=age&pick.age=0-14&where.age=65%2B"))
    assert refused.value.code == "no_period"


def test_a_group_outside_of_the_population_is_refused_in_words():
    with pytest.raises(Refusal, match="outside of the population") as refused:
        once().answer(Query.parse("rows=age&group.age=Old|65%2B&where.age=0-14"))
    assert refused.value.code == "outside_population"
