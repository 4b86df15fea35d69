"""The most likely table in the study of the fair comparison, and what makes its check fail."""

from dataclasses import replace

import numpy as np
import pytest

from discreet_studies.fair_comparison import likely
from discreet_studies.fair_comparison.example import PartyTable
from discreet_studies.model import Outcome


@pytest.fixture(scope="module")
def found():
    return likely.fit_releases(PartyTable.of_the_paper(), 6, 1)


def test_the_most_likely_table_is_most_likely_and_nearness_is_not_judged(found):
    most, nearer = likely.fit_findings(found)
    assert (most.outcome, nearer.outcome) == (Outcome.holds, Outcome.not_judged)
    assert len(found.likelihoods) == 6
    assert set(found.deviations) == {"published", *likely.FITTERS}


def test_a_table_below_the_truth_or_below_its_bound_is_noticed(found):
    low = replace(found, likelihoods=found.of_the_truth - 0.1)
    far = replace(found, gaps=found.gaps + 0.01)
    for wrong in (low, far):
        assert next(likely.fit_findings(wrong)).outcome is Outcome.fails


def test_likelihoods_are_those_of_the_fit():
    example = PartyTable.of_the_paper()
    released = example.table.simulate(likely.cell_key(), seed=3)
    fitted = released.fit("noise-likelihood")
    value = likely.log_likelihood(released.z, fitted.z)
    assert value == pytest.approx(fitted.fit_result.notes["log_likelihood"], abs=1e-8)
    assert likely.log_likelihood(released.z + 50, example.table.z) == -np.inf
    rounded = example.design.aggregate(released.fit("non-negative").y.round())
    assert likely.log_likelihood(released.z, rounded) <= value + 1e-9
