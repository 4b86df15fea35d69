import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet import registry
from discreet.assessment import Assessment, NotApplicableError, Score
from discreet.assessment.utility.association import HellingerUtility
from discreet.errors import DesignError, UnknownNameError
from discreet.frames import Frame
from discreet.tables import CellStatus, PrivacyStatement, Statement
from tests.assess import party
from tests.assess.helpers import TEST, identity, weighted_table


def test_one_row_for_every_measure_and_reasons_for_the_others():
    result = dc.assess(party.table(), party.RELEASES["ckm"], sensitive="party")
    frame = result.frame
    names = frame["measure"].to_pylist()
    assert sorted(names) == sorted(registry.MEASURES)
    missing = {r["measure"]: r["note"] for r in frame.to_pylist() if r["value"] is None}
    assert missing.keys() == {
        "adjusted-chi-square",
        "disclosure-probability-refit",
        "exact-disclosure-refit",
        "mechanism-delta",
        "mechanism-epsilon",
        "proven-nonzero",
    }
    assert all(missing.values())
    assert all(r["reading"] and r["note"] is None for r in frame.to_pylist() if r["value"])


def test_without_a_sensitive_variable_the_reason_says_how_to_name_it():
    result = dc.assess(party.table(), party.RELEASES["ckm"])
    notes = {s.name: s.reason for s in result.skipped}
    assert "sensitive=" in notes["exact-disclosure"]
    assert "sensitive=" in notes["table-disclosure"]
    with pytest.raises(NotApplicableError, match="sensitive="):
        result["exact-disclosure"]


def test_an_unfitted_release_says_that_it_must_be_fitted_first():
    release = party.release(party.aggregated(party.TABLE_3))
    notes = {s.name: s.reason for s in dc.assess(party.table(), release, sensitive="party").skipped}
    assert "Fit them first" in notes["exact-disclosure"]
    assert "table-disclosure" not in notes


def test_options_reach_the_measures_that_have_them():
    table, release = party.table(), party.RELEASES["ckm"]
    result = dc.assess(table, release, ["hellinger-utility", "unchanged-cells"], cells="inner")
    assert [s.on for s in result] == ["inner counts", "inner counts"]
    own = HellingerUtility(cells="inner")
    assert result["hellinger-utility"] == own(table, release)
    assert dc.assess(table, release, [own])["hellinger-utility"] == own(table, release)


def test_an_option_or_measure_that_does_not_exist_is_refused():
    table, release = party.table(), party.RELEASES["ckm"]
    with pytest.raises(UnknownNameError, match="sensitive"):
        dc.assess(table, release, sensitiv="party")
    with pytest.raises(UnknownNameError, match="hellinger-utility"):
        dc.assess(table, release, ["hellinger-utilty"])
    with pytest.raises(UnknownNameError, match="party"):
        dc.assess(table, release, sensitive="partei")
    with pytest.raises(UnknownNameError, match="measure"):
        dc.assess(table, release, ["false-zeros"])["hellinger-utility"]


def test_it_reads_well_and_is_marked_confidential():
    text = repr(dc.assess(party.table(), party.RELEASES["ckm"], sensitive="party"))
    assert text.startswith("Assessment (confidential)")
    assert "party given age, sex  0.5556  0 to 1  lower is safer" in text
    assert "Not applicable" in text
    assert all(line == line.rstrip() for line in text.splitlines())
    result = dc.assess(party.table(), party.RELEASES["ckm"])
    html = result._repr_html_()
    assert "confidential" in html
    reasons = {s.reason for s in result.skipped}
    assert html.count("<tr>") + html.count("<li>") == len(result.scores) + len(reasons) + 2


def test_measures_that_do_not_apply_are_grouped_by_the_reason():
    result = dc.assess(party.table(), party.RELEASES["ckm"])
    listed = repr(result).partition("Not applicable\n")[2].splitlines()
    reasons = {s.reason for s in result.skipped}
    assert len(listed) == len(reasons) < len(result.skipped)
    sensitive = next(line for line in listed if "name the sensitive variable" in line)
    assert "exact-disclosure, exact-disclosure-own" in sensitive


def test_any_frame_library_takes_it():
    result = dc.assess(party.table(), party.RELEASES["ckm"])
    assert Frame.from_arrow(pa.table(result)) == result.frame
    assert len(result.to_pandas()) == result.frame.num_rows == len(result.to_polars())


def test_own_measures_can_be_registered_and_given():
    class Always:
        name, kind = "always", "risk"

        def __call__(self, table, release):
            return Score("always", 1.0, "risk", (0, 1), "lower")

    assert dc.assess(party.table(), party.RELEASES["ckm"], [Always()])["always"].value == 1.0


def test_withheld_cells_are_left_out():
    table = party.table()
    status = np.zeros(table.design.n_published, dtype=np.int8)
    status[[0, 3]] = CellStatus.suppressed, CellStatus.below_threshold
    z = np.where(status, 10_000, table.z)
    release = dc.Release(table.design, z, TEST, status=status)
    result = dc.assess(table, release, sensitive="party")
    assert result["withheld-cells"].value == pytest.approx(2 / 24)
    assert result["max-absolute-deviation"].value == 0
    assert result["additivity-error"].value == 0
    assert result["unchanged-cells"].value == 1
    assert {b["table"] for b in result["chi-square-shift"].breakdown.to_pylist()} == {"party×sex"}


def test_everything_withheld_leaves_nothing_to_compare():
    table = party.table()
    release = dc.Release(table.design, np.full(24, np.nan), TEST)
    result = dc.assess(table, release)
    assert result["withheld-cells"].value == 1
    assert {s.name for s in result.skipped} >= {"hellinger-utility", "unchanged-cells"}


def test_values_are_compared_in_the_unit_of_the_release():
    table = weighted_table()
    counts = dc.Release(table.design, table.z + 1, TEST)
    weights = dc.Release(table.design, table.weights + 10, TEST, unit="weight")
    found = [
        (score.on, score.value)
        for release in (counts, weights)
        for score in dc.assess(table, release, ["mean-absolute-deviation", "withheld-cells"])
    ]
    assert found == [
        ("published counts", 1.0),
        ("published values", 0.0),
        ("published weights", 10.0),
        ("published values", 0.0),
    ]


def test_weighted_counts_are_not_taken_for_numbers_of_records():
    """A weight of 1 is not one person: what is about single records does not apply."""
    table = weighted_table()
    release = table.simulate(dc.DropAdd(grid=10.0), seed=1)
    assert release.unit == "weight"
    ptable = dc.perturbation_table(D=5, V=3, js=2)
    result = dc.assess(table, release, sensitive="b", mechanism=ptable)
    assert {s.on for s in result if "counts" in s.on} == set()
    about_records = {s.name for s in result.skipped if "numbers of records" in s.reason}
    assert about_records >= {
        "differencing",
        "disclosure-probability",
        "exact-disclosure-own",
        "proven-nonzero",
        "surviving-small-cells",
        "unchanged-small-cells",
        "uniqueness",
    }


def test_a_table_without_weights_cannot_judge_weighted_counts():
    table = party.table()
    release = dc.Release(table.design, table.z * 10.0, TEST, unit="weight")
    result = dc.assess(table, release, ["mean-absolute-deviation"])
    assert "no weights" in result.skipped[0].reason


def test_trials_are_assessed_like_releases():
    table = party.table()
    trial = table.simulate("drop-add", seed=1, share=0.5)
    release = dc.Release(trial.design, trial.z, trial.statement)
    assert dc.assess(table, trial).scores == dc.assess(table, release).scores


def test_a_table_on_confidential_support_is_compared_on_the_public_one():
    frame = {"a": ["x", "y"], "b": ["u", "v"], "n": [4, 6]}
    table = dc.Table.from_counts(frame, count="n", margins="a*b", support="occurring")
    full = dc.Table.from_counts(frame, count="n", margins="a*b")
    release = identity(table)
    for name in ("mean-absolute-deviation", "exact-disclosure", "unchanged-cells"):
        score = dc.assess(table, release, [name], **_sensitive(name))
        assert score[name] == dc.assess(full, identity(full), [name], **_sensitive(name))[name]


def _sensitive(name):
    return {"sensitive": "b"} if name == "exact-disclosure" else {}


def test_a_saved_release_can_be_assessed(tmp_path):
    table, release = party.table(), party.RELEASES["scr"]
    back = dc.facade.read_release(release.save(tmp_path / "release.parquet"))
    again = dc.assess(table, back, sensitive="party")
    assert again["exact-disclosure-own"].value == pytest.approx(0.7143, abs=1e-4)


def test_a_release_of_another_table_is_refused():
    other = dc.Table.from_inner(dc.Design.product({"a": 3}, "a"), np.array([1, 2, 3]))
    with pytest.raises(DesignError, match="same cells"):
        dc.assess(party.table(), identity(other))


def test_a_design_made_from_a_matrix_has_what_needs_no_variables():
    X = np.array([[1, 0, 1], [0, 1, 1]])
    table = dc.Table.from_inner(dc.Design.from_matrix(X), np.array([4, 5]))
    release = dc.Release(table.design, np.array([4, 6, 9]), TEST)
    result = dc.assess(table, release, sensitive="party")
    assert result["mean-absolute-deviation"].value == pytest.approx(1 / 3)
    assert {s.name for s in result.skipped} >= {"exact-disclosure", "additivity-error"}


def test_a_crossing_too_large_to_hold_is_a_reason_not_a_crash():
    codes = [str(i) for i in range(3000)]
    frame = {"a": codes, "b": codes, "c": codes, "n": [2] * 3000}
    margins = [("a",), ("b",), ("c",)]
    table = dc.Table.from_counts(frame, count="n", margins=margins, support="occurring")
    release = dc.Release.of(table.design, table.z, TEST)
    result = dc.assess(table, release, sensitive="c")
    notes = {s.name: s.reason for s in result.skipped}
    assert "too many combinations" in notes["intersection-disclosure"]
    assert "Fit them first" in notes["exact-disclosure"]


def test_the_privacy_statement_of_a_release_is_reported():
    """That of adding or removing one unit; that of replacing one is about twice as much."""
    privacy = PrivacyStatement(
        0.5, 1e-6, epsilon_replace=1.0, delta_replace=3e-6, sensitivity=2, unit="record"
    )
    table = party.table()
    release = dc.Release(table.design, table.z, Statement(privacy=privacy))
    result = dc.assess(table, release)
    assert result["mechanism-epsilon"].value == 0.5
    assert result["mechanism-delta"].value == 1e-6
    assert result["mechanism-delta"].on == "the whole release"


PROGRAM = """
import discreet as dc
{first}
table = dc.Table.from_counts({{"a": ["x", "y"], "n": [1, 2]}}, count="n", margins="a")
release = dc.Release(table.design, table.z, dc.tables.statement.Statement())
for _ in range(2):
    assert dc.assess(table, release)["false-zeros"].value == 0
from discreet.assessment import assess, Assessment
from discreet.assessment.measure import Score
assert isinstance(assess(table, release), Assessment)
assert dc.assess is assess and dc.assessment.plots.save
"""


@pytest.mark.parametrize(
    "first", ["", "import discreet.assessment", "import discreet.assessment.measure", "dc.assess"]
)
def test_the_function_is_the_same_however_it_is_imported(first):
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(first=first)], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_a_score_says_how_to_read_it():
    score = Score("x", -2.0, "utility", (-3, 3), "zero", parts={"k": [1, 2]})
    assert score.reading == "nearer zero is better"
    assert score.loss == 2.0
    assert score.breakdown.to_pydict() == {"k": [1, 2]}
    assert Score("x", 0.7, "utility", (0, 1), "higher").loss == -0.7
    assert isinstance(Assessment((score,)).frame, Frame)
