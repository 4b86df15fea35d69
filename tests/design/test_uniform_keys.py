import itertools
import math

import numpy as np
import pytest
from scipy.stats import multinomial

from discreet.errors import KeysError
from discreet.randomness import stream
from discreet.tables import CONVENTIONS, KeyConvention
from discreet.tables.keys import (
    FALSE_ALARM,
    FEWEST,
    SAMPLED,
    KeyCounts,
    _log_moments,
    buckets_of,
    chances_of,
    check_keys,
    distinct_chances,
    fault_of,
    spread_chances,
)

RULES = list(CONVENTIONS.values())
by_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


def counts_of(keys, rule):
    buckets = buckets_of(rule)
    high = np.bincount(keys * buckets // rule.modulus, minlength=buckets)
    low = np.bincount(keys % buckets, minlength=buckets)
    return KeyCounts(high, low, len(np.unique(keys[keys % buckets < SAMPLED])), rule)


@by_rule
@pytest.mark.parametrize("n", [FEWEST, 1_000, 100_000])
def test_uniform_keys_pass(rule, n):
    check_keys(stream(1, rule.name).integers(0, rule.modulus, n), rule)


@by_rule
@pytest.mark.parametrize("n", [FEWEST, 5_000, 100_000])
def test_row_numbers_are_refused(rule, n):
    for keys in (np.arange(n), np.arange(n) + 1, np.arange(n)[::-1]):
        with pytest.raises(KeysError, match="with_keys"):
            check_keys(keys % rule.modulus, rule)


@by_rule
def test_constant_keys_are_refused(rule):
    for key in (0, 1, rule.modulus - 1):
        with pytest.raises(KeysError, match="constant"):
            check_keys(np.full(FEWEST, key), rule)


@by_rule
def test_multiples_of_a_step_are_refused(rule):
    """Also where the step is as irregular as it can be."""
    m, n = rule.modulus, 20_000
    golden = int(m * (math.sqrt(5) - 1) / 2) | 1
    drawn = stream(2, rule.name).integers(1, m, 20)
    for step in (2, 3, 64, max(1, m // n), golden, 2_654_435_761 % m, *drawn):
        with pytest.raises(KeysError):
            check_keys(np.arange(n) * int(step) % m, rule)


@by_rule
def test_keys_that_leave_out_part_of_their_range_are_refused(rule):
    m, rng = rule.modulus, stream(3, rule.name)
    for keys in (
        rng.integers(m // 2, m, 1_000),
        rng.integers(0, m * 15 // 16, 20_000),
        rng.integers(0, m // 2, 1_000) * 2,
        rng.binomial(m - 1, 0.5, 1_000),
    ):
        with pytest.raises(KeysError, match="not uniform|not random"):
            check_keys(keys, rule)


def test_256_values_are_right_for_one_convention_and_wrong_for_another():
    rng = stream(4, "values")
    values = rng.integers(0, 2**32, 256)
    picked = rng.integers(0, 256, 10_000)
    check_keys(picked, "ons-256")
    with pytest.raises(KeysError):
        check_keys(picked, "discreet")
    with pytest.raises(KeysError):
        check_keys(values[picked], "discreet")
    with pytest.raises(KeysError, match="'discreet' convention"):
        check_keys(picked * 2**24, "discreet")


def test_few_keys_pass_unjudged():
    check_keys(np.zeros(FEWEST - 1, dtype=int), "discreet")
    check_keys(np.arange(FEWEST - 1), "ons-256")
    with pytest.raises(KeysError, match="lie in"):
        check_keys(np.array([256]), "ons-256")


@pytest.mark.parametrize(
    ("shares", "n"),
    [((0.5, 0.5), 12), ((0.2, 0.3, 0.5), 15), ((0.25, 0.25, 0.25, 0.25), 9)],
)
def test_spread_bounds_lie_above_exact_chances(shares, n):
    """Every possible outcome, against the chance of all that are as extreme."""
    shares = np.array(shares)
    outcomes = [
        np.array(o) for o in itertools.product(range(n + 1), repeat=len(shares)) if sum(o) == n
    ]
    chance = np.array([multinomial.pmf(o, n, shares) for o in outcomes])

    def measure(o):
        some = o > 0
        return float((o[some] * np.log(o[some] / (n * shares[some]))).sum())

    t = np.array([measure(o) for o in outcomes])
    for outcome, own in zip(outcomes, t, strict=True):
        even, uneven = spread_chances(outcome, shares)
        assert even >= chance[t <= own + 1e-12].sum() - 1e-12
        assert uneven >= chance[t >= own - 1e-12].sum() - 1e-12


def exact_distinct(n, m):
    """The chance of each number of distinct keys, one draw after the other."""
    chance = np.zeros(n + 1)
    chance[0] = 1.0
    for _ in range(n):
        d = np.arange(n + 1)
        stays = chance * d / m
        chance = stays + np.concatenate([[0], (chance * (1 - d / m))[:-1]])
    return chance


@pytest.mark.parametrize(("n", "m"), [(30, 1000), (200, 256), (500, 256), (100, 20), (50, 10**6)])
def test_distinct_bounds_lie_above_exact_chances(n, m):
    chance = exact_distinct(n, m)
    for d in range(1, min(n, m) + 1):
        few, many = distinct_chances(n, d, m)
        assert few >= chance[: d + 1].sum() * (1 - 1e-9)
        assert many >= chance[d:].sum() * (1 - 1e-9) - 1e-15


@pytest.mark.parametrize("mean", [10_000.0, 9_000.0])
def test_the_moments_of_large_means_lie_above_the_sums(mean):
    tilts = (0.95, 0.5, 0.05, -0.1, -3.0, -64.0, -1448.0)
    limit = 2 / mean - 0.5 * np.log1p(-np.array(tilts))
    assert (limit >= _log_moments(mean, tilts)).all()
    assert (limit <= _log_moments(mean, tilts) + 4e-4).all()


@pytest.mark.parametrize("rule", [CONVENTIONS["discreet"], CONVENTIONS["ons-256"]])
@pytest.mark.parametrize("n", [FEWEST, 3_000])
def test_no_chance_is_understated(rule, n):
    """A bound `p` may be met in a share `p` of all cases at most, at every `p` that can be seen."""
    rng, draws = stream(5, f"{rule.name} {n}"), 800
    chances = [chances_of(counts_of(rng.integers(0, rule.modulus, n), rule)) for _ in range(draws)]
    for fault in chances[0]:
        seen = np.sort([c[fault] for c in chances])
        expected = np.arange(1, draws + 1) / draws
        slack = 5 * np.sqrt(seen * (1 - seen) / draws) + 2 / draws
        assert (expected <= seen + slack).all(), fault


def test_the_tests_together_raise_a_false_alarm_of_less_than_a_billionth():
    counts = counts_of(stream(6, "any").integers(0, 2**32, 1_000), CONVENTIONS["discreet"])
    assert len(chances_of(counts)) * FALSE_ALARM < 1e-9


def test_any_modulus_can_be_judged():
    for m in (2, 3, 63, 64, 65, 1_000):
        rule = KeyConvention("own", m)
        keys = stream(7, str(m)).integers(0, m, 2_000)
        assert fault_of(counts_of(keys, rule)) is None
        is_caught = fault_of(counts_of(np.arange(2_000) % m, rule)) is not None
        assert is_caught == (m > 3)  # two or three equal numbers happen by chance
