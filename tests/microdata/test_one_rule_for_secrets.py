"""A secret is made on first use with one line, and never a second time for the same data."""

import logging

import pyarrow as pa
import pyarrow.csv
import pytest

import discreet as dc
from discreet.errors import KeysError
from tests.commands import run

PEOPLE = pa.table({"pid": range(60), "region": list("ABC") * 20})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pyarrow.csv.write_csv(PEOPLE, "people.csv")
    return tmp_path


def enter_by_open(name):
    dc.open("people.csv", id="pid", secret=name)


def enter_by_synthesize(name):
    x = [float(k % 7) for k in range(60)]
    frame = pa.table({"x": x, "y": [(7.0 * k) % 11 for k in range(60)]})
    dc.synthesize(frame, "y ~ x", secret=name)


def command(*words):
    def enter(name):
        assert run(*words, "--secret", name) == 0

    return enter


def enter_by_protect(name):
    dc.open("people.csv").tabulate("region").save("plain.parquet")
    command("protect", "plain.parquet", "--method", "controlled-rounding", "--out", "r.csv")(name)


ENTRIES = {
    "open": enter_by_open,
    "synthesize": enter_by_synthesize,
    "tabulate": command(
        "tabulate", "people.csv", "--by", "region", "--id", "pid", "-o", "t.parquet"
    ),
    "keys": command("keys", "people.csv", "--id", "pid", "--out", "keys.parquet"),
    "protect": enter_by_protect,
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_makes_the_secret_with_one_line(entry, folder, caplog, capsys):
    with caplog.at_level(logging.WARNING, "discreet"):
        ENTRIES[entry]("keys.secret")
    lines = [r.getMessage() for r in caplog.records if "keys.secret" in r.getMessage()]
    assert len(lines) == 1
    assert "is new" in lines[0]
    assert (folder / "keys.secret").stat().st_mode & 0o077 == 0
    assert (folder / "keys.secret").read_text().strip() not in lines[0]
    caplog.clear()
    with caplog.at_level(logging.WARNING, "discreet"):
        again = (
            ENTRIES[entry]
            if entry != "keys"
            else command("keys", "people.csv", "--id", "pid", "--out", "more.parquet")
        )
        again("keys.secret")
    assert not [r for r in caplog.records if "keys.secret" in r.getMessage()]


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_entry_makes_a_second_secret_beside_the_first(entry, folder, capsys):
    dc.Secret.from_file("keys.secret", create=True)
    with pytest.raises((KeysError, AssertionError)):
        ENTRIES[entry]("key.secret")
    assert not (folder / "key.secret").exists()


def test_a_ledger_remembers_that_a_data_set_has_a_secret(folder):
    people = dc.open("people.csv", id="pid", secret="keys.secret", name="people", ledger="l.db")
    people.tabulate("region").protect("cell-key")
    (folder / "elsewhere").mkdir()
    with pytest.raises(KeysError, match="ledger has releases of data set 'people'"):
        dc.open("people.csv", id="pid", secret="elsewhere/k.secret", name="people", ledger="l.db")


def test_keys_that_a_secret_made_allow_no_other_secret(folder):
    people = dc.open("people.csv", id="pid", secret="keys.secret")
    people.write_keys("keys.parquet")
    (folder / "elsewhere").mkdir()
    with pytest.raises(KeysError, match="keys of data set"):
        dc.open("people.csv", id="pid", keys="keys.parquet", secret="elsewhere/k.secret")


def test_a_site_never_makes_a_secret(folder):
    """A site that lost its secret would answer the same cells with new noise."""
    from discreet.errors import DataError
    from discreet.serve.data.live import open_records
    from discreet.serve.site.config import RecordsConfig

    records = RecordsConfig(source="people.csv", id="pid", secret="keys.secret")
    with pytest.raises(DataError, match="discreet secret make"):
        open_records(records, folder)
    assert not (folder / "keys.secret").exists()
    dc.Secret.from_file(folder / "keys.secret", create=True)
    assert open_records(records, folder).tabulate("region").to_arrow().num_rows == 4


def test_a_secret_is_made_on_purpose_beside_another(folder, capsys):
    dc.Secret.from_file("keys.secret", create=True)
    assert run("secret", "make", "other.secret") == 0
    assert run("secret", "make", "other.secret") == 2
