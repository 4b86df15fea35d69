import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet.records.tabulate import margins_table
from discreet.tables import CONVENTIONS, CellValues
from discreet.tables.assembly import CodedCells
from tests.strategies import designs


@given(designs(kinds=("product",)), st.integers(0, 2**32 - 1))
def test_all_blocks_follow_from_the_root_blocks(design, seed):
    y = np.random.default_rng(seed).integers(0, 9, design.n_inner)
    z = design.aggregate(y)
    broken = np.full_like(z, -1)
    for k in design.root_blocks:
        broken[design.slice_of(k)] = z[design.slice_of(k)]
    np.testing.assert_array_equal(design.complete(broken), z)


@given(designs(kinds=("product",)))
def test_places_are_where_inner_cells_count(design):
    leaves = {a.name: p for a, p in zip(design.axes, design.inner_codes(), strict=True)}
    for k, (where, _) in enumerate(design.member_blocks()):
        np.testing.assert_array_equal(design.places(k, leaves, design.n_inner), where)


@given(designs(kinds=("product",)), st.integers(0, 2**32 - 1))
def test_a_table_of_margins_is_the_aggregate(design, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, design.n_inner)
    keys = rng.integers(0, 2**32, design.n_inner) * (y > 0)
    coded = CodedCells(
        design.axes, tuple(design.inner_codes()), CellValues(y, y * 1.5, y * 2.25, keys)
    )
    table = margins_table([coded], design.terms, CONVENTIONS["discreet"])
    np.testing.assert_array_equal(table.z, design.aggregate(y))
    np.testing.assert_array_equal(table.cell_keys, design.aggregate(keys) % 2**32)
    np.testing.assert_allclose(table.weights, design.aggregate(y * 1.5))


def test_a_census_of_two_way_margins_of_wide_variables():
    """Crossing of 10¹² cells: counted by margins, never held."""
    rng = np.random.default_rng(1)
    frame = pa.table({f"v{i}": rng.integers(0, 1000, 5000) for i in range(4)})
    table = dc.open(frame).tabulate([("v0", "v1"), ("v2", "v3"), ()])
    assert table.inner is None
    assert table.design.n_inner > 10**11
    assert table.z[-1] == 5000
    assert table.z[:-1].sum() == 10_000
