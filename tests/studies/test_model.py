"""Verdicts: what agrees, what differs as known, what lies outside."""

import math

import pytest

from discreet.studies.model import (
    Figure,
    Finding,
    Known,
    PrintedTable,
    Study,
    Verdict,
    as_printed,
    by_row,
    grid,
    simulated,
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
    assert figure(printed, computed).verdict is (Verdict.agrees if agrees else Verdict.outside)


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
        ("a", "x", Verdict.agrees),
        ("b", "y", Verdict.outside),
    ]
    with pytest.raises(ValueError, match="shorter"):
        grid({"a": ("1.5",)}, ["x", "y"], lambda row, column: 1.5)


def test_lines_of_words():
    assert by_row("\nA 1 2\nB 3 4\n") == {"A": ["1", "2"], "B": ["3", "4"]}


def test_simulated_means_know_their_error():
    mean, spread = simulated([1.0, 3.0] * 50)
    assert mean == 2
    assert spread == pytest.approx(3 * math.sqrt(2 * (100 / 99) / 100))


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


def test_the_summary_counts():
    known = Known(1.0, 0.1, "because.")
    found = study(figure("0.5", 0.5), figure("0.5", 1.0, known), figure("0.5", 0.7))
    assert found.summary == (
        "3 printed figures: 1 agree, 1 differ for a known reason, 1 lie outside their tolerance. "
        "1 of 1 findings are borne out."
    )
