"""What a statement says holds on the final values, whatever was done to them."""

from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet import Trial
from discreet.protect import sentences
from discreet.tables import Claims, Protected, Statement, Step
from discreet.testing import Broken, ReleaseEvidence, check_sentences
from discreet.testing.laws import publish
from tests.protect.methods import ALL, NOISE
from tests.protect.tables import SECRET, keyed_party

TABLE = keyed_party("party*age + party*sex", declared=True, name="party")
PIPELINES = {
    "raw": lambda made: made,
    "least squares": lambda made: made.fit(dc.LeastSquares()),
    "non-negative": lambda made: made.fit(dc.NonNegative()),
    "rounded total": lambda made: made.fit(dc.NonNegative()).round("total", seed=1),
    "rounded margins": lambda made: made.fit(dc.NonNegative()).round("margins", seed=1),
}
ABOUT_LIMITS = {"editions", "other-releases"}


@pytest.fixture(scope="module")
def made():
    """Releases of every method under several secrets, made once."""
    found = {}

    def of(name):
        if name not in found:
            found[name] = [Trial.wrap(publish(ALL[name], TABLE, k)) for k in range(8)]
        return found[name]

    return of


def evidence_of(finals):
    return ReleaseEvidence(TABLE.z, finals, lambda: True)


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("name", ALL)
def test_sentences_about_values_hold_after_every_pipeline(name, pipeline, made):
    finals = [PIPELINES[pipeline](each) for each in made(name)]
    statement = finals[0].statement
    assert check_sentences(statement, evidence_of(finals))
    about = {s.kind for s in statement.sentences if s.about == "values"}
    if pipeline != "raw":
        assert about <= {"adds-up", "whole-numbers", "not-negative"}
        assert "adds-up" in about


@pytest.mark.parametrize("pipeline", [p for p in PIPELINES if p != "raw"])
@pytest.mark.parametrize("kind", ["never-published", "zeros-stay", "need-not-add-up"])
def test_what_held_before_a_fit_is_caught_when_it_is_left_standing(kind, pipeline, made):
    """Least squares leaves values between 0 and 3, true zeros positive, and sums that add up."""
    raw = made("cell-key")
    stale = next(s for s in raw[0].statement.sentences if s.kind == kind)
    finals = [PIPELINES[pipeline](each) for each in raw]
    step = replace(finals[0].statement.steps[-1], sentences=(stale,))
    statement = replace(finals[0].statement, steps=(step,))
    with pytest.raises(Broken, match="and that is not so"):
        check_sentences(statement, evidence_of(finals))
    assert not finals[0].statement.says(kind)


def test_adjusted_counts_claim_no_mean_and_say_what_adjustment_keeps():
    table = keyed_party().with_secret(SECRET)
    text = table.protect(dc.Adjust(NOISE)).statement
    for kind in ("mean-zero", "same-everywhere", "need-not-add-up"):
        assert NOISE.statement().says(kind)
        assert not text.says(kind)
    assert text.says("adds-up")
    assert text.says("moves-at-most")


def test_a_quality_takes_nothing_back_and_a_further_table_keeps_what_holds():
    table = keyed_party("party*age*sex").with_secret(SECRET)
    graded = table.protect(dc.protect.Quality(NOISE)).statement
    assert {s.kind for s in NOISE.statement().sentences} <= {s.kind for s in graded.sentences}
    release = table.protect(dc.Safe())
    further = release.tabulate("party + sex")
    evidence = ReleaseEvidence(further.z, [further], lambda: True)
    for kind in ("adds-up", "never-published"):
        said = next(s for s in further.statement.sentences if s.kind == kind)
        assert said.holds(evidence)


@pytest.mark.parametrize("name", ALL)
def test_nothing_public_is_measured_on_the_truth(name, made):
    """The statement is the same for every table of the design."""
    other = dc.Table.from_inner(TABLE.design, replace(TABLE.inner, count=TABLE.y[::-1] + 3))
    other = replace(other, data_set=TABLE.data_set)
    assert publish(ALL[name], other, 0).statement == made(name)[0].statement


@pytest.mark.parametrize("name", ALL)
def test_every_statement_says_what_it_does_not_cover_and_speaks_to_visitors(name):
    statement = TABLE.with_secret(SECRET).protect(ALL[name]).statement
    limits = {s.kind for s in statement.sentences if s.about == "limits"}
    assert limits >= ABOUT_LIMITS
    assert limits & {"groups", "private-groups"}
    assert statement.plain
    for term in ("ε", "matrix", "variance", "post-randomisation", "δ"):
        assert term not in statement.plain
    if statement.says("zeros-stay"):
        assert statement.says("occupied-cells")


def test_modes_of_editions_are_told_apart():
    for keys, words in (
        ("kept", "a single record changed shows that it did"),
        ("fresh", "can be averaged over editions"),
        ("renewed:0.05", "A share of 0.05 of the records"),
        ("phased:4", "drawn afresh every 4 editions"),
    ):
        data = replace(TABLE.data_set, keys=keys)
        text = replace(TABLE, data_set=data, secret=SECRET).protect(NOISE).statement.text
        assert words in text


def test_a_public_secret_is_named_as_such():
    demo = TABLE.with_secret(dc.Secret.demo())
    assert "under a secret that everybody knows" in demo.protect(NOISE).statement.text
    assert "demonstration figures" in demo.protect(NOISE).statement.plain
    assert not TABLE.with_secret(SECRET).protect(NOISE).statement.says("public-secret")
    assert not demo.protect(dc.Laplace(1.0)).statement.says("public-secret")


def claim(kind, **claims):
    """The sentence of one kind that goes with a claim."""
    given = Claims(**{"additive": False, "unbiased": False, "keeps_zeros": False, **claims})
    said = sentences.claim_sentences(given, "count")
    return next(sentence for sentence in said if sentence.kind == kind)


def final(z, truth):
    design = dc.Design.product({"a": 3}, "a")
    return ReleaseEvidence(
        np.array(truth), [Protected(design, np.array(z), Statement((Step("x"),)))], lambda: False
    )


@pytest.mark.parametrize(
    ("sentence", "true", "false"),
    [
        (claim("moves-at-most", max_move=2), [3, 0, 9, 13], [3, 0, 9, 14]),
        (claim("zeros-stay", keeps_zeros=True), [2, 0, 9, 11], [2, 1, 9, 12]),
        (
            claim("occupied-cells", keeps_zeros=True, keeps_positive=True),
            [3, 0, 8, 11],
            [0, 0, 9, 9],
        ),
        (claim("occupied-cells", keeps_zeros=True), [0, 0, 9, 9], [2, 1, 9, 12]),
        (sentences.never_published([1, 2]), [3, 0, 9, 12], [2.5, 0, 9, 11.5]),
        (sentences.adds_up(), [3, 0, 9, 12], [3, 0, 9, 13]),
        (claim("need-not-add-up"), [3, 0, 9, 13], [3, 0, 9, 12]),
        (sentences.not_negative(), [0, 0, 1, 1], [-1, 0, 9, 8]),
        (sentences.whole_numbers(), [3.0, 0, 9, 12], [3.2, 0, 9, 12.2]),
        (sentences.multiples_of(3), [3, 0, 9, 12], [3, 0, 8, 11]),
        (sentences.may_be_negative(), [-1, 0, 9, 8], [1, 0, 9, 10]),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_every_predicate_accepts_the_truth_and_rejects_a_lie(sentence, true, false):
    truth = [2, 0, 9, 11]
    assert sentence.holds(final(true, truth))
    assert not sentence.holds(final(false, truth))


def test_predicates_about_laws_reject_wrong_means_and_variances():
    rng, truth = np.random.default_rng(1), np.array([50, 60, 70, 180])
    design = dc.Design.product({"a": 3}, "a")

    def evidence(noise):
        made = [Protected(design, truth + u, Statement()) for u in noise]
        return ReleaseEvidence(truth, made, lambda: True)

    fair = evidence(rng.normal(0, 2, (400, 4)))
    assert claim("mean-zero", unbiased=True).holds(fair)
    assert claim("variance", variance=4.0).holds(fair)
    assert not claim("variance", variance=6.0).holds(fair)
    assert not claim("mean-zero", unbiased=True).holds(evidence(rng.normal(0.7, 2, (400, 4))))
    assert not claim("same-everywhere", consistent=True).holds(final([2, 0, 9, 11], [2, 0, 9, 11]))
