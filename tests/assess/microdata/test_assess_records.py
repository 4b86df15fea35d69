"""`dc.assess` of records: any source, all measures, what does not apply."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import discreet as dc
from discreet import registry
from discreet.assessment.microdata.record_sets import record_sets, row_classes
from discreet.errors import DataError, UnknownNameError
from tests.assess.microdata.population import draw

ORIGINAL, CONTROL = draw(240, 1), draw(100, 2)


@pytest.fixture(scope="module")
def made():
    return dc.synthesize(ORIGINAL, "income ~ age + region", simulate=True, seed=1)


def test_every_measure_of_records_is_taken(made):
    result = dc.assess(ORIGINAL, made, control=CONTROL, target="ill")
    assert [score.name for score in result] == list(registry.RECORD_MEASURES)
    assert not result.skipped
    for score in result:
        assert score.range[0] <= score.value <= score.range[1]
        assert score.on
        assert score.breakdown.num_rows
    shown = repr(result)
    assert "Description" in shown
    assert "a description, no measure of risk" in shown
    assert result["copied-records"].value == 0


def test_what_is_missing_is_said(made):
    reasons = {s.name: s.reason for s in dc.assess(ORIGINAL, made).skipped}
    assert set(reasons) == {
        "membership-inference",
        "membership-advantage",
        "correct-attribution",
    }
    with pytest.raises(UnknownNameError, match="pmse"):
        dc.assess(ORIGINAL, made, ["pmsee"])
    with pytest.raises(UnknownNameError):
        dc.assess(ORIGINAL, made, sensitive="ill")


def test_frames_of_all_kinds_say_the_same(made):
    arrow = pl.from_pandas(ORIGINAL).to_arrow()
    expected = dc.assess(ORIGINAL, made, ["pmse", "margin-utility"]).frame
    for frame in (pl.from_pandas(ORIGINAL), arrow, pl.from_pandas(ORIGINAL).lazy()):
        assert dc.assess(frame, made, ["pmse", "margin-utility"]).frame == expected


def test_microdata_are_compared_without_their_keys(tmp_path, made):
    path = tmp_path / "people.parquet"
    ORIGINAL.assign(pid=range(len(ORIGINAL))).to_parquet(path)
    data = dc.open(path, id="pid", secret=dc.Secret.demo())
    shown = pd.DataFrame(made.frame).assign(pid=range(len(ORIGINAL)))
    assert "pid" not in dc.assess(data, shown, ["pmse"])["pmse"].on


def test_the_order_of_records_does_not_matter(made):
    other = pd.DataFrame(made.frame).sample(frac=1, random_state=1)
    options = {"control": CONTROL, "target": "ill"}
    a, b = (dc.assess(ORIGINAL, m, **options) for m in (made, other))
    assert {s.name for s in b.skipped} == {"large-units", "cluster-insiders"}  # row by row
    for score in b:
        assert score.value == pytest.approx(a[score.name].value, abs=1e-9)


def test_missing_values_are_values_of_their_own():
    frame = ORIGINAL.copy()
    frame.loc[:20, "income"] = np.nan
    frame.loc[10:30, "region"] = None
    result = dc.assess(frame, frame, control=CONTROL, target="ill")
    assert result["pmse"].value < 1e-12
    assert result["copied-records"].value == 1
    assert result["margin-utility"].value == 1
    lost = dc.assess(frame, ORIGINAL, ["pmse-ratio:order=1"])["pmse-ratio"]
    assert lost.value > 3


def test_codes_and_combinations_are_those_of_pandas():
    sets = record_sets([ORIGINAL, CONTROL], ["region", "ill"])
    both = pd.concat([ORIGINAL, CONTROL])
    found = row_classes(list(sets.codes.values()))
    groups = both.groupby(["region", "ill"]).ngroup().to_numpy()
    assert len(set(zip(found, groups, strict=True))) == len(set(groups)) == len(set(found))
    assert [sets.labels["ill"][c] for c in sets.codes["ill"]] == both["ill"].tolist()


def test_numbers_can_be_codes_and_records_must_be_there():
    frame = pd.DataFrame({"size": [1, 2, 3, 1], "x": [0.1, 0.2, 0.3, 0.4]})
    sets = record_sets([frame, frame], None, ["size"])
    assert list(sets.codes) == ["size"]
    with pytest.raises(DataError, match="no records"):
        record_sets([frame, frame[:0]], None)
    with pytest.raises(UnknownNameError):
        record_sets([frame, frame], ["sice"])


def test_numbers_that_a_file_holds_as_text_are_numbers_beside_numbers():
    texts = pd.DataFrame({"x": ["0.1", "0.2"], "y": ["a", "1"]})
    sets = record_sets([texts, pd.DataFrame({"x": [0.1, 0.3], "y": [1, 2]})], None)
    assert sets.numbers["x"].tolist() == [0.1, 0.2, 0.1, 0.3]
    assert list(sets.codes) == ["y"]
