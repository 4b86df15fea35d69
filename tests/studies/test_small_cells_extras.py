"""Allowances, tails, plain adjustment and the attack of section 5, and what makes them fail."""

import numpy as np
import pytest

from discreet_studies.eliminating_small_cells import extras
from discreet_studies.eliminating_small_cells.results import matrix
from discreet_studies.model import Outcome


def test_allowances_lower_what_lies_beside_them_and_without_effect_they_do_not():
    plain, wide, largest = extras.safe_excesses(extras.RUNS[:2])
    assert (wide <= plain).all()
    assert (largest >= wide).all()
    unequal = np.array([4.0, 4, 4, 5, 4]), np.array([3.0, 3, 2, 3, 3])
    assert extras.allowance_finding(*unequal, unequal[1] + 2).outcome is Outcome.holds
    assert extras.allowance_finding(*unequal[::-1], unequal[1]).outcome is not Outcome.holds
    none = np.zeros(5)
    assert extras.allowance_finding(none, none, none).outcome is Outcome.undecided


def test_tails_are_compared_and_not_judged():
    found = extras.tail_finding(lambda D: extras.linear_table(D, extras.VARIANCE, tails="normal"))
    assert (found.outcome, found.holds) == (Outcome.not_judged, False)
    same = extras.tail_finding(matrix)
    assert "0 are nearer to normal tails (largest distance 0.000) and 0 to those" in same.evidence


@pytest.mark.parametrize("least", [None, 10.0])
def test_plain_adjustment_meets_the_proof(monkeypatch, least):
    if least is not None:
        monkeypatch.setattr(extras, "least_distance", lambda *_: least)
    wanted = Outcome.holds if least is None else Outcome.fails
    assert extras.plain_adjustment(4).outcome is wanted


def test_the_attack_finds_the_paper_s_example_and_nothing_in_another():
    assert extras.attack_finding(extras.EXAMPLE).outcome is Outcome.holds
    assert extras.attack_finding((3, 3, 6)).outcome is Outcome.fails
