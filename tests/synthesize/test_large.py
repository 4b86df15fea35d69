"""Rules of suppression for what is preserved, against slow loops; cutting, and what is said."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.errors import ParameterError
from discreet.rules import Dominance, PPercent
from discreet.synthesis import UnsafeRowsError
from discreet.synthesis.formula import parse
from discreet.synthesis.large import (
    Figure,
    RowSets,
    breaking,
    cut_columns,
    preserved_figures,
    read_rules,
    sensitive_cells,
)
from discreet.synthesis.model import Factor, Rows, build
from discreet.synthesis.sentences import SynthesisEvidence, unchanged
from tests.synthesize.people import SECRET, people

P = PPercent(10)


def slow_p_percent(values, p=0.1):
    """What is left without the two largest is less than p of the largest."""
    ordered = sorted(values, reverse=True) + [0.0, 0.0]
    return ordered[0] > 0 and sum(ordered[2:]) < p * ordered[0]


def slow_length(values, p=0.1):
    """The root of the squares, less those of the second, estimates the largest to within p."""
    ordered = sorted(values, reverse=True) + [0.0]
    estimate = np.sqrt(sum(v**2 for v in ordered) - ordered[1] ** 2)
    return ordered[0] > 0 and estimate < (1 + p) * ordered[0]


def test_sums_and_squares_agree_with_slow_loops():
    rng = np.random.default_rng(1)
    cells = rng.integers(0, 40, 200)
    values = rng.lognormal(0, 1.5, 200)
    for is_length, slow in ((False, slow_p_percent), (True, slow_length)):
        found = sensitive_cells(Figure("", (0,), values, RowSets.of(cells), is_length), [P])
        expected = [slow(values[cells == c].tolist()) for c in range(40)]
        assert 3 < sum(expected) < 37
        assert found.tolist() == expected


def test_every_rule_for_magnitudes_and_the_threshold_are_taken():
    cells = np.repeat([0, 1, 2], [2, 4, 9])
    values = np.array([1.0, 1, 30, 1, 1, 1, *[1.0] * 9])
    figure = Figure("", (0,), values, RowSets.of(cells))
    for rule, expected in {
        "threshold(3)": [True, False, False],
        "few-contributors(3)": [True, False, False],
        "dominance(1, 80)": [False, True, False],
        "dominance(4, 60)": [True, True, False],
        "p%(10)": [True, True, False],
        "p/q(10, 50)": [True, True, False],
    }.items():
        assert sensitive_cells(figure, read_rules(rule)).tolist() == expected, rule
    assert not sensitive_cells(figure, ()).any()
    assert read_rules(Dominance(1, 80)) == (Dominance(1, 80),)
    with pytest.raises(ParameterError, match="few-contributors"):
        read_rules("k-disclosure")


def model_of(frame, formula):
    parsed = parse(formula)
    columns = {"region": Factor.of(frame["region"]), "age": frame["age"].to_numpy(float)}
    Y = frame[list(parsed.confidential)].to_numpy(float)
    return build(parsed, Y, columns), Rows(Y, columns)


def test_all_that_is_preserved_is_looked_at():
    frame = people(80)
    model, rows = model_of(frame, "income + tax ~ age + region")
    names = {figure.what for figure in preserved_figures(model, rows, "clusters")}
    assert names == {"sums", "sums of region", "products with age", "squares", "covariances"}
    assert not breaking(model, rows, "clusters", [P])
    north = np.flatnonzero(frame["region"] == "north")
    small = frame.copy()
    small.loc[north[1:], "income"] *= 1e-4
    found = breaking(*model_of(small, "income + tax ~ age + region"), "clusters", [P])
    assert {name: rows.tolist() for name, rows in found.items()} == {"sums of region": [north[0]]}


@pytest.mark.parametrize("method", ["ipso", "romm", "hybrid", "mixed"])
def test_a_dominated_group_is_refused_by_every_method(method):
    frame = people(120)
    north = np.flatnonzero(frame["region"] == "north")
    frame.loc[north[1:], "income"] *= 1e-4
    options = {
        "ipso": {},
        "romm": {"lambda_": 0.5},
        "hybrid": {"clusters": "region"},
        "mixed": {"counts": dc.ControlledRounding(base=5), "secret": SECRET, "name": "people"},
    }[method]
    formula = "income ~ 1" if method == "hybrid" else "income ~ region"
    with pytest.raises(UnsafeRowsError, match="rule of suppression: sums of") as error:
        dc.synthesize(frame, formula, method, **options)
    assert error.value.rows.tolist() == [north[0]]
    dc.synthesize(frame, formula, method, large="top-code", **options)
    dc.synthesize(frame, formula, method, rules=(), **options)


def test_a_dominated_cluster_is_merged_on_request():
    frame = people(120)
    frame.loc[np.flatnonzero(frame["region"] == "north")[1:], "income"] *= 1e-4
    request = {"formula": "income ~ 1", "method": "hybrid", "clusters": "region"}
    made = dc.synthesize(frame, merge="pool", **request)
    sums = [f.groupby("region")["income"].sum() for f in (frame, made.frame)]
    assert (abs(sums[0] - sums[1]) > 1).sum() == 2
    assert sums[0].sum() == pytest.approx(sums[1].sum())


def test_numbers_are_cut_to_what_the_others_reach():
    age = np.array([20.0, 30, 40, 50, 900])
    other = np.array([1.0, 2, 1, 2, 1])
    last = np.arange(5) == 4
    cut = cut_columns({"age": age, "other": other}, last)
    assert cut["age"].tolist() == [20, 30, 40, 50, 50]
    assert cut["other"] is other
    assert cut_columns({"age": cut["age"]}, last) is None
    assert cut_columns({"region": Factor.of(["a"] * 5)}, last) is None


def giants():
    """One far out in age, and one in income."""
    frame = people(120)
    frame.loc[3, "age"] = 4_000
    frame.loc[5, "income"] *= 5_000
    return frame


def cut_evidence(made):
    frame = giants()
    age = np.minimum(frame["age"], np.sort(frame["age"])[-2])
    X = np.column_stack([np.ones(120), age, pd.get_dummies(frame["region"])]).astype(float)
    income = np.minimum(frame["income"], np.sort(frame["income"])[-2])
    Y, new = income.to_numpy()[:, None], made.frame[["income"]].to_numpy()
    return SynthesisEvidence(Y, new, X, np.ones(120), np.zeros(120, dtype=int))


def test_what_is_said_of_cut_records_is_true():
    with pytest.raises(UnsafeRowsError):
        dc.synthesize(giants(), "income ~ age + region")
    made = dc.synthesize(giants(), "income ~ age + region", large="top-code", secret=SECRET)
    assert "after large values were cut" in made.statement.text
    assert made.frame["age"].max() == 4_000
    evidence = cut_evidence(made)
    said = [s for s in made.statement.sentences if s.holds is not None]
    assert {"synthetic-columns", "large-units", "fits-kept", "moments-kept"} == {
        s.kind for s in said
    }
    for sentence in said:
        assert sentence.holds(evidence), sentence.text
    uncut = replace(evidence, X=np.column_stack([np.ones(120), giants()["age"]]))
    same = replace(evidence, synthetic=np.where(np.arange(120)[:, None] == 7, evidence.Y, 0.0))
    false = {s.kind for s in said if not s.holds(uncut)} | {
        s.kind for s in said if not s.holds(same)
    }
    assert false == {s.kind for s in said}


def test_values_that_a_cluster_shares_are_no_copies():
    Y = np.array([[1.0], [1.0], [3.0], [5.0]])
    clusters = np.array([0, 0, 1, 1])
    assert not unchanged(Y, np.array([[1.0], [1.0], [5.0], [3.0]]), clusters).any()
    assert unchanged(Y, np.array([[1.0], [1.0], [3.0], [4.0]]), clusters).ravel().tolist() == [
        False,
        False,
        True,
        False,
    ]
    assert unchanged(Y, Y, None).all()


def test_a_hybrid_statement_says_that_equal_values_stay():
    made = dc.synthesize(people(60), "income ~ 1", "hybrid", clusters="sex")
    assert made.statement.says("equal-values")


@pytest.mark.parametrize("columns", [1, 2])
def test_a_model_needs_as_many_degrees_of_freedom_as_columns_and_three(columns):
    """Fewer leave few candidates on the lattice to one of the records; two would leave a mirror."""
    names = ["income", "tax"][:columns]
    for free, is_safe in ((1, False), (columns + 2, False), (columns + 3, True)):
        n = free + 1
        frame = pd.DataFrame(dict.fromkeys(names, np.linspace(50.0, 60.0, n)))
        frame["tax"] = np.linspace(30.0, 36.0, n) + np.arange(n) % 2
        model = f"{' + '.join(names)} ~ 1"
        if is_safe:
            dc.synthesize(frame, model, rules=())
        else:
            with pytest.raises(UnsafeRowsError, match=r"the model leaves fewer than \d"):
                dc.synthesize(frame, model, rules=())


def test_an_option_for_large_units_is_one_of_two():
    with pytest.raises(ParameterError, match="'refuse' or 'top-code'"):
        dc.synthesize(people(60), "income ~ age", large="drop")
