"""Weighted counts in whole steps: the study's own checks, and what makes them fail."""

from dataclasses import replace

import pytest

from discreet_studies.model import Outcome
from discreet_studies.three_approaches import steps


@pytest.fixture(scope="module")
def found():
    return steps.publish_in_steps(40, 1)


def outcomes(found):
    return [finding.outcome for finding in steps.step_findings(found)]


def test_cost_and_spread_of_weights_hold_and_no_order_is_contradicted(found):
    cost, last_digit, cell_weight, spread = outcomes(found)
    assert (cost, spread) == (Outcome.holds, Outcome.holds)
    assert {last_digit, cell_weight} <= {Outcome.holds, Outcome.undecided}
    assert all(finding.is_ours for finding in steps.step_findings(found))


def test_the_epsilon_of_the_sample_counts_is_not_the_cost(found):
    assert (steps.EPSILON, found.epsilon) == (2, 4)
    assert outcomes(replace(found, epsilon=steps.EPSILON))[0] is Outcome.fails
    assert outcomes(replace(found, delta=found.delta / 2))[0] is Outcome.fails


def test_steps_of_one_record_are_counted():
    """Twenty-nine is less than a step, and can still cross a half."""
    assert [steps.most_steps(w, 30.0) for w in (29, 31, 40, 61, 100)] == [1, 2, 2, 3, 4]


def test_weights_that_vary_more_are_noticed(monkeypatch):
    monkeypatch.setattr(steps, "LARGEST", 400.0)
    monkeypatch.setattr(steps, "_ACCEPTED", 1.0)
    monkeypatch.setattr(steps, "sample", lambda rng, people: 1 + people // rng.choice([5, 300], 49))
    found = steps.publish_in_steps(3, 1)
    assert found.variances.max() > steps.LITTLE
    assert outcomes(found)[3] is Outcome.fails


def test_a_wrong_order_is_contradicted(found):
    swapped = {**found.distances, "DP (4)": found.distances["Q (4)"] + 1}
    assert outcomes(replace(found, distances=swapped))[1] is Outcome.fails
