import copy
import hashlib
import json
import logging
import os
import pickle
import stat
import threading

import numpy as np
import pyarrow as pa
import pytest

from discreet.design.keys import CONVENTIONS
from discreet.errors import KeysError
from discreet.microdata.secret import Secret, definition

MATERIAL = b"0123456789abcdef0123456789abcdef"


@pytest.fixture
def secret():
    return Secret(MATERIAL)


def test_key_is_the_documented_hash(secret):
    key = hashlib.blake2b(MATERIAL).digest()
    expected = hashlib.blake2b(b"discreet record key\0" + b"42", key=key, digest_size=8).digest()
    assert secret.keys_for_ids([42]) == [int.from_bytes(expected, "big") % 2**32]


def test_same_text_same_key_in_any_container(secret):
    expected = secret.keys_for_ids(["7", "80"])
    for ids in (
        [7, 80],
        np.array([7, 80], dtype=np.int16),
        np.array([7, 80], dtype=np.uint64),
        pa.array([7, 80]),
        pa.chunked_array([["7"], ["80"]]),
        pa.array(["7", "80"], pa.large_string()),
        pa.array(["7", "80"]).dictionary_encode(),
        ["7", 80.0],
        iter([7, "80"]),
    ):
        np.testing.assert_array_equal(secret.keys_for_ids(ids), expected)


def test_non_ascii_ids(secret):
    np.testing.assert_array_equal(
        secret.keys_for_ids(["Åse", "\ud800"])[:1], secret.keys_for_ids(pa.array(["Åse"]))
    )


def test_no_ids_no_keys(secret):
    assert secret.keys_for_ids([]).shape == (0,)
    assert secret.zero_key([]).dtype == np.int64


@pytest.mark.parametrize(
    "ids", [[1, None], pa.array([1, None]), pa.array(["a", None]), [float("nan")]]
)
def test_missing_ids_are_refused(secret, ids):
    with pytest.raises(KeysError, match="missing"):
        secret.keys_for_ids(ids)


@pytest.mark.parametrize("name", sorted(CONVENTIONS))
def test_keys_fill_the_range_of_every_convention(secret, name):
    m = CONVENTIONS[name].modulus
    keys = secret.keys_for_ids(np.arange(20_000), name)
    assert keys.dtype == np.int64
    assert keys.min() >= 0
    assert keys.max() < m
    counts = np.bincount((keys * 16) // m, minlength=16)
    expected = len(keys) / 16
    assert ((counts - expected) ** 2 / expected).sum() < 45  # chi-square, 15 degrees: p > 1e-4


def test_other_secrets_give_other_keys(secret):
    other = Secret(MATERIAL[::-1])
    ids = np.arange(1000)
    assert (secret.keys_for_ids(ids) == other.keys_for_ids(ids)).sum() < 3
    assert (Secret.generate().keys_for_ids(ids) == Secret.generate().keys_for_ids(ids)).sum() < 3


def test_ids_and_cells_are_different_domains(secret):
    text = definition({"a": "b"}).decode()
    assert secret.zero_key([{"a": "b"}]) != secret.keys_for_ids([text])


def test_zero_key_ignores_the_order_of_variables(secret):
    one, two = secret.zero_key([{"age": "1", "sex": "2"}, {"sex": "2", "age": "1"}])
    assert one == two


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"ab": "c"}, {"a": "bc"}),
        ({"a": "b", "c": "d"}, {"a": "bcd"}),
        ({"a": "1", "b": "2"}, {"a": "2", "b": "1"}),
        ({}, {"": ""}),
        ({"a": ""}, {"": "a"}),
        ({"a": "b\0"}, {"a": "b"}),
    ],
)
def test_definitions_are_unambiguous(one, other):
    assert definition(one) != definition(other)


def test_zero_keys_follow_the_convention(secret):
    cells = [{"v": str(i)} for i in range(2000)]
    keys = secret.zero_key(cells, "ons-256")
    assert set(keys) == set(range(256))
    np.testing.assert_array_equal(keys, secret.zero_key(cells, CONVENTIONS["ons-256"]))


def test_a_file_is_created_once_and_private(tmp_path):
    path = tmp_path / "keys.secret"
    one = Secret.from_file(path, create=True)
    content = path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(bytes.fromhex(content.decode())) == 32
    two = Secret.from_file(path, create=True)
    assert path.read_bytes() == content
    assert one.keys_for_ids([1]) == two.keys_for_ids([1])
    assert list(tmp_path.iterdir()) == [path]


def test_a_private_file_even_under_a_loose_umask(tmp_path):
    before = os.umask(0)
    try:
        Secret.from_file(tmp_path / "s", create=True)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600


def test_creating_in_many_threads_gives_one_secret(tmp_path):
    found = []

    def make():
        found.append(int(Secret.from_file(tmp_path / "s", create=True).keys_for_ids([1])[0]))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["s"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o610])
def test_a_file_that_others_can_reach_is_refused(tmp_path, mode):
    path = tmp_path / "s"
    Secret.from_file(path, create=True)
    path.chmod(mode)
    with pytest.raises(KeysError, match="chmod 600"):
        Secret.from_file(path)


def test_errors_name_the_file_and_the_remedy(tmp_path):
    with pytest.raises(KeysError, match="create=True"):
        Secret.from_file(tmp_path / "absent")
    with pytest.raises(KeysError, match="cannot create"):
        Secret.from_file(tmp_path / "absent" / "s", create=True)
    with pytest.raises(KeysError, match="cannot read"):
        Secret.from_file(tmp_path)
    short = tmp_path / "short"
    short.write_bytes(b"x" * 31 + b"\n")
    short.chmod(0o600)
    with pytest.raises(KeysError, match="31 bytes"):
        Secret.from_file(short)


def test_environment_and_file_agree(tmp_path, monkeypatch):
    path = tmp_path / "s"
    path.write_bytes(MATERIAL + b"\n")
    path.chmod(0o600)
    monkeypatch.setenv("DISCREET_SECRET", MATERIAL.decode())
    ids = [1, 2]
    np.testing.assert_array_equal(
        Secret.from_file(path).keys_for_ids(ids),
        Secret.from_env("DISCREET_SECRET").keys_for_ids(ids),
    )
    monkeypatch.delenv("DISCREET_SECRET")
    with pytest.raises(KeysError, match="DISCREET_SECRET"):
        Secret.from_env("DISCREET_SECRET")


def shown(secret, caplog):
    """Everything a careless program could print of a secret."""
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("test").warning("%s %r %s", secret, secret, vars_of(secret))
    errors = []
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy, json.dumps):
        with pytest.raises((KeysError, TypeError)) as caught:
            attempt(secret)
        errors.append(repr(caught.value))
    return f"{secret} {secret!r} {[secret]} {caplog.text} {errors} {dir(secret)}"


def vars_of(secret):
    return [getattr(secret, name) for name in dir(secret) if not name.startswith("__")]


def test_the_secret_is_not_shown_pickled_or_exported(secret, caplog):
    text = shown(secret, caplog)
    assert "Secret(…)" in text
    for trace in (MATERIAL.decode(), MATERIAL.hex(), hashlib.blake2b(MATERIAL).hexdigest()):
        assert trace not in text


def test_no_attribute_holds_the_secret(secret):
    stretched = hashlib.blake2b(MATERIAL).digest()
    for value in vars_of(secret):
        assert value not in (MATERIAL, MATERIAL.decode(), stretched, MATERIAL.hex())
    assert not hasattr(secret, "__dict__")


def test_errors_do_not_quote_the_secret():
    with pytest.raises(KeysError) as caught:
        Secret(b"too short but still secret")
    assert "still" not in str(caught.value)
