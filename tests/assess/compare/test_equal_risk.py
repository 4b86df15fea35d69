"""Every method at the same risk, as far as it can get there."""

import numpy as np
import pytest

import discreet as dc
from discreet.assessment.compare.contestants import Contestant
from discreet.assessment.compare.equal_risk import (
    ParameterRange,
    StrengthSearch,
    Tried,
    range_for,
    with_parameter,
)
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
        "gaussian": dc.DiscreteGaussian(rho=5.0),
        "keyed": dc.Pram(),
        "weak": dc.Laplace(epsilon=5.0),
        "still": dc.DropAdd(cap=1),
        "fixed": Shift(1),
    }
    return compare(table, methods, 0.15, tune={"weak": ("epsilon", 3.0, 20.0)})


def test_methods_that_can_reach_the_risk_do(tuned):
    reached = {t.label: t for t in tuned.tuning}
    for label in ("private", "gaussian", "keyed"):
        assert reached[label].reached
        assert reached[label].risk == pytest.approx(0.15, abs=0.02)
        assert reached[label].risk <= 0.15


def test_the_comparison_has_the_risk_that_was_tuned_to(tuned):
    lines = {line["label"]: line["mean"] for line in tuned.risk().lines}
    assert tuned.risk().title == "unchanged-cells (published)"
    for found in tuned.tuning:
        assert lines[found.label] == pytest.approx(found.risk, abs=0.06)


def test_what_is_compared_did_not_choose_the_setting(tuned):
    """The same setting on the draws of the comparison: other scores than those it was tuned by."""
    private = next(t for t in tuned.tuning if t.label == "private")
    line = next(line for line in tuned.risk().lines if line["label"] == "private")
    assert line["mean"] != private.risk
    same_seed = dc.compare(
        tuned.job.table, {"private": dc.DiscreteLaplace(epsilon=private.value)},
        fitters=[], measures=["unchanged-cells"], replicates=8,
    )  # fmt: skip
    assert same_seed[RISK].lines[0]["mean"] == pytest.approx(line["mean"])


def test_a_method_that_cannot_reach_it_says_so_and_ranks_last(tuned):
    weak = next(t for t in tuned.tuning if t.label == "weak")
    assert not weak.reached
    assert weak.risk == min(t.risk for t in weak.tried)
    assert "cannot reach the target 0.15" in weak.sentence
    assert weak.sentence in repr(tuned)
    assert {line["label"] for line in tuned.ranking()[-2:]} == {"weak", "still"}
    utility = {line["label"]: line["mean"] for line in tuned.utility("hellinger-utility").lines}
    assert utility["weak"] > utility["private"]


def test_what_has_nothing_to_tune_is_taken_as_it_is(tuned):
    fixed = next(t for t in tuned.tuning if t.label == "fixed")
    assert fixed.parameter == ""
    assert fixed.reached
    assert "nothing to tune" in fixed.sentence


def test_a_parameter_that_does_not_move_the_risk_is_left_as_it_was(tuned):
    still = next(t for t in tuned.tuning if t.label == "still")
    assert not still.reached
    assert still.value == 0.01
    assert "share does not move it" in still.sentence
    assert tuned.job.contestants[4].method == dc.DropAdd(cap=1)


@pytest.mark.parametrize(
    ("risks", "target", "value"),
    [
        ([0.5, 0.5, 0.5, 0.5], 0.6, 3),  # nothing moves, within the target: as it was given
        ([0.5, 0.5, 0.5, 0.5], 0.4, 3),  # nothing moves, above it: as it was given
        ([0.9, 0.4, 0.0, 0.0], 0.2, 4),  # of equal risks the weaker setting
        ([0.0, 0.0, 0.4, 0.9], 0.2, 3),
        ([0.9, 0.5, 0.5, 0.5], 0.2, 3),  # out of reach: the weakest of the lowest
    ],
)
def test_of_settings_with_equal_risk_the_weaker_one_is_taken(risks, target, value):
    contestant = Contestant("rounding", dc.ControlledRounding(base=3))
    search = StrengthSearch(contestant, ParameterRange("base", 2, 5, whole=True), target)
    search.tried = [Tried(v, risk, 0.001) for v, risk in zip(range(2, 6), risks, strict=True)]
    assert search.result(RISK).value == value


def test_what_was_given_as_fixed_is_not_tuned(table):
    methods = {"law": dc.DropAdd(share=0.3), "free": dc.DropAdd()}
    found = compare(table, methods, 0.5, replicates=2)
    assert [t.parameter for t in found.tuning] == ["", "share"]
    assert found.job.contestants[0].method.share == 0.3
    kept = compare(table, {"kept": dc.Laplace(epsilon=1.0)}, 0.5, tune={"kept": None})
    assert kept.job.contestants[0].method.epsilon == 1.0
    assert "nothing to tune" in kept.tuning[0].sentence
    named = compare(table, methods, 0.5, replicates=2, tune={"law": ("share", [0.3, 0.4])})
    assert {t.value for t in named.tuning[0].tried} == {0.3, 0.4}


def test_a_method_whose_risk_cannot_be_measured_is_not_at_the_target(table):
    methods = {"private": dc.Laplace(epsilon=1.0), "pram": dc.Pram(invariant=True)}
    found = compare_at(table, methods, ("mechanism-epsilon", 1.0))
    private, pram = found.tuning
    assert private.reached
    assert not pram.reached
    assert "could not be measured" in pram.sentence
    assert found.ranking()[-1]["label"] == "pram"


def compare_at(table, methods, goal):
    return dc.compare(
        table, methods, equal_risk=goal, fitters=[], measures=["hellinger-utility"], replicates=2
    )


def test_all_settings_are_judged_at_one_stage(table):
    """Rounding publishes its inner cells, noise does not: most methods decide, once."""
    methods = {"a": dc.Laplace(epsilon=1.0), "b": dc.ControlledRounding()}
    found = compare_at(table, methods, ("unchanged-cells", 0.2))
    assert {t.measure for t in found.tuning} == {"unchanged-cells@published"}


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
    ranged = compare(table, {"q": dc.Pram(invariant=True)}, 0.9, tune={"q": ("alpha", 0.2, 0.9)})
    assert ranged.tuning[0].parameter == "alpha"
    assert all(0.2 <= t.value <= 0.9 for t in ranged.tuning[0].tried)


def test_risk_below_the_target_everywhere_is_the_weakest_setting(table):
    found = compare(table, dc.Laplace(epsilon=1.0), 0.99, tune={"laplace": ("epsilon", 0.1, 1.0)})
    tuned = found.tuning[0]
    assert tuned.reached
    assert tuned.value == pytest.approx(1.0)
    assert "weakest" in tuned.sentence


def test_tuning_goes_on_where_it_stopped(table, tmp_path, monkeypatch):
    from discreet.assessment import Job

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
        ParameterRange.of("alpha", 1.0, 0.5)
    with pytest.raises(ParameterError, match="range"):
        ParameterRange.of("alpha")
    for empty in ([], ("alpha", [])):
        with pytest.raises(ParameterError, match="at least one value"):
            compare(table, dc.Pram(), 0.5, tune={"pram": empty})
    with pytest.raises(ParameterError, match="no method"):
        compare(table, [], 0.5)
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
    span = ParameterRange.of("base", 2, 15)
    assert span.whole
    assert span.grid(7) == list(range(2, 16))
    assert len(ParameterRange.of("cap", 1, 1000).grid(7)) < 60


def test_alpha_is_tuned_where_it_matters():
    """It is the strength of the invariant form; a fixed designed matrix has nothing to tune."""
    matrix = dc.noise.pram()
    assert range_for(dc.Pram(matrix=matrix, invariant=True)).parameter == "alpha"
    assert range_for(dc.Pram(matrix=matrix)) is None
    assert range_for(dc.Pram()).parameter == "epsilon"


def test_methods_without_a_usual_range_have_none():
    assert range_for(Shift()) is None
    matrix = dc.TransitionMatrix.from_law("made by hand", [[0, 1, 0], [0.2, 0.6, 0.2]])
    assert range_for(dc.CellKey(matrix)) is None
    with pytest.raises(UnknownNameError):
        with_parameter(dc.CellKey(matrix), "V", 3)
