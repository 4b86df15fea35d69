"""The study of eliminating small cells: matrices in full, protected tables on few people."""

from dataclasses import replace

import numpy as np
import pytest

from discreet.assessment.plots.style import to_svg
from discreet.protect.safe import Effect
from discreet_studies import catalogue
from discreet_studies.eliminating_small_cells import printed, results, tables
from discreet_studies.eliminating_small_cells import study as module
from discreet_studies.eliminating_small_cells.results import (
    CensusSize,
    Effort,
    all_results,
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
    return study_of(found)


def outside(table):
    return [f for f in table.figures if f.verdict is Verdict.outside]


def test_every_figure_agrees_or_rests_on_other_data(study):
    assert {line.split(",")[0] for line in study.failures} <= {"Table 5", "Section 6"}
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


def test_noise_without_adjustment_is_judged(study):
    """Its columns of Table 5 depend on the counts of the full table, and on nothing drawn."""
    (table,) = [t for t in study.tables if t.title == "Table 5"]
    judged = {f.column for f in table.figures if f.ground is Ground.computed}
    assert judged == {"D3", "D4", "D5"}
    rows, counts = by_row(printed.TABLE_5), stand_in().three_way.z
    for D in (3, 4, 5):
        ours = 100 * tables.expected_sizes(D, counts)
        texts = [rows[str(d)][printed.METHODS.index(f"D{D}")] for d in range(D + 1)]
        for text, value in zip(texts, ours, strict=True):
            assert value == pytest.approx(float(text), abs=tables._share_tolerance(text))
        mean = float(printed.MEANS[printed.METHODS.index(f"D{D}")])
        assert ours @ np.arange(D + 1) / 100 == pytest.approx(mean, abs=0.015)


def test_table_6_cannot_fail_and_says_so(study):
    (table,) = [t for t in study.tables if t.title == "Table 6"]
    assert {f.verdict for f in table.figures} == {Verdict.construction}
    assert "whatever the invariant matrix" in table.agreement


def test_findings_and_reasons(study):
    assert len(study.findings) == 11
    assert sum(f.outcome is Outcome.not_judged for f in study.findings) == 2
    text = study_text(study)
    assert "not at hand" in text
    assert "Independent draws would miss" in text


def test_it_is_registered_and_runs_by_name(monkeypatch, found):
    seen = {}

    def quick(seed):
        seen["seed"] = seed
        return found

    monkeypatch.setattr(module, "all_results", quick)
    run = catalogue.run_study("eliminating-small-cells", Options(seed=7))
    assert run.name == "eliminating-small-cells"
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


def test_a_small_cell_or_a_large_deviation_is_noticed(found):
    assert module._safe_bound(found).holds
    true = found.controlled_cells.true
    for wrong in (true + 20, np.where(np.arange(len(true)) == 5, 2, true)):
        broken = replace(found)
        broken.__dict__["controlled_cells"] = Effect(true, wrong)
        assert not module._safe_bound(broken).holds


def test_distance_to_a_normal_law():
    rng = np.random.default_rng(1)
    normal = np.rint(rng.normal(0.3, 2.0, 50_000)).astype(int)
    assert module._distance_to_normal(normal) < 0.01
    thirds = 3 * rng.integers(-1, 2, 50_000)
    assert module._distance_to_normal(thirds) > 0.4
