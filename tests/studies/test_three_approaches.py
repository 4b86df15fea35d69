"""The study of three approaches, with few replications."""

import numpy as np
import pytest

from discreet.randomness import stream
from discreet.studies.catalogue import run_study
from discreet.studies.model import Options, Verdict
from discreet.studies.three_approaches import simulation
from discreet.studies.three_approaches.tables import law_tables


@pytest.fixture(scope="module")
def study():
    return run_study("three-approaches", Options(replicates=80))


def test_every_figure_agrees(study):
    assert study.failures == []
    assert [table.title for table in study.tables] == [f"Table {k}" for k in range(1, 6)]
    assert [len(table.figures) for table in study.tables] == [15, 49, 225, 18, 72]
    assert [picture.title for picture in study.pictures] == [f"Figure {k}" for k in range(1, 5)]


def test_known_differences_are_the_five_of_table_4(study):
    explained = [f for f in study.figures if f.verdict is Verdict.explained]
    assert len(explained) == 5
    assert {f.row for f in explained} == {"ε at count 1", "δ at count 1", "RM, independent"}


def test_pictures_can_be_drawn(study):
    from discreet.assess.plots.style import to_svg

    for picture in study.pictures:
        assert to_svg(picture.draw()).startswith("<svg")


def test_a_study_repeats_itself(study):
    again = run_study("three-approaches", Options(replicates=80))
    assert [f.computed for f in again.figures] == [f.computed for f in study.figures]
    other = run_study("three-approaches", Options(replicates=80, seed=2))
    assert [f.computed for f in other.figures] != [f.computed for f in study.figures]


def test_effects_as_printed_contradict_the_printed_totals(monkeypatch):
    """With the interval of the paper the population is too small: the study would fail."""
    monkeypatch.setattr(simulation, "EFFECT", 0.5)
    totals = [simulation.population(stream(1, str(k)), 0.2).sum() for k in range(300)]
    assert np.mean(totals) == pytest.approx(35_600, rel=0.03)
    study = run_study("three-approaches", Options(replicates=80))
    assert any("weighted, mean" in line for line in study.failures)


def test_another_mechanism_is_noticed(monkeypatch):
    from discreet.studies.three_approaches import tables

    monkeypatch.setattr(tables, "EPSILON", 1.9)
    wrong = [f for table in law_tables() for f in table.figures if f.verdict is Verdict.outside]
    assert len(wrong) > 100
