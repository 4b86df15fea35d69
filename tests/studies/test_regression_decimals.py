"""The study of decimals: every figure, and figures that would be noticed if they were wrong."""

import pytest

from discreet_studies import regression_decimals as paper
from discreet_studies.catalogue import run_study
from discreet_studies.model import Options, Outcome, Verdict


@pytest.fixture(scope="module")
def study():
    return run_study("regression-decimals")


def test_every_figure_agrees_and_every_sentence_holds(study):
    assert study.failures == []
    assert [table.title for table in study.tables] == ["Table 1", "Table 2", "Table 3"]
    assert study.verdicts[Verdict.exact] == 36
    assert study.verdicts[Verdict.other_data] == 18
    assert {finding.outcome for finding in study.findings} == {Outcome.holds}
    assert [sum(f.is_ours is ours for f in study.findings) for ours in (False, True)] == [12, 5]


def test_another_seed_changes_random_figures_alone(study):
    other = run_study("regression-decimals", Options(seed=2))
    assert other.failures == []
    pairs = list(zip(study.figures, other.figures, strict=True))
    moved = [a for a, b in pairs if abs(a.computed - b.computed) > 1e-9]
    assert {figure.verdict for figure in moved} == {Verdict.other_data}
    assert len(moved) == 18


def test_a_count_that_is_not_the_papers_is_noticed(monkeypatch):
    changed = paper.TABLE_1.replace("row2 1* 9*", "row2 1* 8*")
    monkeypatch.setattr(paper, "TABLE_1", changed)
    assert any("Table 2" in line for line in run_study("regression-decimals").failures)


def test_a_random_column_of_another_length_is_noticed(monkeypatch):
    monkeypatch.setattr(paper, "TABLE_2", paper.TABLE_2.replace("11.1562", "11.2562"))
    failures = run_study("regression-decimals").failures
    assert failures == [
        "not borne out: The random column of Table 2 preserves the variance and the published "
        "cells."
    ]
