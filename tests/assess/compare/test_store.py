"""Interrupted comparisons go on where they stopped."""

import json
import re

import numpy as np
import pytest

import discreet as dc
from discreet.assessment import Job
from discreet.errors import DataError, ParameterError
from tests.assess import party
from tests.assess.compare.fitting import SlowChain
from tests.assess.compare.methods import Shift
from tests.assess.helpers import weighted_table

METHODS = {"noise": dc.DropAdd(share=0.5), "shift": Shift(1)}
MEASURES = ["hellinger-utility", "unchanged-cells"]


def compare(folder, table=None, methods=METHODS, **settings):
    given = {"fitters": SlowChain(), "measures": MEASURES, "replicates": 6, **settings}
    return dc.compare(table or party.table(), methods, resume=folder, **given)


@pytest.fixture
def counted(monkeypatch):
    """The draws that are really made."""
    made = []
    run = Job.run
    monkeypatch.setattr(
        Job, "run", lambda self, k, draws: made.extend(draws) or run(self, k, draws)
    )
    return made


def test_finished_draws_are_not_made_again(tmp_path, counted):
    first = compare(tmp_path / "kept")
    assert len(counted) == 12
    again = compare(tmp_path / "kept")
    assert len(counted) == 12
    assert again.replicates == first.replicates
    assert again.frame == first.frame


def test_more_draws_and_more_methods_can_be_added(tmp_path, counted):
    compare(tmp_path / "kept", replicates=4)
    more = {**METHODS, "other": Shift(2)}
    grown = compare(tmp_path / "kept", methods=more, replicates=7)
    assert len(counted) == 8 + 6 + 7
    assert grown.frame == compare(None, methods=more, replicates=7).frame


def test_fewer_draws_than_there_are_give_the_shorter_comparison(tmp_path):
    compare(tmp_path / "kept", replicates=6)
    assert compare(tmp_path / "kept", replicates=3).frame == compare(None, replicates=3).frame


def test_an_interruption_loses_at_most_a_batch(tmp_path, monkeypatch, counted):
    run = Job.run

    def stops(self, k, draws):
        if k == 1:
            raise KeyboardInterrupt
        return run(self, k, draws)

    monkeypatch.setattr(Job, "run", stops)
    with pytest.raises(KeyboardInterrupt):
        compare(tmp_path / "kept")
    monkeypatch.setattr(Job, "run", run)
    made = len(counted)
    assert made > 0
    assert compare(tmp_path / "kept").frame == compare(None).frame
    assert len(counted) == 12 + 12


def test_scores_are_kept_for_their_owner_only(tmp_path):
    folder = tmp_path / "kept"
    compare(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    files = list(folder.iterdir())
    assert {f.suffix for f in files} == {".json", ".parquet"}
    assert all(f.stat().st_mode & 0o777 == 0o600 for f in files)
    kept = (folder / "comparison.json").read_text()
    assert not re.search(rf"\b{party.table().z.max()}\b", kept)  # digits of a digest are no count


def other_table():
    return dc.Table.from_inner(party.DESIGN, np.ravel(party.TABLE_1) + 1)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seed": 2}, "seed"),
        ({"table": other_table()}, "table"),
        ({"fitters": SlowChain(sweeps=3)}, "fitters"),
        ({"measures": ["hellinger-utility"]}, "measures"),
        ({"small": 3, "measures": [*MEASURES, "unchanged-small-cells"]}, "measures and options"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_another_comparison_is_refused_and_the_difference_named(tmp_path, change, named):
    compare(tmp_path / "kept", replicates=1)
    with pytest.raises(ParameterError, match=f"another {named}"):
        compare(tmp_path / "kept", replicates=1, **change)


def test_counts_and_weighted_counts_are_not_mixed(tmp_path):
    table, methods = weighted_table(), {"noise": dc.Laplace(epsilon=1.0)}
    compare(tmp_path / "kept", table, methods, replicates=1, unit="count")
    with pytest.raises(ParameterError, match="another unit"):
        compare(tmp_path / "kept", table, methods, replicates=1, unit="weight")


def test_another_bound_of_the_weights_is_another_table(tmp_path):
    """The noise of private methods is proportional to it."""
    methods = {"noise": dc.Laplace(epsilon=1.0)}
    compare(tmp_path / "kept", weighted_table(), methods, replicates=1, unit="weight")
    with pytest.raises(ParameterError, match="another table"):
        compare(tmp_path / "kept", weighted_table(30), methods, replicates=1, unit="weight")


def test_a_setting_of_a_method_is_another_method(tmp_path, counted):
    compare(tmp_path / "kept", methods={"noise": dc.DropAdd(share=0.5)})
    compare(tmp_path / "kept", methods={"noise": dc.DropAdd(share=0.6)})
    assert len(counted) == 12


def test_keys_of_the_table_do_not_matter(tmp_path, counted):
    compare(tmp_path / "kept")
    compare(tmp_path / "kept", table=party.table().rekeyed(np.random.default_rng(1)))
    assert len(counted) == 12


def test_a_directory_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ParameterError, match="not empty"):
        compare(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_a_damaged_header_is_reported(tmp_path):
    compare(tmp_path / "kept", replicates=1)
    (tmp_path / "kept" / "comparison.json").write_text("{")
    with pytest.raises(DataError, match=r"comparison\.json"):
        compare(tmp_path / "kept", replicates=1)


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot keep"):
        compare(tmp_path / "file")


def test_the_header_says_what_the_scores_depend_on(tmp_path):
    compare(tmp_path / "kept", replicates=1)
    header = json.loads((tmp_path / "kept" / "comparison.json").read_text())
    assert header.keys() == {"version", "table", "unit", "seed", "fitters", "measures", "options"}


def test_what_cannot_be_recognised_cannot_be_taken_up_again(tmp_path):
    class Local:
        name, source, claims = "local", "table", Shift.claims
        inside = staticmethod(lambda: None)

        def __call__(self, table, *, draws):
            return Shift()(table, draws=draws)

    with pytest.raises(ParameterError, match="resume"):
        compare(tmp_path / "kept", methods={"local": Local()})
    assert len(compare(None, methods={"local": Local()}).labels) == 1
