"""Variables may have any name; columns of values make room for them."""

import io

import numpy as np
import pyarrow.csv
import pytest

import discreet as dc
from discreet import Release
from discreet.frames import value_names
from discreet.release.formats.csv import csv_bytes
from discreet.tables import Statement

NAMES = ("count", "value", "status", "cell", "quality", "weight", "precision", "cell_key", "Count")


def table(name):
    frame = {
        name: ["a", "a", "b"],
        "other": ["x", "y", "x"],
        "n": [5, 7, 11],
        "w": [1.5, 2.5, 3.5],
        "k": [17, 2**31, 2**32 - 1],
    }
    return dc.Table.from_counts(frame, "n", f"{name}*other", key="k", weight="w")


def release(name):
    design, n = table(name).design, 9
    return Release(
        design,
        np.arange(n),
        Statement(),
        y=np.arange(4),
        status=np.zeros(n, dtype=np.int8),
        precision=np.linspace(1, 2, n),
        quality=np.arange(n) - 1,
    )


def codes(design, name):
    index, shown = design.published_codes()[[a.name for a in design.axes].index(name)]
    return [shown[i] for i in index]


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_table_keeps_a_variable_of_any_name(name, tmp_path):
    made = table(name)
    read = dc.facade.read_table(made.save(tmp_path / "t.parquet"))
    assert codes(read.design, name) == codes(made.design, name)
    for part in ("count", "weight", "weight_squared", "key"):
        for side in ("published", "inner"):
            left, right = getattr(getattr(made, side), part), getattr(getattr(read, side), part)
            np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_a_stored_release_keeps_a_variable_of_any_name(name, ending, tmp_path):
    made = release(name)
    read = dc.facade.read_release(made.save(tmp_path / f"r{ending}"))
    assert codes(read.design, name) == codes(made.design, name)
    for part in ("z", "status", "precision", "quality"):
        np.testing.assert_array_equal(getattr(made, part), getattr(read, part))
    if ending == ".parquet":
        np.testing.assert_array_equal(made.y, read.y)


@pytest.mark.parametrize("name", NAMES)
def test_exported_frames_keep_a_variable_of_any_name(name):
    made = release(name)
    exported = pyarrow.csv.read_csv(io.BytesIO(csv_bytes(made.to_frame())))
    frames = [made.to_arrow(), made.inner_to_arrow(), table(name).to_arrow(), exported]
    for frame in frames:
        assert frame.column(name).to_pylist()[0] in ("a", "Total")
        assert len(set(map(str.casefold, frame.column_names))) == frame.num_columns
    assert made.to_pandas()[name].tolist() == codes(made.design, name)
    assert made.to_polars()[name].to_list() == codes(made.design, name)


def test_values_step_aside_for_variables():
    assert value_names(["count", "COUNT_"], ["count", "status"]) == {
        "count": "count__",
        "status": "status",
    }


def test_a_table_of_published_cells_with_a_variable_named_count_can_be_read():
    made = table("count")
    again = dc.Table.from_frame(made.to_arrow(), "count*other", count="count_")
    np.testing.assert_array_equal(again.z, made.z)
