"""Names and editions of records, keys over editions, bounds, and the ledger that knows them."""

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.errors import DiscreetError, KeysError, ParameterError, UnknownNameError
from discreet.ledger import Ledger
from discreet.tables import Bounds, DataSet
from tests.commands import run

N = 400
FRAME = pa.table(
    {
        "pid": np.arange(N),
        "sex": ["f", "m"] * (N // 2),
        "w": np.ones(N),
        "home": np.arange(N) // 2,
    }
)


@pytest.fixture
def secret():
    return dc.Secret(b"the secret of a test, and of no office")


@pytest.fixture
def people():
    return dc.open(FRAME, id="pid", name="census", edition="2024")


def keys_of(data):
    return data.tabulate("sex").cell_keys.tolist()


def test_a_table_knows_its_records(people, secret):
    assert people.data_set == DataSet("census", "2024", "given", Bounds())
    keyed = people.with_keys(secret)
    table = keyed.tabulate("sex")
    assert table.data_set == DataSet("census", "2024", "phased", Bounds())
    assert table.secret is secret
    assert table.ledger is None
    assert people.with_secret(secret).tabulate("sex").secret is secret
    assert "'census', edition '2024'" in repr(keyed)


def test_names_come_from_files_and_tables(tmp_path):
    path = tmp_path / "people.2024.parquet"
    pq.write_table(FRAME, path)
    assert dc.open(path).data_set == DataSet("people.2024", "1")
    assert dc.open(path, name="census", edition="7").data_set == DataSet("census", "7")
    assert dc.open(f"{tmp_path}/*.parquet").data_set.name == "unnamed"
    assert dc.open(tmp_path).data_set.name == tmp_path.name
    (tmp_path / "a.csv").write_text("sex\nf\n")
    assert dc.open(tmp_path / "a.csv").data_set.name == "a"
    with duckdb.connect(str(tmp_path / "b.duckdb")) as connection:
        connection.sql("CREATE TABLE persons AS SELECT 1 AS i")
    assert dc.open(tmp_path / "b.duckdb").data_set.name == "persons"
    stored = ibis.duckdb.connect().create_table("citizens", FRAME)
    assert dc.open(stored).data_set.name == "citizens"
    for bare in (FRAME, ibis.memtable(FRAME), stored.limit(5)):
        assert dc.open(bare).data_set.name == "unnamed"


def test_names_are_texts(people):
    for bad in ("", " ", None, 3):
        with pytest.raises(ParameterError):
            people.named(bad)
    with pytest.raises(ParameterError):
        dc.open(FRAME, edition=2024)


def test_kept_keys_stay_and_redrawn_keys_change_with_the_edition(people, secret):
    def keys(edition, editions):
        return keys_of(people.named("census", edition).with_keys(secret, editions=editions))

    assert keys("1", "kept") == keys("2", "kept")
    assert keys("1", "fresh") == keys_of(dc.open(FRAME, id="pid", secret=secret))
    assert keys("1", "fresh") == keys("1", "phased:4") == keys("1", "redrawn")
    assert keys("1", "redrawn") == keys("1", "redrawn")
    assert (
        len({tuple(k) for k in (keys("1", "kept"), keys("1", "redrawn"), keys("2", "redrawn"))})
        == 3
    )
    assert people.with_keys(secret, editions="redrawn").data_set.keys == "fresh"
    for unknown in ("lost", "given", "renewed", "renewed:2", "phased:0", "kept:3"):
        with pytest.raises(ParameterError, match="editions|share|repeated"):
            people.with_keys(secret, editions=unknown)


def test_redrawn_keys_belong_to_their_edition(people, secret, tmp_path):
    drawn = people.with_keys(secret, editions="redrawn")
    with pytest.raises(KeysError, match="made for edition '2024'"):
        drawn.named("census", "2025")
    assert drawn.named("register", "2024").data_set.name == "register"
    path = drawn.write_keys(tmp_path / "keys.parquet")
    again = dc.open(FRAME, keys=path, edition="2024")
    assert again.data_set.keys == "fresh"
    assert keys_of(again) == keys_of(drawn)
    with pytest.raises(KeysError, match="made for edition '2024', but the records are edition '1'"):
        dc.open(FRAME, keys=path)


def test_the_command_line_makes_keys_for_an_edition(secret, tmp_path, monkeypatch):

    monkeypatch.chdir(tmp_path)
    pq.write_table(FRAME, "people.parquet")
    command = ["keys", "people.parquet", "--id", "pid", "--secret", "s", "--out", "keys.parquet"]
    assert run(*command, "--editions", "redrawn", "--edition", "2025") == 0
    data = dc.open("people.parquet", keys="keys.parquet", edition="2025")
    made = dc.open("people.parquet", id="pid", edition="2025", secret="s", editions="redrawn")
    assert data.data_set == made.data_set == DataSet("people", "2025", "fresh")
    assert keys_of(data) == keys_of(made)


def test_stored_keys_say_how_they_were_made(people, secret, tmp_path):
    kept = people.with_keys(secret, editions="kept").write_keys(tmp_path / "kept.parquet")
    assert people.with_stored_keys(kept).data_set.keys == "kept"
    assert people.named("census", "2030").with_stored_keys(kept).data_set.keys == "kept"
    side = pq.read_table(kept).replace_schema_metadata(None)
    assert people.with_keys(secret).with_stored_keys(side).data_set.keys == "given"
    assert people.with_random_keys(tmp_path / "drawn.parquet").data_set.keys == "given"
    column = pq.read_table(kept).column(1)
    named = dc.open(FRAME.append_column("k", column), id="pid").with_keys(secret)
    assert named.with_roles(key="k").data_set.keys == "given"


def test_headers_of_older_files_are_read(people, tmp_path):
    import json

    side = pa.table(
        {
            "pid": np.arange(N),
            "record_key": dc.Secret(b"the secret of a test, and of no office").keys_for_ids(
                range(N)
            ),
        }
    )
    header = {"side": "confidential", "convention": ["discreet", 2**32, "right"]}
    path = tmp_path / "keys.parquet"
    metadata = {b"discreet.keys": json.dumps(header).encode()}
    pq.write_table(side.replace_schema_metadata(metadata), path)
    data = people.with_stored_keys(path)
    assert (data.convention.name, data.data_set.keys) == ("discreet", "given")


def test_a_secret_file_is_all_that_opening_needs(tmp_path):
    path = tmp_path / "keys.secret"
    data = dc.open(FRAME, id="pid", secret=path)
    assert data.data_set.keys == "phased"
    assert keys_of(data) == keys_of(dc.open(FRAME, id="pid", secret=str(path)))
    assert keys_of(data) == keys_of(dc.open(FRAME, id="pid", secret=dc.Secret.from_file(path)))
    redrawn = dc.open(FRAME, id="pid", secret=path, editions="redrawn", edition="3")
    assert redrawn.data_set == DataSet("unnamed", "3", "fresh")
    without = dc.open(FRAME, secret=path)
    assert not without.has_keys
    assert without.secret is not None
    given = FRAME.append_column(
        "k", pa.array(dc.Secret(b"another secret of a test, of no office").keys_for_ids(range(N)))
    )
    beside = dc.open(given, key="k", id="pid", secret=path)
    assert beside.key == "k"
    assert beside.secret is not None


def test_bounds_are_part_of_the_data_set(people):
    bounded = people.with_roles(weight="w", weight_bound=3).with_roles(person="home", max_records=2)
    assert bounded.data_set.bounds == Bounds(3, "home", 2)
    assert bounded.dimensions == ("sex",)
    assert "person, at most 2 records" in repr(bounded)
    assert "weight, at most 3" in repr(bounded)
    assert people.with_roles(person="home").data_set.bounds.max_records == 1
    assert (
        bounded.with_keys(dc.Secret(b"the secret of a test, and of no office")).data_set.bounds
        == bounded.data_set.bounds
    )


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"weight_bound": 2}, "weight="),
        ({"weight": "w", "weight_bound": 0}, "above 0"),
        ({"weight": "w", "weight_bound": float("inf")}, "above 0"),
        ({"weight": "w", "weight_bound": float("nan")}, "above 0"),
        ({"max_records": 2}, "person="),
        ({"person": "home", "max_records": 0}, "at least 1"),
        ({"person": "home", "max_records": 1.5}, "at least 1"),
        ({"person": "pid"}, "id="),
    ],
)
def test_bounds_that_mean_nothing_are_refused(people, roles, message):
    with pytest.raises(ParameterError, match=message):
        people.with_roles(**roles)


def test_persons_need_ids():
    with pytest.raises(ParameterError, match="id="):
        dc.open(FRAME).with_roles(person="home")
    with pytest.raises(UnknownNameError):
        dc.open(FRAME, id="pid").with_roles(person="house")


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.db", min_changed=20)


def opened(frame, ledger, **options):
    return dc.open(frame, **{"id": "pid", "name": "census", "ledger": ledger, **options})


def published(frame, ledger, by="sex*home", **options):
    """A table of the records, entered as its publication enters it."""
    table = opened(frame, ledger, **options).tabulate(by)
    ledger.enter(table)
    return table


def test_an_edition_is_entered_and_recognised(ledger, secret):
    assert published(FRAME, ledger, secret=secret).ledger is ledger
    published(FRAME.take(np.arange(N)[::-1]), ledger, secret=secret)
    opened(FRAME, str(ledger.path)).named("census").with_keys(secret).with_secret(secret)
    assert [row["entry"] for row in ledger.rows()] == ["edition", "table"]


def test_other_records_under_the_same_edition_are_refused(ledger, secret):
    published(FRAME, ledger, secret=secret)
    one_less = FRAME.slice(1)
    for by in ("sex*home", "sex"):  # by the table, and by the keys of the records
        with pytest.raises(DiscreetError, match="another set of records"):
            published(one_less, ledger, by, secret=secret)
    with pytest.raises(DiscreetError, match="another set of records"):
        published(one_less, ledger)
    moved = pa.array(["m", *FRAME.column("sex").to_pylist()[1:]])
    with pytest.raises(DiscreetError, match="another set of records"):
        published(FRAME.set_column(1, "sex", moved), ledger, secret=secret)


def test_an_edition_too_near_to_another_is_refused(ledger):
    published(FRAME, ledger)
    with pytest.raises(DiscreetError, match="min_changed=20"):
        published(FRAME.slice(1), ledger, edition="2")
    published(FRAME.slice(60), ledger, edition="2")


def test_another_secret_for_the_same_edition_is_refused(ledger, secret):
    published(FRAME, ledger, secret=secret)
    data = opened(FRAME, ledger, secret=secret)
    with pytest.raises(DiscreetError, match="another secret"):
        data.with_keys(dc.Secret(b"another secret of a test, of no office"))
    data = data.with_keys(secret, editions="fresh")  # nobody has a table of it yet
    data.tabulate("sex").protect("cell-key", D=5, V=3, js=2)
    with pytest.raises(DiscreetError, match="another way of making record keys"):
        data.with_keys(secret, editions="kept")
