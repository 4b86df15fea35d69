"""Experiments: repeatable, and never to be published."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet import Trial
from discreet.errors import ConfidentialError, DiscreetError, KeysError, ParameterError
from discreet.release import write_csv
from discreet.tables import Protected
from discreet.testing import sample_table
from tests.protect.methods import ALL, DRAWING, NOISE
from tests.protect.tables import SECRET, keyed_party, party

TABLE = keyed_party("party*age*sex", declared=True, name="party")


@pytest.mark.parametrize("name", ALL)
def test_a_seed_decides_everything(name):
    table = keyed_party(declared=True)
    first, again = (table.simulate(ALL[name], seed=3) for _ in range(2))
    assert isinstance(first, Trial)
    np.testing.assert_array_equal(first.z, again.z)
    others = [table.simulate(ALL[name], seed=s).z for s in range(4, 14)]
    # Suppression draws costs, so which cells are hidden follows from the seed as well.
    is_drawn = name in DRAWING or name.startswith("suppress")
    assert any(not np.array_equal(first.z, z) for z in others) == is_drawn


@pytest.mark.parametrize("name", ALL)
def test_neither_keys_nor_secret_of_the_records_are_used(name):
    other = keyed_party("party*age*sex", seed=99, declared=True, name="party").with_secret(SECRET)
    one, two = (t.simulate(ALL[name], seed=3).z for t in (TABLE, other))
    np.testing.assert_array_equal(one, two)


def test_a_trial_cannot_be_written_or_handed_out(tmp_path):
    trial = TABLE.simulate(dc.Safe(proposals=1e3), seed=1)
    assert isinstance(trial, Protected)
    assert not isinstance(trial, dc.Release)
    for name in (
        "to_arrow", "to_pandas", "to_polars", "to_microdata", "inner_to_arrow", "save", "tabulate",
    ):  # fmt: skip
        assert not hasattr(trial, name)
    assert repr(trial).startswith("Trial (confidential): 48 published cells")
    with pytest.raises(ConfidentialError, match="only a release"):
        write_csv(trial, tmp_path / "t.csv")


def test_a_trial_stays_one_when_it_is_fitted_and_rounded():
    trial = TABLE.simulate(NOISE, seed=1).fit(dc.NonNegative()).round(seed=1)
    assert isinstance(trial, Trial)
    assert not hasattr(trial, "save")


def test_an_experiment_touches_no_ledger(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.db", epsilon=1.0)
    table = replace(TABLE, ledger=ledger).with_secret(SECRET)
    for seed in range(3):
        table.simulate(dc.DiscreteLaplace(1.0), seed=seed)
        table.simulate(dc.Safe(proposals=1e3), seed=seed)
    assert ledger.spent("party").entries == 0


def test_a_search_by_the_clock_is_for_experiments_only():
    for method in (dc.Safe(seconds=0.05), dc.Adjust(NOISE, seconds=0.05)):
        assert TABLE.simulate(method, seed=1).z.shape == TABLE.z.shape
        for wrapped in (method, dc.protect.Quality(method)):
            with pytest.raises(ParameterError, match="seconds= works in `table.simulate` only"):
                TABLE.with_secret(SECRET).protect(wrapped)


def test_a_seed_is_needed_and_publication_takes_none():
    with pytest.raises(TypeError, match="seed"):
        TABLE.simulate(NOISE)
    for given in (NOISE, "pram", dc.Safe()):
        with pytest.raises(
            ParameterError, match="publication draws from a secret, not from a seed"
        ):
            TABLE.with_secret(SECRET).protect(given, seed=1)


def test_the_unit_must_be_said_here_as_well():
    with pytest.raises(ParameterError, match="unit='count'"):
        sample_table(weights=True).simulate(NOISE, seed=1)
    assert sample_table(weights=True).simulate(NOISE, seed=1, unit="count").unit == "count"


def test_an_experiment_has_keys_of_its_own():
    assert party().simulate(NOISE, seed=1).z.shape == (24,)
    with pytest.raises(KeysError, match="no cell keys"):
        party().protect(NOISE)


def test_neither_secret_nor_ledger_travels_with_a_table():
    table = TABLE.with_secret(SECRET)
    again = pickle.loads(pickle.dumps(table))
    assert again.secret is None
    assert again.ledger is None
    assert "thirty-two" not in repr(table)
    with pytest.raises(DiscreetError):
        again.protect(dc.Safe())


def test_statements_of_trials_are_plain_data():
    json.dumps(TABLE.simulate(NOISE, seed=1).statement.to_json())
