"""An experiment cannot be published: no method and no function hands a trial out."""

import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet import Release, Trial
from discreet.facade.release import Result
from discreet.release import Cube, files, writers
from discreet.release.formats.write import write
from discreet.release.tabulate import tabulate, to_microdata
from discreet.serve import InnerTable
from discreet.tables import Protected, storage
from discreet.tables.protected import PublicTable
from tests.attacks.victims import PTABLE, country

TABLE = country(mean=8.0)
WAYS_OUT = {
    **{
        f"write {writer.name}": lambda trial, path, writer=writer: write(
            trial, path / f"z{writer.ending}"
        )
        for writer in writers()
    },
    "cube": lambda trial, path: Cube.of(trial),
    "write_csv": lambda trial, path: files.write_csv(trial, path / "z.csv"),
    "save": lambda trial, path: files.save(trial, path / "z.parquet"),
    "save_release": lambda trial, path: storage.save_release(trial, path / "z.parquet"),
    "to_microdata": lambda trial, path: to_microdata(trial),
    "wrap": lambda trial, path: Release.wrap(trial),
    "wrap plainly": lambda trial, path: PublicTable.wrap(trial),
    "inner_table": lambda trial, path: InnerTable.of(trial, "1"),
}


@pytest.fixture(scope="module")
def trial():
    return TABLE.simulate(dc.Safe(proposals=2e4), seed=1)


@pytest.mark.parametrize("way", WAYS_OUT)
def test_no_function_hands_a_trial_out(trial, way, tmp_path):
    with pytest.raises((dc.DiscreetError, AttributeError)):
        WAYS_OUT[way](trial, tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.stat().st_size]


@pytest.mark.parametrize("way", sorted({*WAYS_OUT} - {"wrap", "wrap plainly"}))
def test_a_release_goes_out_the_same_way(way, tmp_path):
    """The control: the same functions on what was made for publication."""
    WAYS_OUT[way](TABLE.protect(dc.Safe()), tmp_path)


def test_a_trial_has_no_method_that_a_protected_value_has_not(trial):
    def methods(kind):
        return {name for name, _ in inspect.getmembers(kind, callable) if name[0] != "_"}

    assert isinstance(trial, Trial)
    assert not isinstance(trial, Release)
    assert methods(Trial) == methods(Result)
    verbs = {"fit", "round", "standard_errors", "intervals"}
    assert methods(Result) - methods(Protected) == verbs
    assert methods(Release) - methods(Result) >= {"to_arrow", "to_pandas", "to_polars", "save"}


def test_whatever_is_made_from_a_trial_is_one(trial):
    fitted = TABLE.simulate("drop-add", seed=1).fit("non-negative")
    for made in (fitted, fitted.round(seed=1), tabulate(trial, "region*sex")):
        assert isinstance(made, Trial)


def test_a_trial_says_that_it_is_confidential_wherever_it_is_shown(trial):
    assert repr(trial).startswith("Trial (confidential): 240 published cells")
    assert str(trial) == repr(trial)
    assert 'class="confidential"' in trial._repr_html_()


def test_an_experiment_touches_neither_ledger_nor_secret(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.db", epsilon=1.0)
    table = country(mean=8.0)
    for method in (dc.Safe(), dc.DiscreteLaplace(5.0), dc.CellKey(PTABLE)):
        table.simulate(method, seed=1)
    assert ledger.rows() == []
    assert Path(ledger.path).exists()
    restored = pickle.loads(pickle.dumps(table))
    assert restored.secret is None
    again = restored.simulate("pram", seed=3), table.simulate("pram", seed=3)
    np.testing.assert_array_equal(again[0].z, again[1].z)


def test_a_pickled_trial_says_what_it_is():
    """Workers get trials by pickle; whoever finds the file reads what it is, and the figures."""
    trial = TABLE.simulate(dc.CellKey(PTABLE), seed=1)
    stored = pickle.dumps(trial)
    assert stored.index(b"CONFIDENTIAL") < 200
    again = pickle.loads(stored)
    assert (again.z == trial.z).all()
    assert "confidential" in repr(again)
    with pytest.raises(dc.errors.ConfidentialError):
        again.__setstate__(vars(trial))
