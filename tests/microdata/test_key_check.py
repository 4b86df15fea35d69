import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import KeysError
from discreet.randomness import stream
from discreet.records import expressions as key_check
from discreet.records.expressions import count_keys
from discreet.records.record_keys import RECORD_KEY
from discreet.tables import CONVENTIONS
from discreet.tables.keys import SAMPLED

N = 2_000


def frame(keys):
    return pa.table({"id": np.arange(len(keys)), "sex": np.arange(len(keys)) % 2, "k": keys})


def uniform(rule, n=N):
    return stream(1, "keys").integers(0, rule.modulus, n)


@pytest.mark.parametrize("rule", CONVENTIONS.values(), ids=str)
@pytest.mark.parametrize("kind", [pa.int64(), pa.uint32(), pa.string()])
def test_the_engine_counts_keys_as_numpy_does(rule, kind):
    keys = uniform(rule)
    keys[:50] = keys[50]
    found = count_keys(dc.open(frame(pa.array(keys).cast(kind)), key="k", convention=rule))
    high = np.bincount(keys * 64 // rule.modulus, minlength=64)
    np.testing.assert_array_equal(found.high, high)
    np.testing.assert_array_equal(found.low, np.bincount(keys % 64, minlength=64))
    assert (found.n, found.distinct) == (N, len(set(keys[keys % 64 < SAMPLED].tolist())))


@pytest.mark.parametrize("engine", ["ibis", "numpy"])
def test_row_numbers_are_no_keys(engine):
    data = dc.open(frame(np.arange(N)), key="k")
    with pytest.raises(KeysError, match="not uniform"):
        data.tabulate("sex", engine=engine)


def test_row_numbers_modulo_256_are_sequential():
    data = dc.open(frame(np.arange(N) % 256), key="k", convention="ons-256")
    with pytest.raises(KeysError, match="sequential"):
        data.tabulate("sex")


def test_fractions_are_judged_too():
    good = uniform(CONVENTIONS["ptable"]) / 10**8
    dc.open(frame(good), key="k", convention="ptable").tabulate("sex")
    with pytest.raises(KeysError, match="not uniform"):
        dc.open(frame(good / 2), key="k", convention="ptable").tabulate("sex")


def test_keys_in_a_side_table_are_judged():
    side = {"id": np.arange(N), RECORD_KEY: np.full(N, 7)}
    with pytest.raises(KeysError, match="constant"):
        dc.open(frame(np.arange(N)), keys=side, id="id").tabulate("sex")


def test_the_right_convention_makes_keys_right():
    keys = uniform(CONVENTIONS["ons-256"])
    data = dc.open(frame(keys), key="k")
    with pytest.raises(KeysError, match="convention="):
        data.tabulate("sex")
    data.with_roles(convention="ons-256").tabulate("sex")


def test_keys_are_counted_once_and_ours_not_at_all(monkeypatch, tmp_path):
    asked = []
    real = key_check.count_keys
    monkeypatch.setattr(key_check, "count_keys", lambda data: asked.append(1) or real(data))
    given = frame(uniform(CONVENTIONS["discreet"]))
    data = dc.open(given, key="k", id="id")
    data.tabulate("sex")
    data.recode(sex={0: 1}).tabulate("sex")
    assert asked == [1]
    ours = dc.open(given, id="id").with_keys(dc.Secret.generate())
    ours.tabulate("sex")
    path = ours.write_keys(tmp_path / "keys.parquet")
    dc.open(given, keys=path).tabulate("sex")
    assert asked == [1]
    data.with_roles(key="k").tabulate("sex")
    assert asked == [1, 1]


def test_a_refusal_is_not_forgotten():
    data = dc.open(frame(np.arange(N)), key="k")
    for _ in range(2):
        with pytest.raises(KeysError):
            data.tabulate("sex")
