"""Which settings of a method none beats."""

import numpy as np
import pytest

import discreet as dc
from discreet.assessment.compare.summary import is_dominated
from discreet.errors import ParameterError, UnknownNameError
from tests.assess.compare.methods import Shift
from tests.assess.helpers import weighted_table

SETTINGS = {"fitters": [], "replicates": 4, "risk": "unchanged-cells"}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    return dc.Table.from_inner(dc.Design.product({"a": 8, "b": 6}, "a*b"), rng.poisson(6, 48))


@pytest.fixture(scope="module")
def found(table):
    grid = {"D": [3, 5], "V": [1, 2, 3], "js": [0, 2]}
    return dc.assessment.frontier("cell-key", grid, table, **SETTINGS)


def test_every_setting_is_tried_or_refused_with_a_reason(found):
    tried = {a["label"] for a, _ in found.pairs}
    assert len(tried) + len(found.failed) == 12
    assert "D=5 V=3 js=2" in tried
    assert "cannot be met" in found.failed["D=3 V=3 js=0"]
    assert "cannot be met" in repr(found)


def test_efficient_settings_are_those_that_none_beats(found):
    rows = found.frame.to_pylist()
    points = [(row["risk"], -row["utility"]) for row in rows]
    for row, point in zip(rows, points, strict=True):
        assert row["efficient"] == (not is_dominated(point, points))
        beaten = any(
            a <= point[0] and b <= point[1] and (a < point[0] or b < point[1]) for a, b in points
        )
        assert row["efficient"] != beaten
    assert any(row["efficient"] for row in rows)


def test_the_frame_has_a_column_for_each_parameter(found):
    frame = found.to_pandas()
    assert {"D", "V", "js", "risk", "risk_lower", "utility_upper", "efficient"} <= set(frame)
    assert len(found.to_polars()) == len(frame)


def test_a_method_can_be_given_as_a_class(table):
    by_class = dc.assessment.frontier(Shift, {"by": [0, 1, 5]}, table, **SETTINGS)
    assert by_class.efficient == ["by=0", "by=1"]
    made = dc.assessment.frontier(dc.CellKey, {"D": [5], "V": [3], "js": [2]}, table, **SETTINGS)
    assert made.comparison.labels == ["D=5 V=3 js=2"]


def test_the_sensitive_variable_decides_the_usual_risk(table):
    found = dc.assessment.frontier(
        Shift, {"by": [0, 1]}, table, fitters=[], replicates=1, sensitive="b"
    )
    assert found.risk == "exact-disclosure-own"
    plain = dc.assessment.frontier(Shift, {"by": [0, 1]}, table, fitters=[], replicates=1)
    assert plain.risk == "unchanged-small-cells"


def test_stages_can_be_named(table):
    found = dc.assessment.frontier(
        dc.Pram, {"invariant": [True], "alpha": [0.2, 1.0]}, table, fitters=[], replicates=2,
        risk="unchanged-cells@published", utility="hellinger-utility@published",
    )  # fmt: skip
    assert {a["stage"] for a, _ in found.pairs} == {"published"}


def test_settings_that_a_table_rules_out_are_refused_with_the_reason(table):
    """Whether a cap leaves a guarantee depends on how many cells a record counts in."""
    grid = {"epsilon": [1.0, 4.0], "cap": [None, 3]}
    found = dc.assessment.frontier("discrete-laplace", grid, table, **SETTINGS)
    assert found.comparison.labels == ["epsilon=1.0 cap=None", "epsilon=4.0 cap=None"]
    assert all("δ" in reason for reason in found.failed.values())
    assert len(found.failed) == 2


def test_settings_are_compared_in_one_unit():
    found = dc.assessment.frontier(
        "laplace", {"epsilon": [1.0, 2.0]}, weighted_table(), unit="weight", **SETTINGS
    )
    assert found.comparison.job.table.unit == "weight"
    assert {a["on"] for a, _ in found.pairs} == {"published weights"}
    with pytest.raises(ParameterError, match="unit="):
        dc.assessment.frontier("laplace", {"epsilon": [1.0, 2.0]}, weighted_table(), **SETTINGS)


def test_wrong_grids_are_refused(table):
    with pytest.raises(ParameterError, match="grid"):
        dc.assessment.frontier("pram", {}, table)
    with pytest.raises(ParameterError, match="grid"):
        dc.assessment.frontier("pram", {"alpha": []}, table)
    with pytest.raises(ParameterError, match="no setting"):
        dc.assessment.frontier("pram", {"alpha": [7]}, table)
    with pytest.raises(ParameterError, match="Did you mean .by."):
        dc.assessment.frontier(Shift, {"bye": [1]}, table)
    with pytest.raises(ParameterError, match="alpha"):
        dc.assessment.frontier("pram", {"alpa": [1]}, table)
    with pytest.raises(UnknownNameError):
        dc.assessment.frontier("pram", {"alpha": [1]}, table, fitters=[], risk="unchanged")
