"""Rounding and choice of margins on nine cells, and what makes these checks fail."""

import numpy as np
import pytest

from discreet_studies.inner_frequencies import extras
from discreet_studies.model import Outcome


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_both_checks_hold(seed):
    assert [f.outcome for f in extras.extra_findings(seed)] == [Outcome.holds] * 2


def test_biased_roundings_and_lost_totals_are_noticed():
    drawn = extras.draw_roundings(1)
    moved = drawn["multinomial"].copy()
    moved[: extras.DRAWS // 4, :2] += [1, -1]  # the total stays, two cells move by a quarter
    lost = drawn["unbiased"]
    swapped = {"multinomial": drawn["unbiased"], "unbiased": drawn["multinomial"]}
    for wrong in ({**drawn, "multinomial": moved}, {**drawn, "multinomial": lost}, swapped):
        assert extras.rounding_finding(wrong).outcome is Outcome.fails


@pytest.mark.parametrize("cells", [[9, 9, 9, 9, 9, 9, 9, 9, 9], [40, 1, 1, 1, 40, 1, 1, 1, 40]])
def test_another_association_is_noticed(monkeypatch, cells):
    monkeypatch.setattr(extras, "INNER", np.array(cells, dtype=float))
    assert extras.margins_finding().outcome is Outcome.fails
