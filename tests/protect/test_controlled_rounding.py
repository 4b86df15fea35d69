"""Controlled rounding of whole tables: additive, multiples, zeros, next to the truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.errors import DesignError, KeysError, ParameterError
from discreet.protect import SeededDraws, mean_p
from discreet.testing import check_method, retabulate, sample_table
from tests.protect.tables import party
from tests.strategies import designs

RNG = np.random.default_rng(4)
COUNTS = RNG.poisson(RNG.gamma(0.7, 8.0, (12, 9)))


def two_way(counts=COUNTS):
    design = dc.Design.product({"a": counts.shape[0], "b": counts.shape[1]}, "a*b")
    return dc.Table.from_inner(design, counts.ravel())


# Groups of regions within a two-way table: the third variable of the sample would only cost time.
HIERARCHICAL = retabulate(sample_table(), [("age", "region"), ("age",), ("region",), ()])


@pytest.mark.parametrize(
    ("table", "base"), [(HIERARCHICAL, 3), (two_way(), 5), (party("party*age*sex"), 3)]
)
def test_the_battery_finds_nothing_to_complain_of(table, base):
    check_method(dc.ControlledRounding(base), table, draws=500)


@pytest.mark.parametrize("base", [2, 3, 5, 10])
@pytest.mark.parametrize("seed", range(5))
def test_every_cell_of_a_two_way_table_is_a_multiple_next_to_the_truth(base, seed):
    table = two_way()
    release = table.simulate(dc.ControlledRounding(base), seed=seed)
    assert not (release.z % base).any()
    assert np.abs(release.z - table.z).max() < base
    kept = table.z % base == 0
    np.testing.assert_array_equal(release.z[kept], table.z[kept])
    assert f"moved by less than {base}" in release.statement.text


def test_two_way_tables_are_unbiased():
    table = two_way(COUNTS[:4, :4])
    drawn = np.array([table.simulate(dc.ControlledRounding(3), seed=s).z for s in range(1000)])
    p = [mean_p(drawn[:, k], table.z[k]) for k in range(len(table.z))]
    assert min(p) * len(p) > 1e-4


@settings(max_examples=40, deadline=None)
@given(designs(), st.integers(0, 2**20), st.sampled_from([2, 3, 5]))
def test_inner_cells_are_next_to_the_truth_and_sums_add_up(design, seed, base):
    y = np.random.default_rng(seed).poisson(3.0, design.n_inner)
    table = dc.Table.from_inner(design, y)
    release = table.simulate(dc.ControlledRounding(base), seed=seed)
    assert not (release.z % base).any()
    if release.y is not None:
        np.testing.assert_array_equal(release.design.aggregate(release.y), release.z)
        assert release.y.sum() % base == 0


def test_hidden_inner_cells_stay_hidden():
    release = party().simulate(dc.ControlledRounding(3), seed=1)
    assert release.y is None
    assert party("party*age*sex").simulate(dc.ControlledRounding(3), seed=1).y is not None


def test_exceptions_are_known_inside_and_not_stated():
    """Three cells of one whose sums in pairs are two: rounded to 0 or 2 they cannot all stay."""
    design = dc.Design.from_matrix(np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]]))
    method, texts = dc.ControlledRounding(2), []
    for counts in ([1, 1, 1], [2, 2, 2]):
        table = dc.Table.from_inner(design, np.array(counts))
        left = int((method(table, draws=SeededDraws(1)).z != table.z).sum())
        assert (left > 0) == (counts[0] == 1)
        texts.append(table.simulate(method, seed=1).statement.to_json())
    assert texts[0] == texts[1]


def test_counts_of_a_population_move_by_less_than_the_base():
    table = two_way(np.array([[2**40, 5], [7, 330_000_002]]))
    made = table.simulate(dc.ControlledRounding(5), seed=1)
    assert (made.z % 5 == 0).all()
    assert np.abs(made.z - table.z).max() < 5


@pytest.mark.parametrize("base", [1, 0, -3, 2.5, True])
def test_bases_below_two_are_refused(base):
    with pytest.raises(ParameterError, match="base"):
        dc.ControlledRounding(base)


def test_missing_inner_cells_and_a_missing_secret_are_named():
    table = two_way()
    with pytest.raises(DesignError, match="published cells only"):
        dc.Table(table.design, table.published).simulate(dc.ControlledRounding(3), seed=1)
    with pytest.raises(KeysError, match="publication draws from a secret"):
        table.protect(dc.ControlledRounding(3))
