"""Advice that can say no."""

import numpy as np
import pytest
from scipy.stats import binomtest

import discreet as dc
from discreet.assessment.compare.recommend import least_share, recommend
from discreet.errors import ParameterError, UnknownNameError
from tests.assess import party
from tests.assess.compare.fitting import SlowChain
from tests.assess.compare.methods import Even, Shift, Sometimes


@pytest.fixture(scope="module")
def found():
    return dc.compare(
        party.table(),
        {"truth": Shift(0), "some": Shift(1), "much": Shift(6), "noise": dc.DropAdd(share=0.3)},
        fitters=SlowChain(),
        measures=["unchanged-cells", "hellinger-utility", "total-bias"],
        replicates=10,
    )


def test_the_most_useful_acceptable_method_is_recommended(found):
    advice = recommend(found, {"unchanged-cells": 0.5, "hellinger-utility": 0.5})
    assert advice.chosen == "noise"
    assert "noise" in advice.sentence
    assert "at most 0.5" in advice.sentence
    assert "at least 0.5" in advice.sentence


def test_verdicts_count_single_draws_too(found):
    limit = sorted(v for v in _risks(found, "noise"))[6]
    advice = recommend(found, {"unchanged-cells": limit})
    verdict = next(v for v in advice.verdicts if v.label == "noise")
    expected = sum(v <= limit for v in _risks(found, "noise")) / 10
    assert np.mean(verdict.acceptable) == pytest.approx(expected)
    assert 0 < expected < 1


def _risks(found, label):
    rows = found.replicates.to_pylist()
    return [
        r["value"]
        for r in rows
        if (r["label"], r["stage"], r["measure"]) == (label, "fitted", "unchanged-cells")
    ]


def test_a_measure_that_was_not_taken_is_not_met():
    found = dc.compare(
        party.table(),
        {"pram": dc.Pram(invariant=True), "private": dc.Laplace(epsilon=2.0), "truth": Shift(0)},
        fitters=[],
        measures=["mechanism-epsilon", "hellinger-utility"],
        replicates=3,
    )
    advice = recommend(found, {"mechanism-epsilon": 2.5})
    assert advice.chosen == "private"
    assert "not met: mechanism-epsilon (published) for pram, truth." in advice.sentence
    verdicts = {v.label: v for v in advice.verdicts}
    assert verdicts.keys() == {"pram", "private", "truth"}
    assert verdicts["pram"].mean is None
    assert "name the noise" in verdicts["pram"].outcome
    none = recommend(found, {"mechanism-epsilon": 1.0})
    assert none.chosen is None
    assert "No method meets all thresholds" in none.sentence
    assert "for pram, truth" in none.sentence


def test_thresholds_on_different_things_are_told_apart():
    noise = dc.CellKey(dc.perturbation_table(D=5, V=3, js=2))
    found = dc.compare(
        party.table(), {"keys": noise, "private": dc.Laplace(epsilon=2.0)},
        fitters=[], measures=["mechanism-epsilon", "hellinger-utility"], replicates=2,
    )  # fmt: skip
    sentence = recommend(found, {"mechanism-epsilon": 9.0}).sentence
    assert sentence.endswith("that of one cell for keys; the whole release for private.")


def test_a_measure_taken_in_some_draws_only_is_not_met():
    table = dc.Table.from_inner(dc.Design.product({"a": 2}, "a"), np.array([3, 4]))
    found = dc.compare(
        table, {"now and then": Sometimes(), "truth": Shift(0)},
        fitters=[], measures=[Even(), "hellinger-utility"], replicates=40, workers=1,
    )  # fmt: skip
    advice = recommend(found, {"even": 1.0})
    now = next(v for v in advice.verdicts if v.label == "now and then")
    assert not now.is_met
    assert "draws" in now.missing
    assert 0 < sum(now.acceptable) < 40
    assert advice.chosen == "truth"


def test_without_a_measure_of_utility_nothing_is_chosen():
    found = dc.compare(
        party.table(), Shift(1), fitters=[], measures=["unchanged-cells"], replicates=2
    )
    advice = recommend(found, {"unchanged-cells": 1.0})
    assert advice.chosen is None
    assert "No measure of utility" in advice.sentence
    assert "No thresholds" in recommend(found, {}).sentence


def test_what_is_above_the_equal_risk_is_not_recommended():
    found = dc.compare(
        party.table(), {"truth": Shift(0)}, fitters=[], measures=["hellinger-utility"],
        replicates=2, equal_risk=("unchanged-cells", 0.5),
    )  # fmt: skip
    advice = recommend(found, {"hellinger-utility": 0.5})
    assert advice.chosen is None
    assert "Above the equal risk: truth." in advice.sentence


def test_the_share_of_draws_is_told_with_its_uncertainty(found):
    sentence = recommend(found, {"hellinger-utility": 0.0}).sentence
    assert "10 of 10 draws meet all of them" in sentence
    assert "at least 74 of 100 cases" in sentence
    for met, draws in ((0, 5), (3, 5), (5, 5), (90, 100)):
        low = binomtest(met, draws).proportion_ci(0.9, "exact").low
        assert least_share(met, draws) == pytest.approx(low)


def test_methods_that_are_as_good_are_named():
    methods = {"a": Shift(1), "b": Shift(1), "c": Shift(3)}
    found = dc.compare(
        party.table(), methods, fitters=[], measures=["hellinger-utility"], replicates=2
    )
    advice = recommend(found, {"hellinger-utility": 0.0})
    assert (advice.chosen, advice.tied) == ("a", ("b",))
    assert "b cannot be told apart from it." in advice.sentence


def test_values_near_zero_are_judged_by_their_size(found):
    advice = recommend(found, {"total-bias@published": 0.5})
    met = {v.label: v.is_met for v in advice.verdicts}
    assert met["truth"]
    assert not met["much"]


def test_nothing_is_recommended_without_reason(found):
    assert recommend(found, {}).chosen is None
    assert "No thresholds" in recommend(found, {}).sentence
    none = recommend(found, {"unchanged-cells": 0.0, "hellinger-utility": 1.0})
    assert none.chosen is None
    assert "No method meets all" in none.sentence


def test_wrong_thresholds_are_refused(found):
    with pytest.raises(UnknownNameError):
        recommend(found, {"unchanged": 0.5})
    with pytest.raises(ParameterError, match="number"):
        recommend(found, {"unchanged-cells": "low"})
