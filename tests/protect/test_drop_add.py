import numpy as np
import pytest

import discreet as dc
from discreet import registry
from discreet.errors import ParameterError
from discreet.testing import check_method
from tests.protect.tables import keyed_party, square


@pytest.mark.parametrize(
    ("method", "draws"),
    [
        (dc.DropAdd(), 100_000),
        (dc.DropAdd(share=0.2, cap=3, source="seed"), 100_000),
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
    table = square(np.full((40, 50), count))
    moves = table.protect(dc.DropAdd(source="seed"), seed=count).z - count
    assert set(moves.tolist()) == set(range(-q, q + 1))
    changed = np.mean(moves != 0)
    np.testing.assert_allclose(changed, 2 * q / (2 * q + 1), atol=0.05)


def test_by_key_a_seed_is_refused_and_by_seed_it_is_needed():
    table = keyed_party()
    by_key, by_seed = dc.DropAdd(), dc.DropAdd(source="seed")
    assert by_key.claims.consistent
    assert not by_seed.claims.consistent
    with pytest.raises(ParameterError, match="remove seed"):
        table.protect(by_key, seed=1)
    with pytest.raises(ParameterError, match="give it a seed"):
        table.protect(by_seed)
    with pytest.raises(ParameterError, match="seed"):
        by_seed(table)


def test_precision_comes_from_the_published_counts_alone():
    counts = np.array([[1, 50, 150], [950, 5000, 0]])
    release = square(counts).protect(dc.DropAdd(source="seed"), seed=1)
    q = np.minimum(7, np.ceil(0.01 * np.maximum(release.z, 1)))
    np.testing.assert_allclose(release.precision, 3 / (q * (q + 1)))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"share": 0}, "share"),
        ({"share": 1.5}, "share"),
        ({"cap": 0}, "cap"),
        ({"source": "system"}, "source"),
        ({"mean_weight": 3.0}, "no effect"),
    ],
)
def test_wrong_options_are_refused(given, words):
    with pytest.raises(ParameterError, match=words):
        registry.build("method", "drop-add", given)


def test_the_statement_says_it_in_words():
    release = keyed_party().protect(dc.DropAdd(share=0.05, cap=4))
    assert "up to 5 % of their size" in release.statement.text
    assert release.statement.steps[0].parameters["cap"] == 4
