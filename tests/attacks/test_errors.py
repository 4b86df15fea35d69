"""Errors on the public side: they say nothing that one record more or less would change."""

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import PUBLIC_TEXT
from discreet.publication import Choice
from discreet.serve import Dataset, DatasetInfo, LiveSource, Site, SiteConfig, make_app
from discreet.serve.refusals import as_json, refusal_of
from discreet.tables import DataSet
from discreet.testing.laws import neighbours
from tests.attacks.victims import MOVES_ZEROS, PTABLE, SECRET, country
from tests.serve.client import Client
from tests.serve.records import RECIPE, small_country

TABLE = country(mean=4.0)
FAILING = {
    "a bound that a cell cannot keep": (dc.Safe(bounds={1: 0, 2: 0}), TABLE),
    "no secret": (dc.Safe(), TABLE.with_secret(None)),
    "no secret for zeros": (dc.CellKey(MOVES_ZEROS), TABLE.with_secret(None)),
    "no keys": (
        dc.CellKey(PTABLE),
        dc.Table.from_inner(TABLE.design, TABLE.y),
    ),
    "no weights": (dc.CellKey(PTABLE, grid=10), TABLE),
    "a largest move that a cell cannot keep": (
        dc.Adjust(dc.CellKey(PTABLE), min_count=9, max_move=1),
        TABLE,
    ),
    "a clock": (dc.Safe(seconds=1), TABLE),
    "too large a delta": (dc.DiscreteLaplace(0.1, cap=1), TABLE),
    "inner cells of another number": (
        dc.SmallCountRounding(pre_rounded=np.array([1, 2])),
        TABLE,
    ),
}
CODES = re.compile(r"region\d|age\d|sex\d|\d")


def outcome(method, table):
    try:
        table.protect(method)
    except dc.DiscreetError as error:
        return error.public()
    return "released"


@pytest.mark.parametrize("kind", FAILING)
def test_a_public_error_is_the_same_for_neighbours(kind):
    method, table = FAILING[kind]
    said = {outcome(method, each) for each in (table, *neighbours(table))}
    assert "released" not in said
    assert len(said) == 1
    assert not CODES.search(said.pop())


def test_confidential_texts_do_name_codes_and_counts():
    """The control: the same errors, read on the confidential side."""
    named = 0
    for method, table in FAILING.values():
        with pytest.raises(dc.DiscreetError) as error:
            table.protect(method)
        named += bool(CODES.search(str(error.value)))
    assert named >= 5


def test_whether_a_release_is_refused_does_not_follow_from_one_record():
    """Refusals of methods without arrays or bounds follow from design and method alone."""
    for method in (dc.CellKey(PTABLE), dc.DropAdd(), dc.Pram(), dc.DiscreteLaplace(1.0)):
        assert {outcome(method, each) for each in (TABLE, *neighbours(TABLE))} == {"released"}


def test_errors_of_records_are_confidential(tmp_path):
    frame = pa.table({"pid": [1, 2, 2], "diag": ["flu", "HIV", "cold"], "w": [1.0, -5.0, 2.0]})
    listed = tmp_path / "codes.toml"
    listed.write_text('[diag]\ncodes = ["flu", "cold"]\n')
    attempts = [
        lambda: dc.open(frame, id="pid", secret=SECRET),
        lambda: dc.open(frame, codes=listed).tabulate("diag"),
        lambda: dc.open(frame, weight="w").tabulate("diag"),
        lambda: dc.open(frame).tabulate("diagnosis"),
        lambda: (
            dc.Ledger(tmp_path / "l.db").register_counts(DataSet("a"), "v", "1")
            or dc.Ledger(tmp_path / "l.db").register_counts(DataSet("a"), "v", "2")
        ),
    ]
    for attempt in attempts:
        with pytest.raises(dc.DiscreetError) as error:
            attempt()
        assert error.value.public() == PUBLIC_TEXT
        shown = as_json(refusal_of(error.value))
        assert "HIV" not in str(shown)
        assert "diag" not in str(shown)


def test_an_exhausted_budget_says_so_and_no_more(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.db", epsilon=1.0)
    table = replace(TABLE, data_set=DataSet("census"))
    table.protect(dc.DiscreteLaplace(0.9), ledger=ledger)
    said = set()
    for each in (table, *neighbours(table)):
        with pytest.raises(dc.DiscreetError) as error:
            each.protect(dc.DiscreteLaplace(0.9), ledger=dc.Ledger(ledger.path))
        said.add(error.value.public())
    assert len(said - {PUBLIC_TEXT}) == 1
    assert not re.search(r"\d|census", "".join(said))


def test_the_table_builder_repeats_no_confidential_text():
    records = small_country()
    dataset = Dataset("small", DatasetInfo(), LiveSource(RECIPE, records))
    assert dataset.source.units == ("count",)
    client = Client(make_app(Site(SiteConfig(), {"small": dataset})))
    records.frame["n"] = -np.abs(records.frame["n"])
    for path in ("/d/small/table", "/d/small/table.csv"):
        answer = client.get(f"{path}?rows=region&columns=sex")
        assert answer.status_code == 500
        assert "negative" not in answer.text


def test_methods_that_could_be_averaged_are_not_served():
    for method in (Choice("safe"), Choice("drop-add", {"margins": "summed"})):
        with pytest.raises(dc.DiscreetError, match="average it away"):
            LiveSource(replace(RECIPE, method=method), small_country())
