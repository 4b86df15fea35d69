"""The study of three approaches, with few replications."""

import math

import numpy as np
import pytest

from discreet import Pram
from discreet.protect import by_cell, by_mean
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
    assert [len(table.figures) for table in study.tables] == [15, 49, 225, 9, 18, 124]
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
    from discreet.assessment import to_svg

    for picture in study.pictures:
        assert to_svg(picture.draw()).startswith("<svg")


def test_a_study_repeats_itself():
    first, again, other = (
        run_study("three-approaches", Options(replicates=8, seed=seed)) for seed in (1, 1, 2)
    )
    assert [f.computed for f in again.figures] == [f.computed for f in first.figures]
    assert [f.computed for f in other.figures] != [f.computed for f in first.figures]


def test_what_is_shown_was_simulated(study):
    """Means of Table 5 are means of simulated totals; anchored ones have a column of their own."""
    (table,) = [t for t in study.tables if t.title == "Table 5"]
    found = {(f.row, f.column): f for f in table.figures}
    simulated = simulation.simulate("dependent", FEW.replicates, FEW.seed)
    for name in ("DP", "Q Avg cell"):
        shown = found[f"dependent, {name}", "mean"]
        assert shown.computed == simulated(name, "total").mean()
        assert shown.verdict is Verdict.within
        anchored = found[f"dependent, {name}", "mean, anchored"]
        assert anchored.verdict is Verdict.anchored
        assert abs(anchored.difference) < abs(shown.difference)
    assert all(f.verdict is Verdict.anchored for f in table.figures if "anchored" in f.column)


def test_the_law_of_the_totals_is_that_of_the_draws():
    drawn = simulation.populations(stream(1, "law"), 0.2, 3_000).sum(axis=1)
    mean = simulation.expected_total(0.2)
    assert mean == pytest.approx(49 * math.exp(6.5) * math.sinh(1) ** 2 * math.sinh(0.2) / 0.2)
    assert drawn.mean() == pytest.approx(mean, abs=3 * drawn.std() / math.sqrt(3_000))


@pytest.mark.parametrize("association", [0.02, 0.2])
def test_the_law_of_the_association_is_that_of_the_draws(association):
    """A non-centrality without Poisson noise, cell by cell, is the slow reference."""
    rng, e = stream(1, "association"), simulation.EFFECT
    found = []
    for _ in range(400):
        a, b, c = (rng.uniform(-e, e, size) for size in ((7, 1), (1, 7), (7, 7)))
        mu = np.exp(6.5 + a + b + association * c)
        fit = mu.sum(axis=1, keepdims=True) * mu.sum(axis=0, keepdims=True) / mu.sum()
        found.append(36 + ((mu - fit) ** 2 / fit).sum())
    assert simulation.expected_chi_square(association) == pytest.approx(np.mean(found), rel=0.05)


@pytest.mark.parametrize("effect", [0.5, 0.9, 1.15])
def test_other_effects_contradict_the_printed_totals(monkeypatch, effect):
    monkeypatch.setattr(simulation, "EFFECT", effect)
    totals = simulation.many_totals("dependent", 1)
    assert [f for f in tables._originals("dependent", totals) if f.verdict is Verdict.outside]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_population_that_is_five_percent_too_large_is_noticed(monkeypatch, seed):
    right = simulation.populations

    def larger(*arguments):
        people = right(*arguments)
        return people + people // 20

    monkeypatch.setattr(simulation, "populations", larger)
    failures = run_study("three-approaches", Options(replicates=20, seed=seed)).failures
    for words in ("Table 5, dependent, Original weighted, mean", "Sections 3.2 to 3.4, people"):
        assert any(line.startswith(words) for line in failures)
    assert any("Totals of simulated tables" in line for line in failures)


@pytest.mark.parametrize("kind", ["dependent", "independent"])
@pytest.mark.parametrize("seed", [1, 2])
def test_six_times_the_interaction_is_noticed(monkeypatch, kind, seed):
    monkeypatch.setitem(simulation.ASSOCIATION, kind, 6 * simulation.ASSOCIATION[kind])
    failures = run_study("three-approaches", Options(replicates=20, seed=seed)).failures
    assert any("as dependent as" in line for line in failures)


def test_outliers_are_those_of_a_box_plot():
    from discreet_studies.three_approaches.study import _outliers

    assert _outliers(np.array([0.0, 1, 2, 3, 4, 100])).tolist() == [0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("alpha", [None, 0.75])
def test_shares_of_perturbed_cells_tell_the_strength_of_post_randomisation(monkeypatch, alpha):
    if alpha is not None:
        monkeypatch.setitem(simulation.METHODS, "PRAM", Pram(invariant=True, alpha=alpha))
    found = {kind: simulation.simulate(kind, 100, 1) for kind in simulation.ASSOCIATION}
    outside = {f.column for f in tables._change_figures(found) if f.verdict is Verdict.outside}
    assert outside == (set() if alpha is None else {"PRAM"})


def test_the_ratio_of_totals_is_not_the_average_weight(monkeypatch):
    monkeypatch.setattr(simulation, "mean_weight", lambda people, n: people.sum() / n.sum())
    failures = run_study("three-approaches", Options(replicates=40)).failures
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
