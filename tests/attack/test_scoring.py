"""Claims are judged by the truth alone, and guessing is never called a success."""

from dataclasses import replace

import numpy as np
import pytest

from discreet.attacks import Claims, Finding, judge
from discreet.attacks.scoring import Tally, proportion_interval
from discreet.errors import ParameterError

TRUTH = {"a": 1, "b": 2, "c": 3, "d": 4}


def claims(values, confidence=None):
    names = list(values)
    sure = np.arange(len(names), 0, -1) if confidence is None else confidence
    return Claims.ranked(names, list(values.values()), sure)


def test_claims_are_ranked_and_cut():
    ranked = Claims.ranked(["a", "b", "c"], [1, 2, 3], [0.2, 0.9, 0.5], most=2)
    assert ranked.targets == ("b", "c")
    assert ranked.values == (2, 3)


def test_uneven_claims_are_refused():
    with pytest.raises(ParameterError, match="2 targets, 1 values and 2 confidences"):
        Claims.ranked(["a", "b"], [1], [0.1, 0.2])


def test_precision_recall_and_lift():
    finding = judge(claims({"a": 1, "b": 2, "c": 0}), TRUTH, attack="x", baseline=0.25)
    assert finding.success == pytest.approx(2 / 3)
    assert finding.tally.recall == pytest.approx(0.5)
    assert finding.lift == pytest.approx((2 / 3 - 0.25) / 0.75)
    recall, precision = finding.tally.curve
    np.testing.assert_allclose(recall, [0.25, 0.5, 0.5])
    np.testing.assert_allclose(precision, [1, 1, 2 / 3])


def test_an_attack_without_claims_says_so():
    silent = judge(claims({}), TRUTH, attack="x", baseline=0.25)
    assert str(silent) == "x: no claim about any of 4 targets"
    assert "no claim about any of 4 targets" in silent._repr_html_()
    assert silent.lift == 0


def test_a_claim_about_what_does_not_exist_is_wrong():
    assert judge(claims({"z": None}), TRUTH, attack="x", baseline=0.0).success == 0


def test_the_interval_of_a_guesser_contains_no_lift():
    """Success and baseline are drawn alike: at most the stated share of intervals errs."""
    rng = np.random.default_rng(7)
    truth = dict.fromkeys(range(400), True)
    errs = 0
    for _ in range(200):
        said, base = (rng.random(400) < 0.3 for _ in range(2))
        finding = judge(
            Claims.ranked(range(400), said.tolist(), np.ones(400)),
            truth,
            attack="guess",
            baseline=Claims.ranked(range(400), base.tolist(), np.ones(400)),
        )
        low, high = finding.lift_interval()
        errs += not low <= 0 <= high
    assert errs <= 10


def test_a_real_success_is_seen():
    rng = np.random.default_rng(8)
    truth = dict.fromkeys(range(400), True)
    said = (rng.random(400) < 0.6).tolist()
    finding = judge(Claims.ranked(range(400), said, np.ones(400)), truth, attack="x", baseline=0.3)
    assert finding.lift_interval()[0] > 0.2


def test_the_surest_claims_are_judged_beside_the_surest_without_the_record():
    """A tenth that is all right, in a crowd of guesses; and a guesser who is sure for nothing."""
    rng = np.random.default_rng(9)
    truth, sure = dict.fromkeys(range(400), True), rng.random(400)
    said, base = (rng.random(400) < 0.3 for _ in range(2))
    told = np.where(sure > 0.9, True, said)

    def claimed(values):
        return Claims.ranked(range(400), values.tolist(), sure)

    weak = judge(claimed(told), truth, attack="x", baseline=claimed(base))
    assert weak.surest.judged.claims == 40
    assert weak.surest.success == 1.0
    assert weak.surest.gain(0.999) > 0.3 > weak.gain(0.999)
    assert "of the surest 40 100.0% are right, of the baseline's" in str(weak)
    sound = judge(claimed(said), truth, attack="x", baseline=claimed(base))
    assert sound.surest.gain(0.999) <= 0
    twice = weak.pooled(weak)
    assert twice.surest.success == 1.0, "two runs are put in one order"
    assert twice.surest.judged.claims == 80


def test_a_success_that_naming_the_commonest_value_has_as_well_is_none():
    """Half are women; without her own record a person's group leans to the other side."""
    n, half = 1_000, np.arange(1_000) % 2 == 0
    right, base = Tally(half, n), Tally(np.arange(n) % 10 < 4, n)
    finding = Finding("x", right, base, usual=Tally(~half, n))
    assert finding.lift > 0.1
    assert finding.lift_interval()[0] > 0 > finding.gain()
    assert replace(finding, usual=None).gain() > 0


@pytest.mark.parametrize(("right", "n"), [(0, 5), (5, 5), (3, 10)])
def test_intervals_cover(right, n):
    """At either end of the interval a count as extreme has half the error's probability."""
    from scipy.stats import binom

    low, high = proportion_interval(right, n)
    if right:
        assert binom.sf(right - 1, n, low) == pytest.approx(0.025)
    if right < n:
        assert binom.cdf(right, n, high) == pytest.approx(0.025)
