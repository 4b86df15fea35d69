"""The table builder attacked as a visitor would, within one edition.

The default, release-once, holds every attack at its baseline: what one look at the cell gives. A
weak configuration is caught by the same attacks.
"""

import io
import itertools
import json
import logging
import re
import zipfile
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from discreet import Table
from discreet.publication import Choice, Publication
from discreet.release import writers
from discreet.serve import (
    Dataset,
    DatasetInfo,
    InnerSource,
    InnerTable,
    Policy,
    Query,
    Refusal,
    Site,
    SiteConfig,
    make_app,
)
from tests.attacks.builders import NAMES, SIZES, WIDE, People, Visitor, live, once
from tests.attacks.victims import SECRET
from tests.serve.client import Client

PEOPLE = People.drawn()
ROUNDED = Publication(
    "region*age*sex", Choice("small-count-rounding", {"base": 3, "force_inner": True})
)


@pytest.fixture(scope="module")
def visitor():
    return Visitor(once(PEOPLE))


def test_every_crossing_is_a_sum_of_inner_cells_and_shows_no_small_count(visitor):
    """Nested crossings of a unique tell no more than its inner cell, and none says it is one."""
    inner = visitor.ask("rows=region&columns=age&layers=sex").values[1:, 1:, 1:]
    for n in (1, 2, 3):
        for names in itertools.combinations(NAMES, n):
            shown = visitor.ask("&".join(f"rows={v}" for v in names)).values
            others = tuple(k for k, name in enumerate(NAMES) if name not in names)
            assert (shown[(slice(1, None),) * n] == inner.sum(axis=others)).all()
            assert not np.isin(shown, (1, 2)).any()
    assert (PEOPLE.counts == 1).sum() >= 4


ADDRESSES = [
    "rows=region",
    "rows=region&columns=age&layers=sex",
    "rows=",
    "rows=height",
    "rows=region&columns=region",
    "rows=region&where.age=age9",
    "rows=region&columns=age&layers=sex&where.sex=sex0",
    "rows=region&columns=age&group.age=G|age0|age1",
    "rows=age&group.age=G|age0|age0",
    "rows=region&unit=weight",
    "rows=region&pick.region=region9",
    "show=rows",
]


def outcomes(dataset):
    """What a visitor learns from being answered or refused, apart from figures."""
    found = []
    for address in ADDRESSES:
        try:
            answer = dataset.answer(Query.parse(address))
            found.append((answer.cube.values.shape, answer.notes))
        except Refusal as refusal:
            offers = [(label, query.address) for label, query in refusal.offers]
            found.append((refusal.code, refusal.public(), refusal.allowed, offers))
    return found


@pytest.mark.parametrize("mode", [once, live])
@pytest.mark.parametrize("policy", [Policy(), Policy(max_variables=2, max_cells=30)])
def test_neighbouring_data_sets_are_refused_alike(mode, policy):
    expected = outcomes(mode(PEOPLE, policy=policy))
    assert any(isinstance(found[0], str) for found in expected)
    for k in range(0, len(PEOPLE.ids), 97):
        assert outcomes(mode(PEOPLE.moved(k), policy=policy)) == expected


def test_refusals_that_look_at_figures_look_at_protected_ones():
    """With the same inner table the refusals are the same, whatever the truth behind it."""
    strict = Policy(k_anonymity=4, min_mean_cell=2, min_difference=5)
    dataset = once(PEOPLE, policy=strict)
    counted = PEOPLE.asked
    assert any(isinstance(found[0], str) for found in outcomes(dataset))
    assert PEOPLE.asked == counted  # nobody looked at the records


def test_refusals_by_public_sizes_come_before_any_record_is_counted():
    people = People.drawn(seed=2)
    dataset = live(people, policy=Policy(max_variables=1, max_cells=3))
    counted = people.asked
    for address in ADDRESSES[1:]:
        with pytest.raises(Refusal):
            dataset.answer(Query.parse(address))
    assert people.asked == counted


def client_of(dataset):
    return Client(make_app(Site(SiteConfig(), {"census": dataset})))


def test_release_once_serves_when_the_records_are_gone(visitor):
    """Answers cannot depend on the records: there are none any more, and none are asked."""
    people = People.drawn(seed=3)
    dataset = once(people)
    people.codes = people.ids = None
    client = client_of(dataset)
    assert client.get("/d/census/table?rows=region&columns=age").status_code == 200


ENDINGS = sorted(writer.ending for writer in writers())
PAGES = ["/d/census/table", *(f"/d/census/table{ending}" for ending in ENDINGS)]
WITHOUT_FIGURES = "/d/census/table.csv-metadata.json"


def counts_in(answer, counts):
    """Which of some counts an answer holds, whatever its format."""
    content, text = answer.content, answer.text
    if content[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(content)) as parts:
            text = " ".join(
                parts.read(name).decode("utf-8", "replace") for name in parts.namelist()
            )
    elif content[:4] == b"PAR1":
        text = str(pq.read_table(io.BytesIO(content)).to_pylist())
    plain = re.sub(r"(?<=\d)[\s,.\u00a0\u202f](?=\d{3})", "", text)
    return {count for count in counts if str(count) in text or str(count) in plain}


@pytest.mark.parametrize("path", PAGES)
def test_no_page_and_no_export_holds_a_true_count(path):
    """Every true count of this data set is one above a multiple of three, and rounded to one."""
    dataset, counts = recognisable()
    answer = client_of(dataset).get(f"{path}?rows=region&columns=age&layers=sex")
    assert answer.status_code == 200
    assert not counts_in(answer, counts)


@pytest.mark.parametrize("path", [path for path in PAGES[1:] if path != WITHOUT_FIGURES])
def test_a_true_count_in_an_export_is_found(path):
    """The control: the truth in place of the protected inner table."""
    dataset, counts = recognisable(protected=False)
    answer = client_of(dataset).get(f"{path}?rows=region&columns=age&layers=sex")
    assert len(counts_in(answer, counts)) > 0.9 * len(counts)


def recognisable(protected=True):
    """A data set whose true counts can be told from anything else, and those counts."""
    shape = tuple(SIZES.values())
    rng = np.random.default_rng(5)
    counts = 1_000_000 + 3 * rng.integers(1, 300_000, shape).ravel()  # one above a multiple of 3
    cells = list(itertools.product(*(range(n) for n in shape)))
    frame = {name: [f"{name}{c[k]}" for c in cells] for k, name in enumerate(NAMES)}
    frame["n"] = counts
    table = Table.from_counts(frame, "n", ROUNDED.margins, declared=True, name="census")
    inner = InnerTable.of(ROUNDED.run(table.with_secret(SECRET)), "1")
    source = InnerSource(inner if protected else replace(inner, values=counts))
    return Dataset("census", DatasetInfo(), source, WIDE), {int(n) for n in counts}


class Broken:
    """A source whose errors quote true counts."""

    def __init__(self, source, error):
        self._source, self._error = source, error

    def __getattr__(self, name):
        return getattr(self._source, name)

    def cube(self, details, unit):
        raise self._error


@pytest.mark.parametrize("path", [*PAGES, "/api/v1/datasets/census/table"])
def test_no_error_and_no_log_quotes_a_true_count(path, caplog):
    caplog.set_level(logging.DEBUG)
    for error in (RuntimeError("cell has 7654321 records"), ValueError("7654321 in region2")):
        source = Broken(once(PEOPLE).source, error)
        answer = client_of(Dataset("census", DatasetInfo(), source, WIDE)).get(
            f"{path}?rows=region"
        )
        assert answer.status_code == 500
        assert "7654321" not in answer.text
    assert "7654321" not in caplog.text
    assert "RuntimeError" in caplog.text


def test_the_statement_is_the_same_for_neighbours():
    said = {
        json.dumps(once(people).statement.to_json())
        for people in (PEOPLE, PEOPLE.moved(3), PEOPLE.moved(200))
    }
    assert len(said) == 1


PXWEB = "/api/pxweb/v2/tables/census/data?valueCodes[region]=*&valueCodes[age]=*"
QUERY = "rows=region&columns=age"
ROUTES = [
    *(f"{path}?{QUERY}" for path in PAGES),
    *(f"/api/v1/datasets/census/table?{QUERY}&format={f}" for f in ("json", "csv", "json-stat")),
    *(f"{PXWEB}&outputFormat={f}" for f in ("json-stat2", "csv", "px", "xlsx")),
    f"{PXWEB}&valueCodes[sex]=sex0",
    f"{PXWEB.replace('*', 'top(2)')}",
]


@pytest.mark.parametrize(
    "policy",
    [{"forbidden": (("age", "region"),)}, {"max_cells": 20}, {"k_anonymity": 1e6}],
    ids=["forbidden", "cells", "anonymity"],
)
def test_no_route_gets_around_the_policy(policy):
    """The same rules on pages, files and every interface, for the table and for its slices."""
    closed, open_ = client_of(once(PEOPLE, policy=Policy(**policy))), client_of(once(PEOPLE))
    for route in ROUTES:
        assert open_.get(route).status_code == 200, route
        assert 400 <= closed.get(route).status_code < 500, route


def test_hidden_areas_are_hidden_on_every_route():
    """The threshold of this policy hides every figure, so none may come out anywhere."""
    dataset, _ = recognisable()
    shown = dataset.answer(Query.parse(f"{QUERY}&layers=sex")).cube.values.ravel().tolist()
    hiding = Dataset("census", DatasetInfo(), dataset.source, Policy(threshold=1e12))
    for route in ROUTES:
        has_figures = not route.startswith(WITHOUT_FIGURES)
        assert bool(counts_in(client_of(dataset).get(route), shown)) == has_figures, route
        assert not counts_in(client_of(hiding).get(route), shown), route
