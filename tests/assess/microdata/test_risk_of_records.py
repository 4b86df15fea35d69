"""Risk of synthetic records: planted leaks must show, and harmless records must not."""

import numpy as np
import pandas as pd
import pytest

from discreet.assessment import NotApplicableError
from discreet.assessment.microdata.record_sets import record_sets
from discreet.assessment.microdata.risk import (
    CopiedRecords,
    CorrectAttribution,
    MembershipAdvantage,
    MembershipInference,
    NearestRecordDistance,
    ReplicatedUniques,
    advantage,
    area,
    nearest,
    places,
)
from discreet.errors import UnknownNameError
from tests.assess.microdata.population import draw

N = 600
MEMBERS, CONTROL, HARMLESS = draw(N, 1), draw(N, 2), draw(N, 3)
HALF = pd.concat([MEMBERS[: N // 2], HARMLESS[: N // 2]])


def values(score):
    return {row["figure"]: row["value"] for row in score.breakdown.to_pylist()}


def test_the_original_itself_betrays_every_member():
    assert MembershipInference(control=CONTROL)(MEMBERS, MEMBERS).value == 1
    assert MembershipAdvantage(control=CONTROL)(MEMBERS, MEMBERS).value == 1


def test_half_of_the_records_copied_betrays_half_of_the_members():
    score = MembershipAdvantage(control=CONTROL)(MEMBERS, HALF)
    assert score.value == pytest.approx(0.5, abs=0.06)
    found = score.breakdown.to_pylist()[0]
    assert found["attacker"] == "all columns"
    assert found["area"] == pytest.approx(0.75, abs=0.04)
    assert found["found_at_1_percent_false_alarms"] >= 0.5
    assert score.value > 4 * found["advantage_limit"]


@pytest.mark.parametrize("seed", range(3, 8))
def test_other_people_betray_no_member(seed):
    score = MembershipInference(control=CONTROL)(MEMBERS, draw(N, seed))
    for row in score.breakdown.to_pylist():
        assert abs(row["area"] - 0.5) < 4 * row["error_of_guessing"]
        assert row["advantage"] < 1.5 * row["advantage_limit"]


def test_guessing_is_what_the_breakdown_says():
    """Distances of the same law: spread and limits over many draws."""
    rng = np.random.default_rng(1)
    m, c = 80, 50
    draws = [(rng.random(m), rng.random(c)) for _ in range(1_500)]
    areas, leads = (np.array([f(*d) for d in draws]) for f in (area, advantage))
    frames = ({"a": rng.random(m)}, {"a": rng.random(9)})
    score = MembershipInference(control={"a": rng.random(c)})(*frames)
    (found,) = score.breakdown.to_pylist()
    assert np.std(areas) == pytest.approx(found["error_of_guessing"], rel=0.07)
    assert np.mean(areas > found["area_limit"]) == pytest.approx(0.05, abs=0.02)
    assert 0.02 < np.mean(leads > found["advantage_limit"]) < 0.06


def test_area_and_advantage_count_pairs_and_thresholds():
    rng = np.random.default_rng(2)
    members, others = rng.integers(0, 9, 30) / 3, rng.integers(1, 10, 20) / 3
    pairs = [(m < o) + 0.5 * (m == o) for m in members for o in others]
    assert area(members, others) == pytest.approx(np.mean(pairs))
    leads = [(members <= t).mean() - (others <= t).mean() for t in members]
    assert advantage(members, others) == pytest.approx(max(*leads, 0))


def test_columns_that_are_published_as_they_are_betray_members_by_themselves():
    made = MEMBERS.assign(income=HARMLESS["income"])
    score = MembershipInference(control=CONTROL)(MEMBERS, made)
    area_of = {row["attacker"]: row["area"] for row in score.breakdown.to_pylist()}
    assert score.value == area_of["age alone"] == 1
    alone = MembershipInference(control=CONTROL, columns=("income",))(MEMBERS, made)
    assert alone.value == area_of["income alone"]
    assert alone.value < alone.breakdown.to_pylist()[0]["area_limit"]


def test_without_control_records_there_is_no_membership_risk_to_report():
    with pytest.raises(NotApplicableError, match="control="):
        MembershipInference()(MEMBERS, HARMLESS)


def test_distances_are_those_of_a_slow_reference():
    sets = record_sets([MEMBERS[:40], HARMLESS[:30]], None)
    points = places(sets)
    found = nearest(points[sets.rows(1)], points[sets.rows(0)])
    spread = MEMBERS[:40][["age", "income"]].std(ddof=0)
    for distance, (_, row) in zip(found, HARMLESS[:30].iterrows(), strict=True):
        square = (((MEMBERS[:40][spread.index] - row[spread.index]) / spread) ** 2).sum(axis=1)
        square += (MEMBERS[:40]["region"] != row["region"]).astype(float)
        square += (MEMBERS[:40]["ill"] != row["ill"]).astype(float)
        assert distance == pytest.approx(np.sqrt(float(square.min())))


def test_nearest_distances_are_a_description_that_cannot_tell_a_leak():
    """Each member moved by the same small amount: near to all, and a full leak."""
    moved = MEMBERS.assign(age=MEMBERS["age"] + 0.01)
    score = NearestRecordDistance(control=CONTROL)(MEMBERS, moved)
    assert score.kind == "description"
    assert "no measure of risk" in score.reading
    assert score.breakdown.column_names == ["quantile", "synthetic", "control"]
    far = MEMBERS.assign(age=MEMBERS["age"] + 1e4)
    assert NearestRecordDistance()(MEMBERS, far).value > 100
    assert MembershipInference(control=CONTROL, columns=("age",))(
        MEMBERS, far
    ).value == pytest.approx(0.5, abs=0.1)


def slow_attribution(original, made, keys, target):
    shares = []
    for _, row in made.iterrows():
        alike = made[(made[keys] == row[keys]).all(axis=1)]
        people = original[(original[keys] == row[keys]).all(axis=1)]
        if alike[target].nunique() == 1 and len(people):
            shares.append((people[target] == row[target]).mean())
    return np.mean(shares) if shares else 0.0


def coarse(frame):
    return frame.assign(decade=(frame["age"] // 10).astype(int), rich=frame["income"] > 40_000)


@pytest.mark.parametrize("seed", [3, 4])
def test_attribution_is_that_of_a_slow_reference(seed):
    original, made = coarse(MEMBERS[:150]), coarse(draw(120, seed))
    keys = ["decade", "region", "rich"]
    score = CorrectAttribution(target="ill", keys=tuple(keys))(original, made)
    assert score.value == pytest.approx(slow_attribution(original, made, keys, "ill"))


def test_the_original_attributes_the_truth_and_shuffled_targets_do_not():
    keys = ("age", "income", "region")
    exact = CorrectAttribution(target="ill", keys=keys)(MEMBERS, MEMBERS)
    assert exact.value == 1
    shuffled = MEMBERS.assign(ill=np.random.default_rng(1).permutation(MEMBERS["ill"]))
    blind = CorrectAttribution(target="ill", keys=keys)(MEMBERS, shuffled)
    assert blind.value <= values(blind)["baseline"]
    assert values(blind)["share of synthetic records with a certain guess"] == 1


def test_attribution_needs_a_target_and_keys():
    with pytest.raises(NotApplicableError, match="target="):
        CorrectAttribution()(MEMBERS, HARMLESS)
    with pytest.raises(NotApplicableError, match="'wealth'"):
        CorrectAttribution(target="wealth")(MEMBERS, HARMLESS)
    with pytest.raises(NotApplicableError, match="keys="):
        CorrectAttribution(target="ill", keys=("ill",))(MEMBERS, HARMLESS)


def test_copies_are_found_and_new_records_are_none():
    assert CopiedRecords()(MEMBERS, MEMBERS).value == 1
    assert CopiedRecords()(MEMBERS, HALF).value == 0.5
    assert CopiedRecords()(MEMBERS, HARMLESS).value == 0
    rounded = MEMBERS.assign(age=MEMBERS["age"] * (1 + 1e-14))
    assert CopiedRecords()(MEMBERS, rounded).value > 0.99


def test_uniques_are_counted_by_their_keys():
    original = pd.DataFrame({"a": list("xyzzw"), "b": [1, 2, 3, 3, 4]})
    made = pd.DataFrame({"a": list("xyyzq"), "b": [1, 2, 2, 3, 9]})
    score = ReplicatedUniques()(original, made)
    assert score.value == 1 / 5
    assert score.breakdown.to_pylist()[0]["uniques"] == 3
    assert ReplicatedUniques()(MEMBERS, MEMBERS).value == 1
    assert ReplicatedUniques()(MEMBERS, HARMLESS).value == 0
    with pytest.raises(UnknownNameError):
        ReplicatedUniques(keys=("agee",))(MEMBERS, HARMLESS)
