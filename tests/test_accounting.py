import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import log_expit, logsumexp
from scipy.stats import binom

from discreet.accounting import rho_to_epsilon
from discreet.errors import ParameterError
from discreet.ledger import Cost, Total


def total(*costs):
    found = Total()
    for cost in costs:
        found = found.plus(cost)
    return found


def least_epsilon(rho, delta):
    """The infimum over Rényi orders of the bound behind the conversion, by brute force."""

    def bound(log_order):
        a = 1 + math.exp(log_order)
        return a * rho + math.log1p(-1 / a) - (math.log(delta) + math.log(a)) / (a - 1)

    grid = np.linspace(-15, 15, 3001)
    best = min(grid, key=bound)
    found = minimize_scalar(bound, bounds=(best - 0.02, best + 0.02), method="bounded")
    return max(0.0, min(bound(best), found.fun))


@pytest.mark.parametrize("rho", [1e-9, 1e-4, 0.05, 0.5, 3.0, 200.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-100])
def test_rho_becomes_the_least_epsilon_and_none_below_it(rho, delta):
    found, least = rho_to_epsilon(rho, delta), least_epsilon(rho, delta)
    assert least * (1 - 1e-9) <= found <= least * (1 + 1e-6)
    assert found <= rho + 2 * math.sqrt(rho * math.log(1 / delta))


@given(st.floats(1e-6, 50), st.sampled_from([1e-5, 1e-9, 1e-12]))
@settings(max_examples=30, deadline=None)
def test_rho_never_becomes_less_than_open_dp_says(rho, delta):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="f64")
    scale = math.sqrt(1 / (2 * rho))
    noise = dp.m.make_gaussian(*space, scale=scale)
    own = dp.c.make_zCDP_to_approxDP(noise).map(1.0).epsilon(delta)
    proved = noise.map(1.0)
    assert rho_to_epsilon(proved, delta) >= own


def test_the_ends_of_the_conversion():
    assert rho_to_epsilon(0.0, 0.0) == 0.0
    assert rho_to_epsilon(0.1, 0.0) == math.inf
    assert rho_to_epsilon(1e9, 1e-9) == math.inf
    with pytest.raises(ParameterError, match="rho must be a finite number"):
        rho_to_epsilon(-0.1, 1e-9)
    with pytest.raises(ParameterError, match="delta must be a finite number"):
        rho_to_epsilon(0.1, 1.0)


@pytest.mark.parametrize(
    ("given_cost", "message"),
    [
        ({}, "epsilon .* or as rho"),
        ({"epsilon": 1.0, "rho": 1.0}, "epsilon .* or as rho"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"epsilon": math.inf}, "epsilon must be"),
        ({"epsilon": True}, "epsilon must be"),
        ({"epsilon": "1"}, "epsilon must be"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta must be"),
        ({"rho": 1.0, "delta": 1e-9}, "rho has no delta"),
    ],
)
def test_a_cost_is_epsilon_with_delta_or_rho(given_cost, message):
    with pytest.raises(ParameterError, match=message):
        Cost(**given_cost)


def test_ten_tenths_are_one():
    spent = Total(((Cost(0.1), 10),))
    assert spent.epsilon == 1.0
    assert spent.is_within(Cost(1.0))
    assert not spent.plus(Cost(1e-15)).is_within(Cost(1.0))
    assert total(Cost(0.1), Cost(0.2)).epsilon == 0.3


@given(st.lists(st.floats(1e-12, 1e3), max_size=20))
def test_sums_are_never_below_the_decimal_sum(amounts):
    exact = sum((Fraction(repr(amount)) for amount in amounts), Fraction(0))
    for found in (total(*map(Cost, amounts)).epsilon, total(*(Cost(rho=a) for a in amounts)).rho):
        assert Fraction(repr(found)) >= exact
        assert found == pytest.approx(float(exact), rel=1e-15)


def test_each_kind_of_cost_has_its_own_sum():
    spent = total(Cost(0.5), Cost(0.25, 1e-9), Cost(rho=0.1), Cost(rho=0.2), Cost(np.float64(1)))
    assert (spent.epsilon, spent.delta, spent.rho, spent.entries) == (1.75, 1e-9, 0.3, 5)


def test_costs_in_epsilon_need_no_delta_and_costs_in_rho_do():
    assert total(Cost(0.5), Cost(0.5)).epsilon_at(0.0) == 1.0
    assert total(Cost(rho=0.1)).epsilon_at(0.0) == math.inf
    assert total(Cost(0.1, 1e-9)).epsilon_at(1e-10) == math.inf
    assert total(Cost(0.1, 1e-9)).epsilon_at(1e-9) == 0.1
    assert total(Cost(0.1, 1e-9), Cost(rho=0.1)).epsilon_at(1e-9) == math.inf


def test_delta_that_is_spent_is_not_there_for_the_conversion():
    spent = total(Cost(5.0, 4e-9), Cost(rho=0.01))
    assert spent.epsilon_at(1e-8) == pytest.approx(5.0 + rho_to_epsilon(0.01, 6e-9), rel=1e-12)


def test_the_smaller_bound_counts():
    few, many = Total(((Cost(1.0), 2),)), Total(((Cost(0.01), 1000),))
    assert few.epsilon_at(1e-9) == 2.0
    assert many.epsilon_at(1e-9) == rho_to_epsilon(0.05, 1e-9) < 2 < many.epsilon_at(0.0)
    both = Total(((Cost(0.01), 1000), (Cost(rho=0.1), 1)))
    assert both.epsilon_at(1e-9) == rho_to_epsilon(0.15, 1e-9)


def exact_delta(epsilon, amount, times):
    """δ at ε of binary answers that are told wrongly with odds e^amount, many times."""
    right = np.arange(times + 1)
    log_p = binom.logpmf(right, times, math.exp(log_expit(amount)))
    loss = (2 * right - times) * amount
    over = loss > epsilon
    if not over.any():
        return 0.0
    return math.exp(logsumexp(log_p[over] + np.log(-np.expm1(epsilon - loss[over]))))


@pytest.mark.parametrize(("amount", "times"), [(1.0, 3), (0.1, 100), (0.1, 1000), (0.01, 5000)])
@pytest.mark.parametrize("delta", [1e-4, 1e-9])
def test_the_bound_holds_for_the_worst_mechanism_of_pure_epsilon(amount, times, delta):
    proved = Total(((Cost(amount), times),)).epsilon_at(delta)
    assert exact_delta(proved, amount, times) <= delta * (1 + 1e-6)
    assert exact_delta(proved / 2, amount, times) > delta  # and it is no empty bound


def test_costs_are_written_for_people():
    assert str(Cost(0.5)) == "ε = 0.5"
    assert str(Cost(0.5, 1e-9)) == "ε = 0.5, δ = 1e-09"
    assert str(Cost(rho=0.125)) == "ρ = 0.125"
