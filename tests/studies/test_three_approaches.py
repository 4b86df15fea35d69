"""The study of three approaches, with few replications."""

import math

import numpy as np
import pytest

from discreet import Pram
from discreet.protect.publication import by_cell, by_mean
from discreet.randomness import stream
from discreet_studies.catalogue import run_study
from discreet_studies.model import Options, Outcome, Verdict
from discreet_studies.three_approaches import simulation, tables

FEW = Options(replicates=80)


@pytest.fixture(scope="module")
def study():
    return run_study("three-approaches", FEW)


def test_every_figure_agrees(study):
    assert study.failures == []
    numbers = [table.title for table in study.tables]
    assert numbers == ["Table 1", "Table 2", "Table 3", "Sections 3.2 to 3.4", "Table 4", "Table 5"]
    assert [len(table.figures) for table in study.tables] == [15, 49, 225, 9, 18, 72]
    assert [picture.title for picture in study.pictures] == [f"Figure {k}" for k in range(1, 5)]


def test_known_differences_are_those_of_table_4_and_one_of_the_text(study):
    explained = [f for f in study.figures if f.verdict is Verdict.explained]
    assert len(explained) == 6
    rows = {"ε at count 1", "δ at count 1", "RM, independent", "δ, PRAM, 1 to 8"}
    assert {f.row for f in explained} == rows


def test_zeros_of_the_matrices_are_not_agreement(study):
    zeros = [f for table in study.tables[1:3] for f in table.figures if f.value == 0]
    assert {f.verdict for f in zeros} == {Verdict.construction}
    assert len(zeros) == 62


@pytest.mark.parametrize("seed", range(1, 7))
def test_no_seed_fails_by_chance(seed):
    assert run_study("three-approaches", Options(replicates=20, seed=seed)).failures == []


def test_few_draws_leave_findings_undecided_rather_than_wrong(study):
    outcomes = {f.outcome for f in study.findings}
    assert outcomes <= {Outcome.holds, Outcome.undecided}
    assert Outcome.holds in outcomes


def test_a_wrong_order_is_contradicted(monkeypatch):
    from discreet_studies.three_approaches import study as module

    monkeypatch.setattr(module, "_RELEASED", ("Q Avg", "PRAM Avg", "DP Avg"))
    found = run_study("three-approaches", FEW)
    assert any("utility" in line for line in found.failures)


def test_pictures_can_be_drawn(study):
    from discreet.assessment.plots.style import to_svg

    for picture in study.pictures:
        assert to_svg(picture.draw()).startswith("<svg")


def test_a_study_repeats_itself(study):
    again = run_study("three-approaches", FEW)
    assert [f.computed for f in again.figures] == [f.computed for f in study.figures]
    other = run_study("three-approaches", Options(replicates=80, seed=2))
    assert [f.computed for f in other.figures] != [f.computed for f in study.figures]


def test_the_law_of_the_totals_is_that_of_the_draws():
    drawn = [simulation.population(stream(1, str(k)), 0.2).sum() for k in range(3_000)]
    law = simulation.expected_total(0.2)
    assert law.mean == pytest.approx(49 * math.exp(6.5) * math.sinh(1) ** 2 * math.sinh(0.2) / 0.2)
    assert np.mean(drawn) == pytest.approx(law.mean, abs=3 * law.sd / math.sqrt(3_000))
    assert np.std(drawn) == pytest.approx(law.sd, rel=0.06)
    sample = simulation.expected_sample(0.2)
    assert sample.mean == pytest.approx(law.mean * math.log(2) / 20)
    assert sample.sd / sample.mean == pytest.approx(law.sd / law.mean, rel=0.05)


@pytest.mark.parametrize("effect", [0.5, 0.9, 1.15])
def test_other_effects_contradict_the_printed_totals(monkeypatch, effect):
    monkeypatch.setattr(simulation, "EFFECT", effect)
    outside = [f for f in tables._originals("dependent") if f.verdict is Verdict.outside]
    assert outside


@pytest.mark.parametrize("alpha", [None, 0.75])
def test_shares_of_perturbed_cells_tell_the_strength_of_post_randomisation(monkeypatch, alpha):
    if alpha is not None:
        monkeypatch.setitem(simulation.METHODS, "PRAM", Pram(invariant=True, alpha=alpha))
    found = {kind: simulation.simulate(kind, 500, 1) for kind in simulation.ASSOCIATION}
    outside = {f.column for f in tables._change_figures(found) if f.verdict is Verdict.outside}
    assert outside == (set() if alpha is None else {"PRAM"})


def test_the_ratio_of_totals_is_not_the_average_weight(monkeypatch):
    monkeypatch.setattr(simulation, "mean_weight", lambda people, n: people.sum() / n.sum())
    failures = run_study("three-approaches", FEW).failures
    assert any("Avg, percent difference" in line for line in failures)


def test_weighted_counts_follow_the_two_equations():
    weight, count, change = np.array([60.0, 5.0, 0.0]), np.array([2, 1, 0]), np.array([1, -1, 2])
    assert by_mean(weight, change, 30.0).tolist() == [90, 0, 60]
    assert by_cell(weight, count, change, 30.0).tolist() == [90, 0, 60]
    assert by_cell(2 * weight, count, change, 30.0).tolist() == [180, 0, 60]


def test_another_mechanism_is_noticed(monkeypatch):
    monkeypatch.setattr(tables, "EPSILON", 1.9)
    laws = tables.law_tables()
    assert len([f for t in laws for f in t.figures if f.verdict is Verdict.outside]) > 100
