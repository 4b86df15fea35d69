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

from discreet import Secret
from discreet.errors import KeysError
from discreet.records.secret import FEWEST_BITS, definition, surprise
from discreet.tables import CONVENTIONS

MATERIAL = b"91b2c07f6e3d85a4d0f1728c9be6435a"
DIGITS = b"5f0c9a7be2d4186370abfe5192c8d7e46b3a1c0f8e9d2745f6e1b0c3a4d59782"


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
    with pytest.raises(KeysError, match="31 bytes"):
        Secret(b"x" * 31 + b"\n")


def private(path, content):
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def test_secrets_of_the_first_version_give_the_same_keys(tmp_path, monkeypatch):
    """The values were made by version 0.1 from the same file."""
    monkeypatch.setattr("discreet.records.secret.FEWEST_BITS", 0)
    digits = b"00112233445566778899aabbccddeeff" * 2
    secret = Secret.from_file(private(tmp_path / "s", digits + b"\n"))
    assert secret.keys_for_ids([1, 42, "Åse"]).tolist() == [955830923, 1565699480, 1644436549]
    assert secret.keys_for_ids([1, 42, "Åse"], "ons-256").tolist() == [139, 152, 69]
    assert secret.zero_key([{"sex": "f"}, {}]).tolist() == [1482509825, 1905503743]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        DIGITS[:-1],
        DIGITS + b"0",
        DIGITS.upper(),
        DIGITS + b"\n\n",
        DIGITS + b"\r\n",
        DIGITS + b" ",
        b" " + DIGITS,
        b"\xef\xbb\xbf" + DIGITS,
        b"g" + DIGITS[1:],
        b"person,sex,age\n" + b"1,f,34\n" * 1000,
        bytes(range(32)),
    ],
)
def test_only_a_secret_file_is_taken_for_one(tmp_path, monkeypatch, content):
    for mode in (0o600, 0o644):
        path = private(tmp_path / "s", content)
        path.chmod(mode)
        with pytest.raises(KeysError, match="64 hexadecimal digits.*create=True") as caught:
            Secret.from_file(path, create=True)
        assert "chmod" not in str(caught.value)
        assert path.read_bytes() == content
    if b"\0" not in content:
        monkeypatch.setenv("DISCREET_SECRET", os.fsdecode(content))
        with pytest.raises(KeysError, match="64 hexadecimal digits"):
            Secret.from_env("DISCREET_SECRET")


def test_keys_of_an_edition_are_unrelated_to_others(secret):
    ids = np.arange(2000)
    kept, one, two = (secret.keys_for_ids(ids, edition=e) for e in (None, "1", "2"))
    for a, b in ((kept, one), (kept, two), (one, two)):
        assert (a == b).sum() < 3
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.1
    np.testing.assert_array_equal(one, secret.keys_for_ids(ids, edition="1"))
    assert secret.keys_for_ids(["1x"], edition="1") != secret.keys_for_ids(["x"], edition="11")


def test_mixed_keys_are_the_documented_hash(secret):
    key = hashlib.blake2b(MATERIAL).digest()
    text = b"discreet cell noise\0" + (4).to_bytes(8, "big") + b"pram" + (7).to_bytes(8, "big")
    expected = hashlib.blake2b(text, key=key, digest_size=8).digest()
    assert secret.mix_keys(np.array([7]), "pram") == [int.from_bytes(expected[:4], "big")]


def test_mixed_keys_are_uniform_and_unrelated_between_purposes(secret):
    keys = np.arange(20_000)
    one, two = secret.mix_keys(keys, "pram"), secret.mix_keys(keys, "drop-add")
    for mixed in (one, two):
        assert mixed.dtype == np.int64
        assert mixed.min() >= 0
        counts = np.bincount(mixed * 16 // 2**32, minlength=16)
        assert ((counts - 1250) ** 2 / 1250).sum() < 60  # chi-square, 15 degrees: p > 1e-6
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.04
    other = Secret(MATERIAL[::-1]).mix_keys(keys, "pram")
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.04


def test_the_same_key_is_mixed_alike_in_any_company(secret):
    keys = np.array([5, 3, 5, 2**32 - 1, 3])
    mixed = secret.mix_keys(keys, "x")
    assert mixed[0] == mixed[2] == secret.mix_keys(np.array([5]), "x")[0]
    assert mixed[1] == mixed[4] != mixed[0]
    assert secret.mix_keys(np.array([], dtype=np.int64), "x").shape == (0,)


def test_a_generator_depends_on_secret_and_message_only(secret):
    def drawn(one, message):
        return one.generator(message).integers(2**63, size=4).tolist()

    again = Secret(MATERIAL)
    assert drawn(secret, b"table") == drawn(again, b"table")
    others = [drawn(secret, b"tablf"), drawn(secret, b""), drawn(Secret(MATERIAL[::-1]), b"table")]
    assert len({tuple(d) for d in [drawn(secret, b"table"), *others]}) == 4


def test_a_generator_keeps_all_256_bits(secret):
    pool = secret.generator(b"x").bit_generator.seed_seq.pool
    assert len(pool) * 32 == 256


def test_the_mark_tells_secrets_apart(secret, tmp_path):
    assert secret.mark == Secret(MATERIAL).mark != Secret(MATERIAL[::-1]).mark
    assert len(bytes.fromhex(secret.mark)) == 8


def test_the_demo_secret_is_fixed_and_says_that_it_is_public(secret):
    assert Secret.demo().mark == Secret.demo().mark != secret.mark
    assert Secret.demo().is_public
    assert not secret.is_public
    assert not Secret.generate().is_public


def test_a_secret_is_all_that_a_table_needs(secret):
    from discreet.tables.truth import SecretLike

    expected = {name for name in vars(SecretLike) if not name.startswith("_")}
    assert expected == {"is_public", "mark", "zero_key", "mix_keys", "cell_marks", "generator"}
    assert expected <= set(dir(secret))


def test_environment_and_file_agree(tmp_path, monkeypatch):
    path = private(tmp_path / "s", DIGITS + b"\n")
    monkeypatch.setenv("DISCREET_SECRET", DIGITS.decode())
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


def test_a_share_of_the_keys_is_renewed_at_each_edition_and_comes_back(secret):
    ids, mode = np.arange(4_000), "renewed:0.1"
    keys = [secret.keys_for_ids(ids, edition=f"2026-{m:02}", mode=mode) for m in (1, 2, 3, 12)]
    changed = [(keys[k] != keys[k + 1]).mean() for k in range(2)]
    assert changed == pytest.approx([0.1, 0.1], abs=0.02)
    assert (keys[0] != keys[3]).mean() == pytest.approx(1 - 0.9**11, abs=0.03)
    again = secret.keys_for_ids(ids[::-1], edition="2026-02", mode=mode)
    np.testing.assert_array_equal(again[::-1], keys[1])


@pytest.mark.parametrize(
    "material",
    [
        bytes(32),
        b"x" * 32,
        b"swordfish" * 4,
        bytes(range(32)),
        bytes(range(64, 0, -2)),
        b"abcdefghijklmnopqrstuvwxyz012345",
        b"0" * 64,
        f"{7:064x}".encode(),
        bytes(range(32)).hex().encode(),
        b"0123456789" * 4,
        b"ab" * 31 + b"cd",
        b"2026-01-01 2026-01-02 2026-01-03",
    ],
)
def test_what_anybody_can_guess_is_no_secret(material):
    with pytest.raises(KeysError, match="can be guessed.*create=True") as why:
        Secret(material)
    assert material.decode("latin-1")[:8] not in str(why.value)


def test_what_the_system_draws_is_never_refused():
    rng = np.random.default_rng(1)
    drawn = [rng.bytes(32) for _ in range(500)]
    least = min(surprise(each) for raw in drawn for each in (raw, raw.hex().encode()))
    assert least > FEWEST_BITS + 20


def test_a_secret_file_of_zeros_is_refused(tmp_path):
    with pytest.raises(KeysError, match="can be guessed"):
        Secret.from_file(private(tmp_path / "s", b"0" * 64))
