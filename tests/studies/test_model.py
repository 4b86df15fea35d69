"""Verdicts: what agrees, what differs as known, what lies outside."""

import math

import numpy as np
import pytest

from discreet_studies.chance import mean_and_spread, orders, quantile, share_limits
from discreet_studies.model import (
    Figure,
    Finding,
    Ground,
    Known,
    Outcome,
    PrintedTable,
    Study,
    Verdict,
    as_printed,
    by_row,
    elsewhere,
    grid,
    over_seeds,
    own,
    with_forced_zeros,
)


def figure(printed, computed, known=None):
    return Figure("row", "column", printed, computed, as_printed(printed), known)


@pytest.mark.parametrize(
    ("printed", "computed", "agrees"),
    [
        ("0.352", 0.35249, True),
        ("0.352", 0.35151, True),
        ("0.352", 0.35251, False),
        ("3.46E-05", 3.4576e-5, True),
        ("3.46E-05", 3.466e-5, False),
        ("0.000000633", 6.334e-7, True),
        ("17", 17.0, True),
        ("17", 17.2, False),
        ("0", 1e-6, False),
        ("-0.333", -1 / 3, True),
        ("0.5", math.nan, False),
    ],
)
def test_figures_agree_when_they_round_to_the_printed_digits(printed, computed, agrees):
    assert figure(printed, computed).verdict is (Verdict.exact if agrees else Verdict.outside)


def test_a_known_difference_must_be_the_known_one():
    known = Known(0.9754, 0.001, "a misprint.")
    assert figure("0.9849", 0.9751, known).verdict is Verdict.explained
    assert figure("0.9849", 0.9849, known).verdict is Verdict.outside
    assert figure("0.9849", math.nan, known).verdict is Verdict.outside


@pytest.mark.parametrize(
    ("printed", "computed", "shown"),
    [
        ("0.352", 0.36, "0.3600"),
        ("1531.1", 1560.349, "1560.35"),
        ("2", 2.14543, "2.1454"),
        ("443880", 443_912.0, "443912"),
        ("3.46E-05", 3.4576e-5, "3.458e-05"),
        ("0.9", math.inf, "inf"),
    ],
)
def test_our_value_has_one_digit_more(printed, computed, shown):
    assert figure(printed, computed).shown == shown


def test_grids_leave_out_what_is_not_printed():
    found = grid({"a": ("1.5", ""), "b": ("", "2.5")}, ["x", "y"], lambda row, column: 1.5)
    assert [(f.row, f.column, f.verdict) for f in found] == [
        ("a", "x", Verdict.exact),
        ("b", "y", Verdict.outside),
    ]
    with pytest.raises(ValueError, match="shorter"):
        grid({"a": ("1.5",)}, ["x", "y"], lambda row, column: 1.5)


def test_lines_of_words():
    assert by_row("\nA 1 2\nB 3 4\n") == {"A": ["1", "2"], "B": ["3", "4"]}


def test_what_cannot_fail_is_not_agreement():
    forced = with_forced_zeros([figure("0", 0.0), figure("0.5", 0.5)])
    assert [f.verdict for f in forced] == [Verdict.construction, Verdict.exact]
    broken = Figure("r", "c", "1", 3.0, 0.5, ground=Ground.construction)
    assert broken.verdict is Verdict.outside
    assert elsewhere("r", "c", "1", 3.0).verdict is Verdict.other_data


def test_a_wider_tolerance_is_not_exact():
    assert Figure("r", "c", "0.5", 0.5, 0.1).verdict is Verdict.within
    assert Figure("r", "c", "0.5", 0.61, 0.1).verdict is Verdict.outside


def test_stars_must_be_the_same():
    assert Figure("r", "c", "0.5*", 0.5, 0.05, mark="*").verdict is Verdict.exact
    assert Figure("r", "c", "0.5*", 0.5, 0.05).verdict is Verdict.outside
    assert Figure("r", "c", "0.5", 0.5, 0.05, mark="*").verdict is Verdict.outside
    assert Figure("r", "c", "0.5*", 0.5, 0.05, mark="*").shown == "0.50*"


def test_simulated_means_know_their_error():
    mean, spread = mean_and_spread([1.0, 3.0] * 50, paper=400)
    assert mean == 2
    assert spread == pytest.approx(quantile(100) * math.sqrt(100 / 99 * (1 / 100 + 1 / 400)))
    assert quantile(20) > quantile(500) > 4


def test_orders_are_seen_undecided_or_contradicted():
    rng = np.random.default_rng(1)
    common, noise = 100 * rng.normal(size=400), rng.normal(size=(2, 400))
    clear = orders([[common + noise[0], common + 1 + noise[1]]])
    assert clear[0] is True
    assert "paired standard errors" in clear[1]
    assert orders([[common + 1 + noise[0], common + noise[1]]])[0] is False
    assert orders([[common + noise[0], common + 0.02 + noise[1]]])[0] is None
    assert orders([[common, common + 1], [common + 1 + noise[0], common + noise[1]]])[0] is False
    assert orders([[common, common]])[0] is None


def study(*figures, holds=True):
    table = PrintedTable("Table 1", "An example", tuple(figures))
    finding = Finding("Water is wet.", holds, "Seen.")
    return Study("toy", "A toy", "Nobody (2000)", (table,), (finding,))


def test_failures_name_what_is_wrong():
    assert study(figure("0.5", 0.52)).failures == []
    assert study(figure("0.5", 0.7)).failures == [
        "Table 1, row, column: printed 0.5, computed 0.70"
    ]
    assert study(figure("0.5", 0.5), holds=False).failures == ["not borne out: Water is wet."]


def test_the_summary_is_understood_without_a_legend():
    known = Known(1.0, 0.1, "because.")
    found = study(
        figure("0.5", 0.5),
        figure("0.5", 1.0, known),
        figure("0.5", 0.7),
        Figure("r", "c", "0.5", 0.5, 0.1),
        *with_forced_zeros([figure("0", 0.0)]),
        Figure("r", "c, anchored", "0.5", 0.5, 0.1, ground=Ground.anchored),
        elsewhere("r", "c", "1", 3.0),
    )
    assert found.summary == (
        "Of 6 printed figures 3 can be compared with a computation that does not use them: 1 agree "
        "in all printed digits, 1 within the tolerance beside them, 1 do not agree. True by "
        "construction, which is no agreement: 1. Shown and not judged, since they rest on data "
        "that are not at hand or on draws that nobody can repeat: 1. Different for a reason that "
        "is given: 1. Compared once more, anchored at a printed figure of another row: 1. "
        "Sentences of the paper: 1 hold."
    )
    sentences = (Finding("a", True, ""), Finding("b", False, ""), own("c", True, ""))
    assert Study("toy", "A toy", "Nobody", (), sentences).summary == (
        "The paper prints no figures here. Sentences of the paper: 1 hold, 1 DO NOT HOLD. Checks "
        "of our own: 1 hold."
    )


def test_a_figure_that_a_stand_in_was_shaped_for_is_never_agreement():
    near, far = (Figure("r", "c", "0.5", value, 0.1, ground=Ground.shaped) for value in (0.55, 0.7))
    assert (near.verdict, far.verdict) == (Verdict.construction, Verdict.other_data)
    anchored = Figure("r", "c", "0.5", 0.7, 0.1, ground=Ground.anchored)
    assert anchored.verdict is Verdict.outside


@pytest.mark.parametrize(
    ("held", "outcome"),
    [(20, Outcome.holds), (19, Outcome.holds), (18, Outcome.undecided), (2, Outcome.undecided),
     (1, Outcome.fails), (0, Outcome.fails)],
)  # fmt: skip
def test_a_sentence_over_seeds_is_reported_as_a_share(held, outcome):
    found = over_seeds([Finding("Water is wet.", k < held, "Seen.") for k in range(20)])
    assert found.outcome is outcome
    assert f"It holds for {held} of 20 seeds." in found.remark


@pytest.mark.parametrize("draws", [2, 20, 100, 120, 1_500])
@pytest.mark.parametrize("share", [0.025, 0.04, 0.5, 0.975])
def test_limits_of_shares_are_those_of_the_law(draws, share):
    """Against the law of scipy: beyond each limit lies less than its half of the chance."""
    from scipy.stats import betabinom

    fewest, most = share_limits(share, draws, 1_000)
    law = betabinom(draws, 1_000 * share + 0.5, 1_000 * (1 - share) + 0.5)
    assert law.cdf(fewest - 1) < 5e-6 <= law.cdf(fewest)
    assert law.sf(most) < 5e-6 <= law.sf(most - 1)
    wider = share_limits(share, draws, 1_000, rounding=0.005)
    assert wider[0] <= fewest
    assert most <= wider[1]


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"holds": True}, Outcome.holds),
        ({"holds": None}, Outcome.undecided),
        ({"holds": False}, Outcome.fails),
        ({"holds": False, "known": "Their solver stopped."}, Outcome.explained),
        ({"holds": False, "is_judged": False}, Outcome.not_judged),
    ],
)
def test_outcomes_of_findings(changes, outcome):
    finding = Finding("Water is wet.", evidence="Seen.", **changes)
    assert finding.outcome is outcome
    found = Study("toy", "A toy", "Nobody", (), (finding,))
    assert bool(found.failures) is (outcome is Outcome.fails)
    assert ("It is not so here" in finding.remark) is (outcome is Outcome.not_judged)
