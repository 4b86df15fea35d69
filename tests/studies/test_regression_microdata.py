"""The study of regression-based microdata: sentences hold, and can fail."""

import numpy as np
import pytest

from discreet.synthesis import ipso, romm
from discreet.synthesis.decompose import Synthesis
from discreet.synthesis.hybrid import hybrid
from discreet_studies.catalogue import run_study
from discreet_studies.model import Options, Outcome
from discreet_studies.regression_microdata import clusters
from discreet_studies.regression_microdata import sections_2_to_5 as sections
from discreet_studies.regression_microdata.judge import (
    CLUSTER,
    N,
    businesses,
    complement,
    correlations,
    fitted_values,
    information_loss,
    residuals,
    unit_scores,
)

FEW = Options(replicates=40)


@pytest.fixture(scope="module")
def study():
    return run_study("regression-microdata", FEW)


def test_every_sentence_holds(study):
    assert [f.text for f in study.findings if f.outcome is not Outcome.holds] == []
    assert len(study.findings) == 35
    assert study.failures == []


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_other_records_say_the_same(seed):
    assert run_study("regression-microdata", Options(replicates=30, seed=seed)).failures == []


def test_the_page_needs_no_printed_figures(study, tmp_path):
    from discreet_studies.page import study_text, write_page

    page = write_page(study, tmp_path / "study.html").read_text()
    assert "<svg" in page
    assert "Sentences of the paper: all 35 hold." in study_text(study)


def failing(findings):
    return [f.text for f in findings if f.outcome is Outcome.fails]


def outcome(section, *arguments):
    return failing(section(businesses(1), np.random.default_rng(1), *arguments))


def test_residuals_that_lose_a_thousandth_of_their_size_are_noticed(monkeypatch):
    def shrunk(Y, X, *, rng):
        return Synthesis(fitted_values(Y, X) + 0.999 * residuals(ipso(Y, X, rng=rng).Y, X))

    monkeypatch.setattr(sections, "ipso", shrunk)
    found = outcome(sections.section_2, 20)
    assert any("covariance matrix are preserved" in text for text in found)


def test_data_that_stay_near_the_original_are_not_independent_of_it(monkeypatch):
    monkeypatch.setattr(sections, "ipso", lambda Y, X, *, rng: romm(Y, X, 0.2, rng=rng))
    assert any("are independent" in text for text in outcome(sections.section_2, 20))


def test_masking_with_another_size_is_noticed(monkeypatch):
    def larger(Y, X, lambda_, *, rng):
        return romm(Y, X, 1.001 * lambda_, rng=rng)

    similar = sections.similarity(np.random.default_rng(1), 20)
    assert outcome(sections.section_5, similar) == []
    monkeypatch.setattr(sections, "romm", larger)
    assert any("(17)" in text for text in outcome(sections.section_5, similar))


def test_an_algorithm_in_the_place_of_another_is_noticed(monkeypatch):
    def other(*arguments, variant="main", **options):
        return hybrid(
            *arguments, variant={"main": "a", "a": "main"}.get(variant, variant), **options
        )

    assert outcome(clusters.section_6) == []
    monkeypatch.setattr(clusters, "hybrid", other)
    found = outcome(clusters.section_6)
    assert any("main algorithm preserves" in text for text in found)
    assert any("Modification a" in text for text in found)


def test_the_judges_agree_with_projections():
    data = businesses(1)
    P = data.X @ np.linalg.inv(data.X.T @ data.X) @ data.X.T
    np.testing.assert_allclose(fitted_values(data.Y, data.X), P @ data.Y, atol=1e-8)
    E = residuals(data.Y, data.X)
    T, W = unit_scores(E)
    np.testing.assert_allclose(T @ W, E, atol=1e-9)
    assert (np.diag(W) > 0).all()
    rest = complement(np.hstack([data.X, T]))
    assert np.abs(rest.T @ data.X).max() < 1e-10 * N * 500
    assert correlations(E, -E).tolist() == pytest.approx([-1, -1, -1])
    assert information_loss(data.Y, data.X, data.Y) == 0
    assert information_loss(data.Y, data.X, data.Y * 1.001) > 1e-4


def test_the_businesses_have_clusters_within_size_classes():
    data = businesses(1)
    assert np.bincount(data.clusters).tolist() == [CLUSTER] * (N // CLUSTER)
    assert all(len(set(data.size_class[data.clusters == c])) == 1 for c in set(data.clusters))


def test_the_four_parts_of_a_simple_case():
    """One cluster: nothing is explained by crossing with clusters."""
    data = businesses(1)
    one = np.zeros(N, dtype=np.int64)
    found = clusters.parts(data.Y, data.constant, data.employees, one)
    assert np.abs(found["E3"]).max() < 1e-8
    np.testing.assert_allclose(found["E4"], residuals(data.Y, data.X[:, [0, -1]]), atol=1e-7)
    np.testing.assert_allclose(sum(found.values()), data.Y, atol=1e-8)
