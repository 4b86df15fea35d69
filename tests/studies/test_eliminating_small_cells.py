"""The study of eliminating small cells: matrices in full, protected tables on few people."""

from dataclasses import replace

import numpy as np
import pytest

from discreet import Adjust
from discreet.assessment import to_svg
from discreet.protect.safe import Effect
from discreet_studies import catalogue
from discreet_studies.eliminating_small_cells import findings as sentences
from discreet_studies.eliminating_small_cells import printed, results, tables
from discreet_studies.eliminating_small_cells import study as module
from discreet_studies.eliminating_small_cells.results import (
    CensusSize,
    Effort,
    all_results,
    published_counts,
    stand_in,
)
from discreet_studies.eliminating_small_cells.study import study_of
from discreet_studies.model import Ground, Options, Outcome, Verdict, by_row
from discreet_studies.page import study_text

SMALL = CensusSize(region=16, age=10, country=14)
QUICK = Effort(safe=2e6, short=1e5, adjust=2e6)


@pytest.fixture(scope="module")
def found():
    return all_results(SMALL, QUICK)


@pytest.fixture(scope="module")
def study(found):
    return study_of(found, seed=4)  # of a small table whose nearest adjustment is quickly proved


def outside(table):
    return [f for f in table.figures if f.verdict is Verdict.outside]


def test_every_figure_agrees_or_rests_on_other_data(study):
    assert study.failures == []
    assert [table.title for table in study.tables] == [
        "Section 3.1",
        *(f"Table 1, {kind}" for kind in ("D = 3", "D = 4", "D = 5", "SAFE")),
        *(f"Table {k}" for k in range(2, 6)),
        "Section 6",
        "Sections 4 and 6",
        "Table 6",
    ]
    assert [len(t.figures) for t in study.tables] == [3, *[96] * 4, 23, 21, 7, 37, 7, 7, 27]
    other = {t.title for t in study.tables for f in t.figures if f.ground is Ground.other_data}
    assert other == {"Table 1, SAFE", "Table 4", "Table 5", "Section 6", "Sections 4 and 6"}


def test_what_the_stand_in_was_shaped_for_is_no_agreement(study):
    """Its columns of Table 5 depend on the counts of the full table, and on nothing drawn."""
    shaped = [f for t in study.tables for f in t.figures if f.ground is Ground.shaped]
    assert {f.column for f in shaped} == {"D3", "D4", "D5"}
    assert len(shaped) == tables.SHAPED_FIGURES
    assert {f.verdict for f in shaped} <= {Verdict.construction, Verdict.other_data}


def test_seeds_and_other_stand_ins_that_miss_it_are_counted():
    missed = {seed: tables.misses(published_counts(seed=seed)) for seed in (1, 4, 5)}
    assert missed == {1: 0, 4: 1, 5: 2}
    other = results.OTHERS["countries of less unequal size"]
    assert tables.misses(published_counts(other)) > 12


def test_table_6_cannot_fail_and_says_so(study):
    (table,) = [t for t in study.tables if t.title == "Table 6"]
    assert {f.verdict for f in table.figures} == {Verdict.construction}
    assert "whatever the invariant matrix" in table.agreement


def test_findings_and_reasons(study):
    assert [sum(f.is_ours is ours for f in study.findings) for ours in (False, True)] == [16, 8]
    assert sum(f.outcome is Outcome.not_judged for f in study.findings) == 5
    text = study_text(study)
    assert "not at hand" in text
    assert "Independent draws would miss" in text


def test_it_is_registered_and_runs_by_name(monkeypatch, found, study):
    seen = {}

    def quick(seed):
        seen["seed"] = seed
        return found

    monkeypatch.setattr(module, "all_results", quick)
    monkeypatch.setattr(module, "study_of", lambda found, seed: replace(study, title=str(seed)))
    run = catalogue.run_study("eliminating-small-cells", Options(seed=7))
    assert (run.name, run.title) == ("eliminating-small-cells", "7")
    assert seen == {"seed": 7}


def test_pictures_can_be_drawn(study):
    assert [p.title for p in study.pictures] == ["Figure 1a", "Figure 1b"]
    for picture in study.pictures:
        assert to_svg(picture.draw()).startswith("<svg")


def test_the_stand_in_is_one_population(found):
    three, five = found.data.three_way, found.data.five_way
    assert three.y.sum() == five.y.sum()
    shape = (SMALL.region, SMALL.age, SMALL.country, 8)
    np.testing.assert_array_equal(five.y.reshape(shape).sum(axis=3).ravel(), three.y)
    again, other = stand_in(SMALL), stand_in(SMALL, seed=2)
    np.testing.assert_array_equal(again.five_way.y, five.y)
    assert (other.three_way.y != three.y).any()


def test_the_stand_in_has_the_size_of_the_paper_s_table():
    non_empty = int((stand_in().three_way.z > 0).sum())
    assert non_empty == pytest.approx(22_670, rel=0.05)


def test_what_is_printed_is_complete():
    _, t = tables.deviation_frequencies()
    assert t.sum() == 5_344_034
    rows = by_row(printed.TABLE_5)
    total = sum(float(texts[0]) for texts in rows.values())
    assert total == pytest.approx(100.01)


@pytest.mark.parametrize("column", range(7))
def test_printed_means_follow_from_printed_shares(column):
    listed = [(int(d), texts[column]) for d, texts in by_row(printed.TABLE_5).items()]
    shares = {d: float(text) for d, text in listed if text != "-"}
    mean = sum(d * p for d, p in shares.items()) / sum(shares.values())
    assert mean == pytest.approx(float(printed.MEANS[column]), abs=0.005)


def test_another_design_is_noticed(monkeypatch):
    assert not any(outside(tables.design(D)) for D in (3, 4, 5))
    monkeypatch.setattr(results, "VARIANCE", 2.1)
    assert all(len(outside(tables.design(D))) > 5 for D in (3, 4, 5))


def test_another_invariant_matrix_is_noticed(monkeypatch):
    monkeypatch.setattr(tables, "STRENGTH", 0.41)
    assert len(outside(tables.joint_flows())) > 5
    assert len(outside(tables.split_flows())) > 5


def test_independent_draws_are_noticed(monkeypatch):
    """Table 6 cannot come from drawing each cell's new deviation by itself."""
    rng = np.random.default_rng(1)

    def drawn(d, **options):
        return d + rng.integers(-1, 2, len(d)) * (rng.random(len(d)) < 0.1)

    monkeypatch.setattr(tables, "blurred_deviations", drawn)
    assert len(outside(tables.perturbed_deviations())) > 10


def test_the_study_perturbs_deviations_by_the_matrix_of_example_1(monkeypatch):
    """The frequencies are the same with every invariant matrix, so the choice is looked at."""
    seen = {}

    def spy(d, *, q, alpha, rng):
        seen.update(q=q, alpha=alpha)
        return d

    monkeypatch.setattr(tables, "blurred_deviations", spy)
    tables.perturbed_deviations()
    assert seen == {"q": 0.15, "alpha": 0.4}


def protected_as(found, wrong):
    """The same results with other counts in controlled cells."""
    broken = replace(found)
    broken.__dict__["controlled_cells"] = Effect(found.controlled_cells.true, wrong)
    return broken


def test_a_small_cell_or_a_large_deviation_is_noticed(found):
    true = found.controlled_cells.true
    small = protected_as(found, np.where(np.arange(len(true)) == 5, 2, true))
    assert sentences._safe_leaves_no_small_counts(found).holds
    assert not sentences._safe_leaves_no_small_counts(small).holds
    outcomes = [
        sentences._safe_bound(protected_as(found, true + move)).outcome for move in (3, 7, 20)
    ]
    assert outcomes == [Outcome.explained, Outcome.holds, Outcome.fails]


@pytest.mark.parametrize(
    ("sentence", "wrong"),
    [
        (sentences._stays_as_printed, 3),
        (sentences._tails_as_printed, 3),
    ],
)
def test_a_sentence_with_numbers_needs_its_numbers(found, sentence, wrong):
    told = sentence(protected_as(found, found.controlled_cells.true + wrong))
    assert told.holds is False
    assert told.outcome is Outcome.explained


def test_the_papers_own_table_says_that_safe_moves_further():
    assert sentences._printed_smaller_moves() == len(sentences.SMALL_COUNTS)


def test_adjustment_is_the_nearest_in_absolute_deviations(monkeypatch):
    for seed in (3, 4):
        assert sentences.nearest_adjustment(seed).holds
    worse = weighted_adjustment({3: 0.25})
    monkeypatch.setattr(sentences, "Adjust", worse)
    assert not all(sentences.nearest_adjustment(seed).holds for seed in (3, 4, 5, 8))


def weighted_adjustment(weights):
    return lambda method: Adjust(method, weights=weights)


def test_distance_to_a_normal_law():
    rng = np.random.default_rng(1)
    normal = np.rint(rng.normal(0.3, 2.0, 50_000)).astype(int)
    assert sentences._distance_to_normal(normal) < 0.01
    thirds = 3 * rng.integers(-1, 2, 50_000)
    assert sentences._distance_to_normal(thirds) > 0.4
