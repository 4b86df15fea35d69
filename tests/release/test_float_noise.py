"""Sums of decimals are written as they were meant."""

import json

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.release.cube import drop_float_noise


def test_sums_have_the_decimals_that_were_meant():
    rng = np.random.default_rng(3)
    assert drop_float_noise(np.array([0.1 + 0.2, 7.0, 0.0])).tolist() == [0.3, 7.0, 0.0]
    cents = rng.integers(1, 10**7, (300, 200))
    sums = (cents / 100).sum(0)
    assert (sums != cents.sum(0) / 100).any(), "the sums have noise"
    assert drop_float_noise(sums).tolist() == (cents.sum(0) / 100).tolist()


@pytest.mark.parametrize("values", [
    np.array([1 / 3, 2.0]), np.array([1e14 + 0.25, 3.0]), np.array([np.nan, 0.1 + 0.2]),
    np.array([3, 4]),
])  # fmt: skip
def test_what_is_no_decimal_stays_as_it_is(values):
    assert np.array_equal(drop_float_noise(values), values, equal_nan=values.dtype.kind == "f")


def test_no_file_shows_noise(tmp_path):
    frame = pd.DataFrame({"firm": range(60), "area": ["a", "b"] * 30, "size": ["s", "t", "u"] * 20})
    frame["turnover"] = [0.1 + (k % 7) / 10 for k in range(60)]
    data = dc.open(frame, id="firm")
    table = data.tabulate("area*size", value="turnover")
    release = table.protect("suppress", rules="p%(10)")
    assert any(len(repr(float(v))) > 8 for v in release.z), "the release itself has noise"
    release.save(tmp_path / "r.csv")
    release.write(tmp_path / "t.csv")
    release.write(tmp_path / "t.jsonstat.json")
    shown = [*pd.read_csv(tmp_path / "r.csv", dtype=str)["turnover"].dropna()]
    shown += [*pd.read_csv(tmp_path / "t.csv", dtype=str)["turnover"].dropna()]
    shown += [str(v) for v in json.loads((tmp_path / "t.jsonstat.json").read_text())["value"] if v]
    assert len(shown) > 20
    assert max(len(text.partition(".")[2]) for text in shown) <= 1
    again = dc.facade.read_release(tmp_path / "r.csv")
    np.testing.assert_allclose(again.z, release.z)


def test_parts_below_zero_leave_the_noise_of_what_they_cancelled():
    sums = np.array([12345.67 + 0.001 - 12345.67, 12345.678])
    assert sums[0] != 0.001
    assert drop_float_noise(sums).tolist() == sums.tolist()
    assert drop_float_noise(sums, as_largest=True).tolist() == [0.001, 12345.678]
