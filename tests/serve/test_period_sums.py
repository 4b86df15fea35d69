"""An attack on periods: whatever is asked by any address, no answer adds two of them up."""

import itertools
import re
from dataclasses import replace

import pytest

from discreet.release import writers
from discreet.serve import Dataset, InnerSource, Office, Policy, Query, Site, SiteConfig, make_app
from tests.serve.client import Client
from tests.serve.sites import inner_table, once, sums_of_once

PERIODS = ("0-14", "15-64", "65+")
V1, V2 = "/api/v1/datasets/once", "/api/pxweb/v2/tables/once"
TOTALS = ("total", "Total", "T", "ALL", "all", "*", "")
QUERIES = [
    "rows=sex",
    "rows=region",
    "rows=sex&columns=region&totals=1",
    *(f"rows=sex&show={show}" for show in ("row", "column", "total")),
    *(f"rows=sex&columns=age&show={show}" for show in ("row", "column", "total")),
    "rows=age",
    "columns=age",
    "layers=age",
    "rows=sex&columns=age&totals=1",
    "rows=age&columns=sex&sort=-total",
    "rows=sex&columns=age&sort=total",
    "rows=age&pick.age=0-14&pick.age=15-64&totals=1",
    "rows=sex&where.age=0-14&where.age=15-64",
    "rows=sex&where.age=0-14&where.age=15-64&where.age=65%2B",
    "rows=age&where.age=0-14&where.age=15-64&totals=1",
    "rows=age&group.age=Both|0-14|15-64",
    "rows=age&group.age=One|0-14&group.age=Two|0-14|15-64|65%2B",
    "rows=sex&group.age=Both|0-14|15-64",
    "rows=age&group.age=Both|0-14|15-64&pick.age=Both",
    "rows=age&fold.age=total",
    "rows=age[leaves]",
    "rows=age[age]",
    "rows=sex&layers=age&layer.age=0-14",
    "rows=sex&unit=income&where.region=N1",
    "rows=region&unit=income",
    "rows=region&unit=mean-income",
    "rows=region&unit=income&show=column",
    *(f"rows=sex&where.age={code}" for code in TOTALS),
    *(f"rows=sex&layers=age&layer.age={code}" for code in TOTALS),
    *(f"rows=age&pick.age={code}" for code in TOTALS),
]
_ALL = ["0-14", "15-64", "65+"]


def enlarged(**changes):
    """The small country with so large figures that no other number looks like one."""
    table = inner_table()
    large = InnerSource(replace(table, values=table.values * 10_007))
    return once(Policy(), source=large, measures=sums_of_once(10_007), **changes)


def site():
    """A site of it, its ages in the place of years."""
    return Site(SiteConfig("Small site"), {"once": enlarged(time="age")})


def visitor():
    """A visitor whom nobody limits."""
    office = Office()
    app = make_app(site(), office)
    office.rate_limiter.rate = 0
    return Client(app)


def selected(by_variable):
    """A selection of PxWebApi 2."""
    listed = [{"variableCode": v, "valueCodes": c} for v, c in by_variable.items()]
    return {"selection": listed}


def filtered(kind, values, *others):
    """A query of the older protocol about periods, with further parts."""
    part = {"code": "age", "selection": {"filter": kind, "values": values}}
    return {"query": [part, *others], "response": {"format": "json-stat"}}


def asked(client):
    """Every answer to the attack, with the address."""
    endings = [writer.ending for writer in writers()]
    for query in QUERIES:
        yield query, client.get(f"/d/once/table?{query}", follow_redirects=True)
        yield query, client.get(f"/d/once/chart.svg?{query}&chart=bars")
        yield query, client.get(f"{V1}/table?{query}")
        yield query, client.get(f"{V1}/table?{query}&format=csv")
    for ending, query in itertools.product(endings, ("rows=sex", "rows=age&columns=sex")):
        if ending not in (".parquet", ".xlsx"):  # written from the same cube
            yield ending, client.get(f"/d/once/table{ending}?{query}")
    periods = ["*", "total", "top(2)", "from(0-14)", "??*", "range(0-14,65%2B)", ""]
    for code in periods:
        yield code, client.get(f"{V2}/data?valueCodes[age]={code}")
        yield code, client.get(f"{V2}/data?valueCodes[sex]=*&valueCodes[age]={code}")
        yield code, client.get(f"{V2}/data?valueCodes[age]={code}&codelist[age]=agg_once_age")
    yield "default", client.get(f"{V2}/data")
    yield "none", client.request("POST", f"{V2}/data", json=selected({"sex": ["*"]}))
    yield "empty", client.request("POST", f"{V2}/data", json=selected({"sex": ["*"], "age": []}))
    contents = {"ContentsCode": ["*"], "region": ["*"], "age": _ALL}
    yield "contents", client.request("POST", f"{V2}/data", json=selected(contents))
    for kind, values in (("item", _ALL), ("item", ["total"]), ("all", ["*"]), ("top", ["2"])):
        yield kind, client.request("POST", "/api/v1/en/tables/once", json=filtered(kind, values))
    aggregated = filtered("agg:age", _ALL)
    yield "agg", client.request("POST", "/api/v1/en/tables/once", json=aggregated)
    yield (
        "no age",
        client.request("POST", "/api/v1/en/tables/once", json={**aggregated, "query": []}),
    )


def sums_over_periods():
    """Figures that add two or three periods up, and are none of one period."""
    dataset, found, shown = enlarged(), set(), set()
    for asked_for in ("rows=sex", "rows=region", "rows=region&columns=sex"):
        cube = dataset.answer(Query.parse(f"{asked_for}&layers=age")).cube
        by_period = [cube.at("age", period).values.reshape(-1) for period in PERIODS]
        shown |= {int(v) for values in by_period for v in values}
        for some in [s for n in (2, 3) for s in itertools.combinations(by_period, n)]:
            found |= {int(sum(values)) for values in zip(*some, strict=True)}
    return {v for v in found - shown if v >= 100_000}


def held(text):
    """The whole numbers of six digits and more that stand in an answer."""
    plain = re.sub(r"(?<=\d)[,\u00a0\u202f](?=\d{3}\b)", "", text)
    return {int(n) for n in re.findall(r"(?<![\w.])\d{6,9}(?![\w%])", plain)}


def pooled_in_answers():
    """The attacks that found a sum, or broke an answer."""
    client, sums = visitor(), sums_over_periods()
    answered, found = 0, []
    for what, response in asked(client):
        answered += response.status_code == 200
        if held(response.text) & sums or response.status_code >= 500:
            found.append(what)
    assert answered > 120
    return found


def test_no_address_gives_a_sum_over_periods():
    assert len(sums_over_periods()) > 10
    assert pooled_in_answers() == []


def test_a_sum_that_is_served_is_found(monkeypatch):
    monkeypatch.setattr(Dataset, "_by_period", lambda self, cube: cube)
    found = held(visitor().get("/d/once/table.csv?rows=age&columns=sex").text)
    assert found & sums_over_periods()


@pytest.mark.parametrize("code", ["total", "Total"])
def test_the_total_is_no_period(code):
    client = visitor()
    assert client.get(f"/d/once/table?rows=sex&where.age={code}").status_code == 400
    assert client.get(f"{V2}/data?valueCodes[age]={code}").status_code == 400
