import stat

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.errors import DataError, KeysError, ParameterError, UnknownNameError
from discreet.records.record_keys import RECORD_KEY, random_keys
from discreet.tables import CONVENTIONS

FRAME = pa.table({"person": [11, 12, 13, 14], "sex": ["f", "m", "f", None]})


@pytest.fixture
def secret():
    return dc.Secret(b"the secret of a test, and of no office")


@pytest.fixture
def people():
    return dc.open(FRAME, id="person")


def sums(keys, modulus=2**32):
    """Cell keys of f, m, missing and total."""
    a, b, c, d = (int(k) for k in keys)
    return [(a + c) % modulus, b, d, (a + b + c + d) % modulus]


@pytest.mark.parametrize("ids", [[11, 12, 13, 14], ["a", "b", "ü", "d"]])
@pytest.mark.parametrize("engine", ["ibis", "numpy"])
def test_cell_keys_are_sums_of_keyed_hashes(secret, ids, engine):
    data = dc.open(FRAME.set_column(0, "person", pa.array(ids)))
    table = data.with_keys(secret, id="person").tabulate("sex", engine=engine)
    assert table.cell_keys.tolist() == sums(secret.keys_for_ids(ids, edition="1"))


@pytest.mark.parametrize("name", sorted(CONVENTIONS))
def test_keys_in_every_convention(people, secret, name):
    data = people.with_keys(secret, convention=name)
    table = data.tabulate("sex")
    rule = CONVENTIONS[name]
    assert table.convention == rule
    assert table.cell_keys.tolist() == sums(
        secret.keys_for_ids([11, 12, 13, 14], name, "1"), rule.modulus
    )


def test_keys_stay_with_their_records(people, secret):
    shuffled = dc.open(FRAME.take([2, 0, 3, 1]), id="person").with_keys(secret)
    expected = people.with_keys(secret).tabulate("sex").cell_keys
    np.testing.assert_array_equal(shuffled.tabulate("sex").cell_keys, expected)
    part = dc.open(FRAME.slice(0, 1), id="person").with_keys(secret).tabulate("sex")
    assert part.cell_keys[0] == secret.keys_for_ids([11], edition="1")[0]


def test_keys_survive_a_recode(people, secret):
    table = people.with_keys(secret).recode(sex={"m": "f"}).tabulate("sex")
    a, b, c, d = secret.keys_for_ids([11, 12, 13, 14], edition="1").tolist()
    assert table.cell_keys.tolist()[:2] == [(a + b + c) % 2**32, d]


def test_duplicate_and_missing_ids_are_refused(secret):
    with pytest.raises(DataError, match="1 duplicates"):
        dc.open({"i": [1, 1, 2]}, id="i").with_keys(secret)
    with pytest.raises(DataError, match="1 missing"):
        dc.open(pa.table({"i": [1, None]}), id="i").with_keys(secret)
    with pytest.raises(ParameterError, match="id="):
        dc.open({"i": [1]}).with_keys(secret)
    with pytest.raises(UnknownNameError):
        dc.open({"i": [1]}).with_keys(secret, id="j")


def test_random_keys_are_drawn_once_and_kept(people, tmp_path):
    path = tmp_path / "keys.parquet"
    one = people.with_random_keys(path, convention="ptable").tabulate("sex")
    content = path.read_bytes()
    two = people.with_random_keys(path).tabulate("sex")
    assert path.read_bytes() == content
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert one.convention == two.convention == CONVENTIONS["ptable"]
    np.testing.assert_array_equal(one.cell_keys, two.cell_keys)
    other = people.with_random_keys().tabulate("sex")
    assert (other.cell_keys != one.cell_keys).any()


@pytest.mark.parametrize("name", sorted(CONVENTIONS))
def test_random_keys_are_uniform(name):
    rule = CONVENTIONS[name]
    counts = np.bincount(random_keys(20_000, rule) * 16 // rule.modulus, minlength=16)
    assert ((counts - 1250) ** 2 / 1250).sum() < 60  # chi-square, 15 degrees: p > 1e-6


def test_written_keys_come_back(people, secret, tmp_path):
    keyed = people.with_keys(secret, convention="ons-256")
    path = keyed.write_keys(tmp_path / "keys.parquet")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    side = pq.read_table(path)
    assert side.column_names == ["person", RECORD_KEY]
    again = dc.open(FRAME, keys=path)
    assert again.convention.name == "ons-256"
    expected = keyed.tabulate("sex").cell_keys
    np.testing.assert_array_equal(again.tabulate("sex").cell_keys, expected)
    for source in (side, side.to_pandas()):
        data = dc.open(FRAME, keys=source, id="person", convention="ons-256")
        np.testing.assert_array_equal(data.tabulate("sex").cell_keys, expected)


def test_a_key_column_can_be_written_too(tmp_path):
    data = dc.open(FRAME.append_column("k", pa.array([1, 2, 3, 4])), id="person", key="k")
    side = pq.read_table(data.write_keys(tmp_path / "k.parquet"))
    assert side.column(RECORD_KEY).to_pylist() == [1, 2, 3, 4]
    with pytest.raises(KeysError, match="no keys to write"):
        dc.open(FRAME, id="person").write_keys(tmp_path / "none.parquet")


def test_records_without_a_stored_key_are_refused(people, secret, tmp_path):
    path = dc.open(FRAME.slice(1), id="person").with_keys(secret).write_keys(tmp_path / "k.parquet")
    for engine in ("ibis", "numpy"):
        with pytest.raises(KeysError, match="'person'"):
            people.with_stored_keys(path).tabulate("sex", engine=engine)


def test_a_side_table_cannot_multiply_records(people):
    side = pd.DataFrame({"person": [11, 11, 12, 13, 14], RECORD_KEY: [1, 2, 3, 4, 5]})
    with pytest.raises(DataError, match="side table of keys has 1 duplicates"):
        people.with_stored_keys(side)


def test_duplicate_records_beside_a_side_table_are_refused():
    side = pd.DataFrame({"person": [11], RECORD_KEY: [1]})
    with pytest.raises(DataError, match="duplicates"):
        dc.open({"person": [11, 11]}, keys=side)


def test_side_tables_must_fit(people, tmp_path):
    with pytest.raises(KeysError, match="int64 in the records but string"):
        people.with_stored_keys({"person": ["11"], RECORD_KEY: [1]})
    with pytest.raises(UnknownNameError, match="record_key"):
        people.with_stored_keys({"person": [11], "key": [1]})
    with pytest.raises(UnknownNameError):
        dc.open({"other": [1]}, keys={"person": [11], RECORD_KEY: [1]})
    with pytest.raises(DataError, match="no file"):
        people.with_stored_keys(tmp_path / "absent.parquet")
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"PAR1nothing")
    with pytest.raises(DataError, match="could not be read as Parquet"):
        people.with_stored_keys(bad)


def test_keys_out_of_range_in_a_side_table_are_refused(people):
    side = {"person": [11, 12, 13, 14], RECORD_KEY: [1, 2, 3, 2**32]}
    with pytest.raises(KeysError):
        people.with_stored_keys(side).tabulate("sex")


def test_names_in_use_do_not_disturb_the_join(secret):
    frame = pa.table({"person": [1, 2], RECORD_KEY: ["a", "b"], "person_of_key": ["x", "x"]})
    table = dc.open(frame, id="person").with_keys(secret).tabulate([(RECORD_KEY, "person_of_key")])
    assert table.cell_keys.tolist() == secret.keys_for_ids([1, 2], edition="1").tolist()


def test_naming_a_key_column_replaces_the_side_table(secret):
    frame = FRAME.append_column("k", pa.array([1, 2, 3, 4]))
    data = dc.open(frame, id="person").with_keys(secret).with_roles(key="k")
    assert data.tabulate("sex").cell_keys.tolist() == [4, 2, 4, 10]
