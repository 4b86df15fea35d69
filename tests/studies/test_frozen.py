"""Stand-ins, tolerances and seeds change together with an entry of the log, or not at all."""

from dataclasses import replace

import pytest

from discreet_studies.eliminating_small_cells import study as small_cells
from discreet_studies.eliminating_small_cells.results import CensusSize, published_counts
from discreet_studies.frozen import SEEDS, digest, digest_counts, is_frozen
from discreet_studies.inner_frequencies import study as inner
from discreet_studies.inner_frequencies.standin import stand_in
from discreet_studies.model import Outcome
from tests.studies.test_inner_frequencies import SMALL

STUDIES = {"inner-frequencies": inner, "eliminating-small-cells": small_cells}
SAMPLES = {
    "inner-frequencies": lambda: stand_in(SMALL).y,
    "eliminating-small-cells": lambda: published_counts(CensusSize(region=16, age=10, country=14)),
}


@pytest.mark.parametrize("name", STUDIES)
def test_a_change_needs_an_entry_in_the_log(name):
    """Whoever changes a stand-in, a tolerance or a seed adds an entry with the reason first."""
    last = STUDIES[name].LOG[-1]
    assert digest(STUDIES[name].FROZEN) == last.digest
    assert digest_counts(SAMPLES[name]()) == last.counts
    assert is_frozen(STUDIES[name].FROZEN, STUDIES[name].LOG).outcome is Outcome.holds


@pytest.mark.parametrize("name", STUDIES)
def test_every_entry_has_a_date_and_a_reason(name):
    log = STUDIES[name].LOG
    assert [entry.date for entry in log] == sorted(entry.date for entry in log)
    assert all(entry.change and entry.reason for entry in log)


def test_a_wider_tolerance_or_another_skew_is_noticed():
    log = inner.LOG
    for wrong in (
        {**inner.FROZEN, "tolerances": {**inner.FROZEN["tolerances"], "utility": 0.025}},
        {**inner.FROZEN, "stand-in": {**inner.FROZEN["stand-in"], "skews": (0.2, 3.8, 0.2, 0, 1)}},
        {**inner.FROZEN, "seeds": SEEDS[1:]},
    ):
        assert is_frozen(wrong, log).outcome is Outcome.fails
    assert digest_counts(stand_in(replace(SMALL, interaction=0.8)).y) != log[-1].counts


def test_the_order_of_names_makes_no_difference():
    assert digest({"a": 1, "b": [2, 3]}) == digest({"b": (2, 3), "a": 1})
    assert digest({"a": 1}) != digest({"a": 1.5})


def test_seeds_are_twenty_and_fixed():
    assert tuple(range(1, 21)) == SEEDS
