"""Every question has a price before it runs: from public figures alone, and with consequences."""

import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet import Secret
from discreet.cli.demo import SITE, prepare_census
from discreet.records import QueryEngine
from discreet.records.query_engine import CondensedCells
from discreet.serve import (
    Dataset,
    LiveSource,
    Policy,
    Query,
    Question,
    Refusal,
    Site,
    SiteConfig,
    make_app,
    read_site,
    start_site,
)
from discreet.serve.data.price import Price, price_of
from tests.serve.client import Client
from tests.serve.records import RECIPE, small_country
from tests.serve.sites import ABOUT, live, once

LARGE = "rows=region&columns=age&columns=sex"
ADDRESSES = ("rows=sex", LARGE, "rows=region[part]&columns=sex", "rows=age&where.sex=F")


def question(dataset, address):
    return Question.checked(dataset.source, Query.parse(address))


def prices(dataset):
    return [dataset.price(question(dataset, address)) for address in ADDRESSES]


# What prices follow from


def two_truths(policy=None):
    """The same code lists over records that differ in all their counts."""
    sources = [LiveSource(RECIPE, small_country(seed=seed)) for seed in (1, 2)]
    return [Dataset("live", ABOUT, source, policy or Policy()) for source in sources]


def test_two_truths_have_one_price_one_refusal_and_one_page():
    one, other = two_truths()
    assert prices(one) == prices(other)
    middle = sorted(p.seconds for p in prices(one))[2]
    policy = Policy(max_seconds=middle * (1 - 1e-9))
    told = []
    for dataset in two_truths(policy):
        client = Client(make_app(Site(SiteConfig(), {"live": dataset})))
        answers = [client.get(f"/d/live/table?{address}") for address in ADDRESSES]
        refused = [a.text if a.status_code != 200 else "" for a in answers]
        told.append(([a.status_code for a in answers], refused))
    assert told[0] == told[1]
    assert {*told[0][0]} == {200, 400}


def test_a_price_that_counts_records_is_caught(monkeypatch):
    def peeking(self, asked):
        total = self.cube(("sex",), "count")
        return Price(1, 1, 1, float(total.values[0]))

    monkeypatch.setattr(LiveSource, "price", peeking)
    one, other = two_truths(Policy(max_seconds=1e9))
    assert prices(one) != prices(other)


def test_declared_records_decide_where_cells_do_not_fit(monkeypatch):
    from discreet.serve.data import live as door

    monkeypatch.setattr(door, "MOST_CELLS", 0)
    dear = LiveSource(RECIPE, small_country(), declared_records=10**9)
    cheap = LiveSource(RECIPE, small_country(), declared_records=1_000)
    asked = question(live(), "rows=sex").in_public_order
    assert dear.price(asked).seconds > 50 > 0.1 > cheap.price(asked).seconds


def test_prices_grow_with_cells_in_both_modes():
    for dataset in (live(), once()):
        small, large, *_ = prices(dataset)
        assert small.seconds < large.seconds
        assert (small.cells, large.cells) == (3, 12 * 4 * 3)
        assert small.bytes < large.bytes


def test_a_group_by_more_variables_takes_longer():
    """Records are grouped by each variable in turn, however few cells come of it."""
    (one,) = question(live(), "rows=sex").in_public_order
    alone, beside = price_of([one], "records", 10**7), price_of([one, one], "records", 10**7)
    assert (beside.seconds - alone.seconds) / alone.seconds > 0.9


# What follows from them


@pytest.mark.parametrize("dataset", [live, once])
def test_a_table_beyond_the_limit_is_refused_with_smaller_ones_that_work(dataset):
    large = dataset()
    limit = large.price(question(large, LARGE)).seconds * (1 - 1e-9)
    site = Site(SiteConfig(), {large.name: replace(large, policy=Policy(max_seconds=limit))})
    client = Client(make_app(site))
    page = client.get(f"/d/{large.name}/table?{LARGE}")
    assert (page.status_code, "seconds and" in page.text) == (400, True)
    said = client.get(f"/api/v1/datasets/{large.name}/table?{LARGE}").json()["error"]
    assert said["code"] == "too_expensive"
    assert said["offers"]
    for offer in said["offers"]:
        assert client.get(f"/d/{large.name}/table?{offer['address']}").status_code == 200


def test_memory_has_a_limit_too():
    with pytest.raises(Refusal, match="megabytes") as caught:
        live(Policy(max_megabytes=0.5)).answer(Query.parse("rows=sex"))
    assert caught.value.allowed == "At most 0.5 megabytes."


# Records that are counted once


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(5)
    n = 4_000
    frame = pd.DataFrame(
        {
            "pid": np.arange(n),
            "place": rng.choice([*"abcd", None], n),
            "age": rng.integers(0, 90, n),
            "sex": rng.choice(["f", "m"], n),
            "w": rng.integers(1, 9, n) / 8,
        }
    )
    return dc.open(frame, id="pid", weight="w", secret=Secret.demo())


@pytest.mark.parametrize("variables", [(), ("sex",), ("age", "place"), ("place", "sex", "age")])
def test_cells_in_memory_give_what_the_engine_gives(people, variables):
    engine = QueryEngine()
    cells = CondensedCells(engine, people, ("place", "age", "sex"))
    found, wanted = cells.group(people, variables), engine.group(people, variables)
    by = [f"v{place}" for place in range(len(variables))] or ["n"]
    found, wanted = (t.to_pandas().sort_values(by).reset_index(drop=True) for t in (found, wanted))
    pd.testing.assert_frame_equal(found, wanted, check_dtype=False)
    assert found["n"].sum() == 4_000


def test_tables_of_cells_in_memory_are_those_of_the_records(people):
    cells = CondensedCells(QueryEngine(), people, ("place", "age", "sex"))
    kinds = [people.tabulate("place*sex", inner=False, engine=e) for e in (None, cells)]
    first, second = (t.protect("cell-key", D=5, V=3, js=2, unit="count").z for t in kinds)
    np.testing.assert_array_equal(first, second)


def test_a_large_crossing_of_few_records_costs_what_its_cells_and_records_cost(tmp_path):
    """27.6 million combinations of it cannot occur; they were listed once, in 22 s and 1.9 GB."""
    prepare_census(tmp_path, 20_000, 1)
    config = read_site(tmp_path / SITE)
    survey = [d for d in config.datasets if d.name == "survey"]
    dataset = start_site(replace(config, datasets=tuple(survey))).dataset("survey")
    work = "rows=industry[section]&rows=occupation[major_group]&columns=age[broad_age]"
    query = Query.parse(f"{work}&layers=region[province]")
    tracemalloc.start()
    began = time.process_time()
    cube = dataset.answer(query).cube
    seconds, (_, most) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert cube.values.size == 9_504
    assert most < 20e6
    assert seconds < 2  # 0.06 s where nobody traces memory
