"""Values of cells: counts stay whole, and those too large for 64 bits are refused."""

import numpy as np
import pytest

import discreet as dc
from discreet.errors import DataError
from discreet.tables import CellValues
from discreet.tables.truth import sum_counts, whole_counts


def test_a_total_that_64_bits_do_not_hold_is_refused():
    """Four cells of 2**62 and one of 5 wrap around to a total of 5."""
    design = dc.Design.product({"a": 5}, "a")
    with pytest.raises(DataError, match=r"2\*\*63 or more"):
        dc.Table.from_inner(design, np.array([2**62] * 4 + [5]))


def test_rows_of_one_cell_that_add_up_beyond_64_bits_are_refused():
    frame = {"a": ["x"] * 4 + ["y"], "n": [2**62] * 4 + [5]}
    with pytest.raises(DataError, match=r"2\*\*63 or more"):
        dc.Table.from_counts(frame, count="n", margins="a")


@pytest.mark.parametrize("bad", [np.array([2**63], dtype=np.uint64), np.array([1e19])])
def test_single_counts_that_64_bits_do_not_hold_are_refused(bad):
    with pytest.raises(DataError, match="larger units"):
        whole_counts(bad)


def test_large_counts_that_fit_are_summed_exactly():
    design = dc.Design.product({"a": 3}, "a")
    table = dc.Table.from_inner(design, np.array([2**61, 2**61 + 1, 3]))
    assert table.z.max() == 2**62 + 4


def test_large_counts_in_cells_apart_are_kept():
    counts = CellValues(np.array([2**62, 2**62, 2**62])).count
    np.testing.assert_array_equal(sum_counts(counts, lambda values: values), counts)
