"""The table builder attacked as a visitor would, within one edition.

The default, release-once, holds every attack at its baseline: what one look at the cell gives. A
weak configuration is caught by the same attacks.
"""

import io
import itertools
import json
import logging
import re
import secrets
import sys
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
    LiveSource,
    Policy,
    Query,
    Refusal,
    Site,
    SiteConfig,
    make_app,
)
from tests.attacks.builders import LIVE, NAMES, SIZES, WIDE, People, Visitor, leaves, live, once
from tests.attacks.victims import SECRET, exact_share
from tests.serve.client import Client

PEOPLE = People.drawn()
ROUNDED = Publication(
    "region*age*sex", Choice("small-count-rounding", {"base": 3, "force_inner": True})
)


@pytest.fixture(scope="module")
def visitor():
    return Visitor(once(PEOPLE))


class Careless(LiveSource):
    """A planted fault: noise drawn anew for every question."""

    def cube(self, details, unit):
        cube = super().cube(details, unit)
        rng = np.random.default_rng(secrets.randbits(64))
        truth = PEOPLE.counts.sum(
            axis=tuple(k for k, name in enumerate(NAMES) if name not in cube.names)
        )
        values = cube.values.copy()
        values[(slice(1, None),) * truth.ndim] = truth + rng.integers(-3, 4, truth.shape)
        return type(cube)(cube.axes, values, cube.status, cube.unit, cube.statement)


class Forgetful(Dataset):
    """What serves it keeps nothing, so that every question is asked again."""

    def cube(self, details, unit):
        return self.source.cube(details, unit)


def careless():
    return Visitor(Forgetful("census", DatasetInfo(), Careless(LIVE, PEOPLE), WIDE))


def estimates(visitor, region, age):
    """Everything that implies one cell of region and age: the cell itself, and sums around it."""
    cell = {"region": region, "age": age}
    found = [visitor.figure("rows=region&columns=age", **cell)]
    found += [visitor.figure("rows=age&columns=region", **cell)]
    found += [visitor.figure("rows=region&columns=age&layers=sex", **cell)]
    found += [visitor.figure(f"rows=region&where.age={age}", region=region)]
    found += [visitor.figure(f"rows=age&where.region={region}", age=age)]
    by_sex = visitor.ask("rows=region&columns=age&layers=sex")
    at = by_sex.axis("region").place(region), by_sex.axis("age").place(age)
    found += [by_sex.values[at][1:].sum()]
    table = visitor.ask("rows=region&columns=age")
    others = [c for c in leaves("age") if c != age]
    row = table.at("region", region)
    found += [row.values[0] - sum(row.values[row.axis("age").place(c)] for c in others)]
    column = table.at("age", age)
    rest = [c for c in leaves("region") if c != region]
    found += [column.values[0] - sum(column.values[column.axis("region").place(c)] for c in rest)]
    without = "&".join(f"where.age={c}" for c in others)
    complement = visitor.figure(f"rows=region&{without}", region=region)
    found += [visitor.figure("rows=region", region=region) - complement]
    group = f"rows=age&group.age=G|{'|'.join(others)}&where.region={region}"
    found += [visitor.figure(f"rows=age&where.region={region}") - visitor.figure(group, age="G")]
    return np.array(found)


def all_estimates(visitor):
    cells = itertools.product(leaves("region"), leaves("age"))
    return np.array([estimates(visitor, *cell) for cell in cells])


def test_averaging_sums_that_imply_a_cell_gives_one_look(visitor):
    """Ten ways to a cell, one value: there is nothing to average."""
    found = all_estimates(visitor)
    assert (found == found[:, :1]).all()
    truth = PEOPLE.counts.sum(axis=2).ravel()
    assert exact_share(found.mean(axis=1), truth) == exact_share(found[:, 0], truth)


def test_a_builder_that_draws_anew_is_caught_by_averaging():
    """The planted fault: every question has its own noise, so asking again gives the truth."""
    visitor, truth = careless(), PEOPLE.counts.sum(axis=2).ravel()
    looks = np.array(
        [visitor.ask("rows=region&columns=age").values[1:, 1:].ravel() for _ in range(400)]
    )
    assert not (looks == looks[0]).all()
    assert exact_share(looks.mean(axis=0), truth) > 0.95
    assert exact_share(looks[0], truth) < 0.4


def looks(visitor):
    """Everything that sums to the count of each region: the margin, and three crossings."""
    found = [visitor.ask("rows=region").values[1:]]
    found += [visitor.ask("rows=region&columns=age").values[1:, 1:].sum(axis=1)]
    found += [visitor.ask("rows=region&columns=sex").values[1:, 1:].sum(axis=1)]
    whole = visitor.ask("rows=region&columns=age&layers=sex").values
    found += [whole[1:, 1:, 1:].sum(axis=(1, 2)), whole[1:, 1:, 0].sum(axis=1)]
    return np.array(found, dtype=float)


def test_averaging_predefined_tables_has_a_lift_on_the_fly_alone(record_property, capsys):
    """Sums over crossings have noise of their own on the fly: few variables leave few of them."""
    weights = 1.0 / np.array([1, SIZES["age"], SIZES["sex"], SIZES["age"] * SIZES["sex"]])
    error = {"once": [[], []], "live": [[], []]}
    for seed in range(12):
        people = People.drawn(seed=seed)
        truth = people.counts.sum(axis=(1, 2))
        for name, mode in (("once", once), ("live", live)):
            seen = looks(Visitor(mode(people)))[:4]
            mean = (weights[:, None] * seen).sum(axis=0) / weights.sum()
            error[name][0].append(np.mean((seen[0] - truth) ** 2))
            error[name][1].append(np.mean((mean - truth) ** 2))
    one_look, averaged = (np.mean(e) for e in error["live"])
    record_property("mean squared error, one look and averaged", (float(one_look), float(averaged)))
    with capsys.disabled():
        sys.stdout.write(f"\naveraging on the fly: error {one_look:.2f} -> {averaged:.2f}\n")
    assert averaged < one_look
    np.testing.assert_allclose(*error["once"])


def test_asking_again_on_the_fly_gives_the_same():
    visitor = Visitor(live(PEOPLE))
    first = visitor.ask("rows=region&columns=age").values
    again = Visitor(live(PEOPLE)).ask("columns=region&rows=age").values
    np.testing.assert_array_equal(first, again.T)


def test_regrouping_solves_for_nothing_new():
    """Groups that overlap pairwise are three equations for three cells."""
    for visitor in (Visitor(once(PEOPLE)), Visitor(live(PEOPLE))):
        a, b, c, *_ = leaves("age")
        pairs = {f"{x}|{y}": None for x, y in ((a, b), (b, c), (a, c))}
        for pair in pairs:
            pairs[pair] = visitor.ask(f"rows=age&columns=region&group.age=G|{pair}").at("age", "G")
        ab, bc, ac = (cube.values for cube in pairs.values())
        cell = visitor.ask("rows=age&columns=region").at("age", a).values
        np.testing.assert_array_equal((ab + ac - bc) / 2, cell)


def test_nested_crossings_of_a_unique_tell_no_more_than_its_inner_cell(visitor):
    """Every crossing down to a person is a sum of inner cells that the visitor has already."""
    inner = visitor.ask("rows=region&columns=age&layers=sex").values[1:, 1:, 1:]
    for k in range(0, len(PEOPLE.ids), 7):
        cell = PEOPLE.cell(k)
        for n in (1, 2, 3):
            for names in itertools.combinations(NAMES, n):
                found = visitor.figure(
                    "&".join(f"rows={v}" for v in names), **{name: cell[name] for name in names}
                )
                at = tuple(int(cell[v][-1]) if v in names else slice(None) for v in NAMES)
                assert found == inner[at].sum()


def test_a_unique_is_never_shown_as_one(visitor):
    """No count of one or two in any table, so none says that somebody is alone."""
    for n in (1, 2, 3):
        for names in itertools.combinations(NAMES, n):
            values = visitor.ask("&".join(f"rows={v}" for v in names)).values
            assert not np.isin(values, (1, 2)).any()
    assert (PEOPLE.counts == 1).sum() >= 4


def test_complements_and_differences_return_the_released_cell(visitor):
    cube = visitor.ask("rows=region&columns=sex")
    everybody = visitor.figure("rows=sex")
    for code in leaves("region"):
        others = "&".join(f"where.region={c}" for c in leaves("region") if c != code)
        assert everybody - visitor.figure(f"rows=sex&{others}") == cube.at("region", code).values[0]


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
