"""Every method at the same risk, as far as it can get there."""

import numpy as np
import pytest

import discreet as dc
from discreet.assess.compare.tunable import Range, range_for, with_parameter
from discreet.errors import ParameterError, UnknownNameError
from tests.assess.compare.methods import Shift

RISK = "unchanged-cells@published"


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    design = dc.Design.product({"a": 12, "b": 10}, "a*b")
    return dc.Table.from_inner(design, rng.poisson(6, 120))


def compare(table, methods, target, **settings):
    given = {"fitters": [], "measures": ["hellinger-utility"], "replicates": 8, **settings}
    return dc.compare(table, methods, equal_risk=(RISK, target), **given)


@pytest.fixture(scope="module")
def tuned(table):
    methods = {
        "private": dc.DiscreteLaplace(epsilon=1.0),
        "keyed": dc.DiscreteLaplace(epsilon=5.0, keyed=True),
        "weak": dc.DropAdd(cap=1),
        "fixed": Shift(1),
    }
    return compare(table, methods, 0.15)


def test_methods_that_can_reach_the_risk_do(tuned):
    reached = {t.label: t for t in tuned.tuning}
    for label in ("private", "keyed"):
        assert reached[label].reached
        assert reached[label].risk == pytest.approx(0.15, abs=0.02)
        assert reached[label].risk <= 0.15


def test_the_comparison_has_the_risk_that_was_tuned_to(tuned):
    lines = {line["label"]: line["mean"] for line in tuned.risk().lines}
    assert tuned.risk().title == "unchanged-cells (published)"
    for found in tuned.tuning:
        assert lines[found.label] == pytest.approx(found.risk)


def test_a_method_that_cannot_reach_it_says_so_and_ranks_last(tuned):
    weak = next(t for t in tuned.tuning if t.label == "weak")
    assert not weak.reached
    assert weak.risk == min(t.risk for t in weak.tried)
    assert "cannot reach the target 0.15" in weak.sentence
    assert weak.sentence in repr(tuned)
    assert tuned.ranking()[-1]["label"] == "weak"
    utility = {line["label"]: line["mean"] for line in tuned.utility("hellinger-utility").lines}
    assert utility["weak"] > utility["private"]


def test_what_has_nothing_to_tune_is_taken_as_it_is(tuned):
    fixed = next(t for t in tuned.tuning if t.label == "fixed")
    assert fixed.parameter == ""
    assert fixed.reached
    assert "nothing to tune" in fixed.sentence


def test_labels_show_the_tuned_value_unless_they_were_given(table):
    found = compare(table, [dc.Laplace(epsilon=1.0)], 0.2)
    value = found.tuning[0].value
    assert found.labels == [f"laplace epsilon={value:.4g}"]
    assert f"epsilon={value:.4g}" in found.tuning[0].sentence


def test_equal_labels_after_tuning_keep_the_old_ones(table):
    methods = [dc.Laplace(epsilon=1.0), dc.Laplace(epsilon=2.0)]
    found = compare(table, methods, 0.2)
    assert found.labels == ["laplace epsilon=1", "laplace epsilon=2"]
    assert found.tuning[0].value == found.tuning[1].value


def test_a_range_can_be_given_by_label_or_name(table):
    listed = compare(table, dc.DropAdd(), 0.5, tune={"drop-add": ("cap", [1, 2, 3])})
    assert {t.value for t in listed.tuning[0].tried} == {1, 2, 3}
    ranged = compare(table, {"q": dc.Pram()}, 0.9, tune={"q": ("alpha", 0.2, 0.9)})
    assert ranged.tuning[0].parameter == "alpha"
    assert all(0.2 <= t.value <= 0.9 for t in ranged.tuning[0].tried)


def test_risk_below_the_target_everywhere_is_the_weakest_setting(table):
    found = compare(table, dc.Laplace(epsilon=1.0), 0.99, tune={"laplace": ("epsilon", 0.1, 1.0)})
    tuned = found.tuning[0]
    assert tuned.reached
    assert tuned.value == pytest.approx(1.0)
    assert "weakest" in tuned.sentence


def test_tuning_goes_on_where_it_stopped(table, tmp_path, monkeypatch):
    from discreet.assess.compare.job import Job

    first = compare(table, dc.Laplace(epsilon=1.0), 0.2, resume=tmp_path / "kept")
    monkeypatch.setattr(Job, "run", lambda *_: pytest.fail("a draw was made again"))
    again = compare(table, dc.Laplace(epsilon=1.0), 0.2, resume=tmp_path / "kept")
    assert again.tuning == first.tuning


@pytest.mark.parametrize("goal", ["unchanged-cells", ("unchanged-cells",), ("x", "y"), 3])
def test_a_measure_and_a_target_are_needed(table, goal):
    with pytest.raises(ParameterError, match="target"):
        dc.compare(table, dc.Pram(), equal_risk=goal, fitters=[])


@pytest.mark.parametrize("measure", ["hellinger-utility", "l-diversity"])
def test_only_risks_that_are_lower_where_safer_will_do(table, measure):
    with pytest.raises(ParameterError, match="lower"):
        dc.compare(table, dc.Pram(), equal_risk=(measure, 0.5), fitters=[])


def test_wrong_names_and_ranges_are_refused(table):
    with pytest.raises(UnknownNameError, match="pram"):
        compare(table, dc.Pram(), 0.5, tune={"pran": ("alpha", 0.1, 1.0)})
    with pytest.raises(UnknownNameError, match="alpha"):
        compare(table, dc.Pram(), 0.5, tune={"pram": ("alpa", 0.1, 1.0)})
    with pytest.raises(ParameterError, match="upwards"):
        Range.of("alpha", 1.0, 0.5)
    with pytest.raises(ParameterError, match="range"):
        Range.of("alpha")
    impossible = {"cell-key": ("V", 50.0, 60.0)}
    with pytest.raises(ParameterError, match="tune="):
        compare(table, dc.CellKey(dc.perturbation_table(D=5, V=3, js=2)), 0.5, tune=impossible)


def test_a_perturbation_table_is_tuned_within_what_can_be_made():
    method = dc.CellKey(dc.perturbation_table(D=5, V=3, js=2))
    span = range_for(method)
    assert span.parameter == "V"
    assert 2 < span.low < span.high < 3.7778
    made = with_parameter(method, "V", span.high)
    assert made.matrix.parameters["V"] == pytest.approx(span.high)
    assert made.matrix.parameters["js"] == 2


def test_whole_parameters_stay_whole():
    span = Range.of("base", 2, 15)
    assert span.whole
    assert span.grid(7) == list(range(2, 16))
    assert len(Range.of("cap", 1, 1000).grid(7)) < 60


def test_methods_without_a_usual_range_have_none():
    assert range_for(Shift()) is None
    matrix = dc.TransitionMatrix.from_law("made by hand", [[0, 1, 0], [0.2, 0.6, 0.2]])
    assert range_for(dc.CellKey(matrix)) is None
    with pytest.raises(UnknownNameError):
        with_parameter(dc.CellKey(matrix), "V", 3)
