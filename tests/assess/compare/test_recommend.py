import pytest

import discreet as dc
from discreet.assess.compare.recommend import recommend
from discreet.errors import ParameterError, UnknownNameError
from tests.assess import party
from tests.assess.compare.fitting import SlowChain
from tests.assess.compare.methods import Shift


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
    assert verdict.share == pytest.approx(expected)
    assert 0 < verdict.share < 1


def _risks(found, label):
    rows = found.replicates.to_pylist()
    return [
        r["value"]
        for r in rows
        if (r["label"], r["stage"], r["measure"]) == (label, "fitted", "unchanged-cells")
    ]


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
