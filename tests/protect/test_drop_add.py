import numpy as np
import pytest

import discreet as dc
from discreet import registry
from discreet.errors import ParameterError, UnknownNameError
from discreet.testing import check_method
from tests.protect.tables import SECRET, keyed_party, square


@pytest.mark.parametrize(
    ("method", "draws"),
    [
        (dc.DropAdd(), 100_000),
        (dc.DropAdd(share=0.2, cap=3), 100_000),
        (dc.DropAdd(margins="summed"), 5_000),
    ],
    ids=str,
)
def test_the_battery_finds_nothing_to_complain_of(method, draws):
    check_method(method, draws=draws)


@pytest.mark.parametrize(
    ("count", "q"), [(1, 1), (100, 1), (101, 2), (200, 2), (201, 3), (600, 6), (601, 7), (10**6, 7)]
)
def test_the_reach_is_the_share_rounded_up_and_capped(count, q):
    table = square(np.full((40, 50), count)).rekeyed(np.random.default_rng(count))
    moves = table.with_secret(SECRET).protect(dc.DropAdd()).z - count
    assert set(moves.tolist()) == set(range(-q, q + 1))
    changed = np.mean(moves != 0)
    np.testing.assert_allclose(changed, 2 * q / (2 * q + 1), atol=0.05)


def test_with_a_secret_keys_are_hashed_and_without_one_they_are_looked_up_themselves():
    table, method = keyed_party(), dc.DropAdd(share=0.5)
    assert method.claims.consistent
    with pytest.raises(ParameterError, match="not from a seed"):
        table.protect(method, seed=1)
    by_key = table.z + method.law.noise(table.z, table.cell_keys, 2**32)
    np.testing.assert_array_equal(table.protect(method).z, by_key)
    keys = SECRET.mix_keys(table.cell_keys, method.purpose)
    hashed = table.z + method.law.noise(table.z, keys, 2**32)
    np.testing.assert_array_equal(table.with_secret(SECRET).protect(method).z, hashed)
    assert not np.array_equal(by_key, hashed)


def test_nobody_with_the_keys_and_without_the_secret_can_repeat_the_noise():
    table = square(np.full((40, 50), 50)).rekeyed(np.random.default_rng(1))
    method = dc.DropAdd(share=1.0, cap=3)
    shown, guessed = (t.protect(method).z for t in (table.with_secret(SECRET), table))
    np.testing.assert_allclose((shown == guessed).mean(), 1 / 7, atol=0.03)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"share": 0}, "share"),
        ({"share": 1.5}, "share"),
        ({"cap": 0}, "cap"),
        ({"grid": -1}, "grid"),
    ],
)
def test_wrong_options_are_refused(given, words):
    with pytest.raises(ParameterError, match=words):
        registry.build("method", "drop-add", given)


@pytest.mark.parametrize("gone", ["source", "weighting", "mean_weight"])
def test_options_of_the_past_are_unknown(gone):
    with pytest.raises(UnknownNameError, match=gone):
        registry.build("method", "drop-add", {gone: "seed"})


def test_the_statement_says_it_in_words():
    release = keyed_party().protect(dc.DropAdd(share=0.05, cap=4))
    assert "up to 5 % of their size" in release.statement.text
    assert release.statement.steps[-1].parameters["cap"] == 4
