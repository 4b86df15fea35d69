"""The study of the fair comparison, with few draws."""

import numpy as np
import pytest

from discreet_studies.catalogue import run_study
from discreet_studies.fair_comparison import example, printed, tables
from discreet_studies.fair_comparison.example import PartyTable, RedrawnFigures, inner_values
from discreet_studies.fair_comparison.study import _is_possible, _noise_as_stated, _realised_noise
from discreet_studies.fair_comparison.tables import interval_table
from discreet_studies.model import Options, Verdict


@pytest.fixture(scope="module")
def study():
    return run_study("fair-comparison", Options(replicates=100))


def test_every_figure_agrees(study):
    assert study.failures == []
    numbered = [table.title for table in study.tables if table.title.startswith("Table")]
    assert numbered == [f"Table {k}" for k in (2, 4, 5, 6, 7, 8, 9, 10)]
    assert sum(len(table.figures) for table in study.tables) == 206


def test_the_only_known_difference_is_a_rounding(study):
    (explained,) = [f for f in study.figures if f.verdict is Verdict.explained]
    assert (explained.row, explained.printed) == ("SCR (Table 4)", "0.9456")


@pytest.mark.parametrize("replicates", [2, 20])
def test_any_number_of_draws_will_do(replicates):
    """Intervals come from the law of counts, so few draws are no reason to fail."""
    assert run_study("fair-comparison", Options(replicates=replicates)).failures == []


@pytest.mark.parametrize("variance", [2.6, 2.9, 3.1])
def test_noise_of_another_variance_is_noticed(monkeypatch, variance):
    assert _noise_as_stated().holds
    monkeypatch.setattr(example, "VARIANCE", variance)
    assert not _noise_as_stated().holds


def test_noise_that_was_drawn_with_another_variance_is_noticed():
    party, rng = PartyTable.of_the_paper(), np.random.default_rng(1)
    for variance, holds in ((3.0, True), (2.6, False)):
        keys = RedrawnFigures(*np.zeros((4, 500)), rng.gamma(8, variance / 8, 500))
        assert _realised_noise(party, keys).holds is holds


def test_an_interval_that_moved_is_noticed():
    """As wide as the paper's, and shifted by a third of its width: 500 draws tell."""
    rng = np.random.default_rng(1)
    for shift, wrong in ((0.0, False), (0.018, True)):
        drawn = rng.normal(0.91315 + shift, 0.0133, 500), rng.normal(0.92895, 0.01885, 500)
        keys = RedrawnFigures(*drawn, *np.zeros((3, 500)))
        assert any(f.verdict is Verdict.outside for f in interval_table(keys).figures) is wrong


def test_pictures_can_be_drawn(study):
    from discreet.assessment import to_svg

    for picture in study.pictures:
        assert to_svg(picture.draw()).startswith("<svg")


def test_other_data_are_noticed(monkeypatch):
    """One person more, and the tables no longer agree."""
    changed = printed.TABLE_1.replace("B 0 1 3 5 1 0", "B 0 1 3 6 1 0")
    monkeypatch.setattr(printed, "TABLE_1", changed)
    study = run_study("fair-comparison", Options(replicates=2))
    assert any(line.startswith("Table 2, B, middle") for line in study.failures)


def test_impossible_draws_are_noticed(monkeypatch):
    party = PartyTable.of_the_paper()
    assert _is_possible(party)
    monkeypatch.setattr(printed, "TABLE_3", printed.TABLE_3.replace("A 0 16", "A 0 1"))
    assert not _is_possible(party)
    monkeypatch.setattr(printed, "TABLE_3", printed.TABLE_3.replace("A 0 1 ", "A 0 90 "))
    assert not _is_possible(party)


def test_the_printed_layout_is_read_as_it_is():
    party = PartyTable.of_the_paper()
    np.testing.assert_array_equal(party.read_published(printed.TABLE_2), party.table.z)
    assert inner_values(printed.TABLE_1).sum() == 56


def test_a_wrong_star_is_noticed(monkeypatch):
    wrong = printed.TABLE_9.replace("0.5381*", "0.5381").replace("0.4655", "0.4655*")
    monkeypatch.setattr(printed, "TABLE_9", wrong)
    (table,) = [
        t
        for t in tables.probability_tables(tables.Worked.of(PartyTable.of_the_paper(), 1))
        if t.title == "Table 9"
    ]
    outside = [f for f in table.figures if f.verdict is Verdict.outside]
    assert [(f.row, f.printed) for f in outside] == [("CKM", "0.5381"), ("CKM", "0.4655*")]
