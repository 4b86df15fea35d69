"""Statements of synthetic records: sentences about values are true, and false ones are caught."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.synthesis.sentences import SynthesisEvidence
from tests.synthesize.people import SECRET, people

PEOPLE = people(120)
X = np.column_stack([np.ones(120), PEOPLE["age"], pd.get_dummies(PEOPLE["region"])]).astype(float)
MODEL = "income + tax ~ age + region"
HYBRID = "income + tax ~ local(age) + shared(region)"
REQUESTS = {
    "ipso": (MODEL, "ipso", {}),
    "weights": (f"{MODEL} + weights(w)", "ipso", {}),
    "residuals": (MODEL, "residual-correlation", {"correlations": [0.4, 0.2]}),
    "residuals, less": (MODEL, "residual-correlation", {"correlations": 0.5, "alpha": 0.5}),
    "residuals, most": (
        MODEL,
        "residual-correlation",
        {"correlations": [0.9, 0.2], "alpha": "largest"},
    ),
    "components": (MODEL, "score-correlation", {"correlations": [0.8, "redraw"]}),
    "kept component": (MODEL, "score-correlation", {"correlations": ["keep", 0.0]}),
    "principal components": (
        f"{MODEL} + weights(w)",
        "score-correlation",
        {"correlations": 0.8, "how": "svd", "rotation": "varimax"},
    ),
    "corrected": (MODEL, "from-residuals", {"share": 0.5}),
    "romm": (MODEL, "romm", {"lambda": 0.2}),
    "hybrid": (HYBRID, "hybrid", {"clusters": "sex"}),
    "hybrid, a": (HYBRID, "hybrid", {"clusters": "sex", "variant": "a"}),
    "microaggregation": (HYBRID, "hybrid", {"clusters": "sex", "residuals": "zero"}),
}


def published(kind):
    formula, method, options = REQUESTS[kind]
    return dc.synthesize(PEOPLE, formula, method, secret=SECRET, **options)


def evidence_of(made):
    weights = PEOPLE["w"] if "weights" in made.model else np.ones(120)
    Y = [frame[["income", "tax"]].to_numpy(float) for frame in (PEOPLE, made.frame)]
    sex = np.unique(PEOPLE["sex"], return_inverse=True)[1]
    return SynthesisEvidence(*Y, X, np.asarray(weights), sex)


def checked(made):
    return [s for s in made.statement.sentences if s.about == "values"]


@pytest.mark.parametrize("kind", REQUESTS)
def test_sentences_about_values_are_true(kind):
    made = published(kind)
    evidence = evidence_of(made)
    assert checked(made)
    for sentence in checked(made):
        assert sentence.holds is not None, f"{sentence.kind} is not checked"
        assert sentence.holds(evidence), sentence.text


@pytest.mark.parametrize("kind", REQUESTS)
def test_what_was_done_to_copies_and_large_units_is_true(kind):
    made = published(kind)
    said = {s.kind: s for s in made.statement.sentences if s.about == "process" and s.holds}
    assert set(said) == {"synthetic-columns", "large-units"}
    evidence = evidence_of(made)
    assert all(sentence.holds(evidence) for sentence in said.values())
    copied = replace(evidence, synthetic=evidence.Y)
    assert said["synthetic-columns"].holds(copied) == (kind == "kept component")
    heavy = replace(evidence, X=np.column_stack([X, np.eye(120)[:, 0]]))
    assert not said["large-units"].holds(heavy)


@pytest.mark.parametrize("kind", REQUESTS)
def test_sentences_about_other_values_are_false(kind):
    made = published(kind)
    evidence = evidence_of(made)
    noise = np.random.default_rng(1).standard_normal(evidence.Y.shape)
    wrong = replace(evidence, synthetic=evidence.synthetic + 1.0 * noise)
    for sentence in checked(made):
        assert not sentence.holds(wrong), sentence.text


def test_microaggregation_does_not_claim_covariances():
    assert not published("microaggregation").statement.says("moments-kept")


def test_a_kept_component_is_named_as_unprotected():
    assert published("kept component").statement.says("kept-components")
    assert not published("components").statement.says("kept-components")


def test_every_statement_says_what_is_disclosed_and_what_is_not_protected():
    for kind in REQUESTS:
        statement = published(kind).statement
        for needed in ("disclosed", "published-columns", "beyond-model", "other-releases"):
            assert statement.says(needed), (kind, needed)
        assert statement.says("near-original") == (kind not in ("ipso", "weights"))


def test_statements_hold_no_label_and_no_other_data():
    labels = [f"secret {k % 2}" for k in range(120)]
    made = dc.synthesize(PEOPLE, "income ~ 1", "hybrid", clusters=labels)
    assert "secret" not in str(made.statement.to_json()).replace("from a secret", "")
    assert made.statement.steps[-1].parameters["clusters"] == "given"


def test_choices_about_missing_values_and_small_cells_are_said():
    made = dc.synthesize(PEOPLE, MODEL, missing="category", merge="pool")
    assert made.statement.says("missing-category")
    assert made.statement.says("merged-cells")


def test_the_demo_secret_protects_nobody_and_says_so():
    made = dc.synthesize(PEOPLE, MODEL, secret=dc.Secret.demo())
    assert made.statement.says("public-secret")
