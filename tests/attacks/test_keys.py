"""Keys that anybody can guess, and files that are no secret."""

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import KeysError
from tests.attacks.victims import MODULUS, PTABLE, flat_axes, keyed_table

N = 2_000
BAD = {
    "row numbers": np.arange(N),
    "row numbers from one": np.arange(1, N + 1),
    "a constant": np.full(N, 3_000_000_000),
    "zeros": np.zeros(N, dtype=np.int64),
    "steps": np.arange(N) * (MODULUS // N),
    "a linear recurrence": np.arange(N) * 2_654_435_761 % MODULUS,
    "a small range": np.random.default_rng(1).integers(2**20, size=N),
    "few values": np.random.default_rng(1).choice([7, 2**31], N),
    "ages": np.random.default_rng(1).integers(0, 90, N),
}


def people(key):
    rng = np.random.default_rng(2)
    return pa.table(
        {
            "region": np.char.add("r", rng.integers(25, size=N).astype(str)),
            "age": np.char.add("a", rng.integers(25, size=N).astype(str)),
            "k": key,
        }
    )


def test_row_numbers_would_give_nearly_all_cells_the_same_noise():
    """The control: sums of small numbers are small fractions of the key range."""
    rng = np.random.default_rng(2)
    cell = rng.integers(25 * 25, size=10 * N)
    sums = np.bincount(cell, weights=np.arange(10 * N), minlength=625).astype(np.int64)
    counts = np.bincount(cell, minlength=625)
    table = keyed_table(counts, flat_axes(a=25, b=25), [("a", "b")], keys=sums)
    noise = table.protect(dc.CellKey(PTABLE)).z - table.z
    assert np.mean(noise == -5) > 0.95


@pytest.mark.parametrize("kind", BAD)
def test_keys_that_can_be_guessed_are_refused(kind):
    data = dc.open(people(BAD[kind]), key="k")
    with pytest.raises(KeysError) as error:
        data.tabulate("region*age")
    assert error.value.public() != str(error.value)


@pytest.mark.parametrize("kind", BAD)
def test_cell_keys_that_can_be_guessed_are_refused(kind):
    rng = np.random.default_rng(3)
    frame = {"a": np.arange(N) // 40, "b": np.arange(N) % 40, "n": 1 + rng.poisson(9, N)}
    with pytest.raises(KeysError):
        dc.Table.from_counts({**frame, "k": BAD[kind]}, "n", "a*b", key="k")


def test_random_keys_are_taken():
    data = dc.open(people(np.random.default_rng(1).integers(MODULUS, size=N)), key="k")
    table = data.tabulate("region*age")
    table.protect(dc.CellKey(PTABLE))
    bytes_ = np.random.default_rng(1).integers(256, size=N)
    dc.open(people(bytes_), key="k", convention="ons-256").tabulate("region*age")


CENSUS = "region,age,sex\n" + "north,34,f\nsouth,71,m\n" * 500


@pytest.mark.parametrize(
    "content",
    [
        CENSUS,
        "correct horse battery staple " * 4,
        "0" * 63,
        "0" * 128,
        "ABCDEF0123456789" * 4,
        "a1b2c3d4" * 8 + "\n\n",
        " " + "a1b2c3d4" * 8,
        "",
    ],
    ids=["census", "words", "short", "long", "upper case", "two lines", "space", "empty"],
)
def test_a_file_that_is_no_secret_is_refused(tmp_path, content):
    path = tmp_path / "people.csv"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(KeysError, match="does not hold a secret") as error:
        dc.Secret.from_file(path)
    assert not content.strip() or content.strip()[:12] not in str(error.value)
    with pytest.raises(KeysError, match="does not hold a secret"):
        dc.open(people(np.arange(N)), id="k", secret=path)


def test_a_secret_that_others_can_read_is_refused(tmp_path):
    path = tmp_path / "keys.secret"
    dc.Secret.from_file(path, create=True)
    path.chmod(0o644)
    with pytest.raises(KeysError, match="others can reach"):
        dc.Secret.from_file(path)
