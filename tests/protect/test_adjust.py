"""Controlled tabular adjustment around a perturbing method."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet import registry
from discreet.errors import DesignError, InfeasibleError, KeysError, ParameterError
from discreet.noise import discrete_laplace, linear_table
from discreet.protect import SeededDraws
from discreet.protect.adjust import CellsInUse, adjustment
from discreet.protect.sentences import is_additive
from discreet.solve.integer.repair import Repair
from discreet.tables import CellValues
from discreet.testing import check_method, sample_table
from tests.protect.tables import SECRET, keyed_party, secret_party
from tests.solve.integer.exact import adjust_exactly
from tests.strategies import designs

PTABLE = dc.perturbation_table(D=5, V=3, js=2)
NOISE = dc.CellKey(PTABLE)


def census(seed=1, shape=(12, 8, 6)):
    rng = np.random.default_rng(seed)
    design = dc.Design.product(dict(zip("abc", shape, strict=True)), "a*b*c")
    return dc.Table.from_inner(
        design, rng.poisson(rng.gamma(0.5, 8.0, design.n_inner))
    ).rekeyed(rng).with_secret(SECRET)  # fmt: skip


@pytest.mark.parametrize(
    ("method", "table"),
    [
        (NOISE, sample_table()),
        (dc.DropAdd(), keyed_party()),
        (dc.Pram(), keyed_party("party*age")),
        (NOISE, keyed_party()),
    ],
    ids=["three", "linked", "two", "linked noise"],
)
def test_the_battery_finds_nothing_to_complain_of(method, table):
    check_method(dc.Adjust(method), table, draws=100)


def test_a_three_way_table_adds_up_without_small_cells_and_hardly_moves():
    table, noise = census(), dc.CellKey(linear_table(3, 2.0, 2))
    perturbed, release = table.protect(noise), table.protect(dc.Adjust(noise))
    np.testing.assert_array_equal(release.design.aggregate(release.y), release.z)
    assert not np.isin(release.z, [1, 2]).any()
    assert not release.z[table.z == 0].any()
    some = table.z > 0
    before, after = (np.abs(r.z - table.z)[some] for r in (perturbed, release))
    assert after.max() == before.max() == 3
    assert after.mean() - before.mean() < 0.15
    assert release.statement.says("adjusted")
    assert not release.statement.says("mean-zero")
    assert release.statement.says("moves-at-most")


@pytest.mark.parametrize("seed", range(4))
def test_the_largest_move_is_kept_where_the_search_alone_breaks_it(seed, monkeypatch):
    """Counts of about one, none of which may be published, in four linked dimensions."""
    rng = np.random.default_rng(seed)
    design = dc.Design.product({"a": 5, "b": 4, "c": 3, "d": 3}, "a*b*c*d")
    table = dc.Table.from_inner(design, rng.poisson(rng.gamma(1.0, 1.0, design.n_inner)))
    method = dc.Adjust(dc.CellKey(linear_table(3, 2.0, 2)), max_move=2, proposals=1e5)
    made = method(table.rekeyed(rng), draws=SeededDraws(seed))
    assert np.abs(made.z - table.z).max() == 2
    assert not np.isin(made.z, [1, 2]).any()
    assert made.statement.says("moves-at-most")
    monkeypatch.setattr(Repair, "improve", lambda state, places: None)
    with pytest.raises(InfeasibleError, match="no table was found") as caught:
        method(table.rekeyed(rng), draws=SeededDraws(seed))
    assert "max_move" not in caught.value.public()


@pytest.mark.parametrize("people", [1e3, 1e5, 1e6, 3e9])
def test_linked_margins_are_as_near_as_a_program_finds_them(people):
    """Inner cells are not published: a fit cut off at zero led the search astray."""
    rng = np.random.default_rng(1)
    design = dc.Design.product({"a": 12, "b": 5, "c": 2}, "a*b + a*c + b*c")
    share = rng.dirichlet(np.full(design.n_inner, 0.3))
    table = dc.Table.from_inner(design, rng.poisson(people * share)).rekeyed(rng)
    found = dc.Adjust(NOISE).search(table, draws=SeededDraws(1))
    noisy, frame = NOISE(table, draws=SeededDraws(1)).z, CellsInUse.of(table)
    least, most = (np.asarray(z)[frame.cells] for z in (noisy, table.z))
    problem, *_ = adjustment(frame, least, most, min_count=3, max_move=5.0, weights=None)
    loss, bound = adjust_exactly(problem, table.y[frame.rows])
    assert found.violations == 0
    assert bound <= found.loss + 1e-6
    assert found.loss <= 1.03 * loss + 1e-6


@pytest.mark.parametrize("margins", ["a*b*c", "a*b + a*c + b*c"])
def test_counts_beyond_32_bits_are_adjusted(margins):
    design = dc.Design.product({"a": 3, "b": 2, "c": 2}, margins)
    y = np.append(np.arange(11), 2**33)
    table = dc.Table.from_inner(design, y).rekeyed(np.random.default_rng(2))
    found = dc.Adjust(NOISE).search(table, draws=SeededDraws(1))
    made = dc.Adjust(NOISE)(table, draws=SeededDraws(1)).z
    assert np.abs(made - table.z).max() <= 5
    assert not np.isin(made, [1, 2]).any()
    np.testing.assert_array_equal(CellsInUse.of(table).design.aggregate(found.y), found.z)
    assert 0 < found.lower_bound <= found.loss


def test_the_bound_is_below_and_the_search_is_the_one_behind_the_release():
    table = census(shape=(6, 5, 4))
    found = dc.Adjust(NOISE).search(table, draws=SeededDraws(1))
    perturbed, made = (m(table, draws=SeededDraws(1)) for m in (NOISE, dc.Adjust(NOISE)))
    assert np.abs(made.z - perturbed.z).sum() == found.loss
    assert 0 < found.lower_bound <= found.loss


def test_more_weight_on_a_margin_keeps_it():
    table = census()
    perturbed = table.protect(NOISE)
    block = [b.order for b in table.design.blocks].index(0)
    total = table.design.slice_of(block)
    heavy = table.protect(dc.Adjust(NOISE, weights={0: 64.0}))
    assert heavy.z[total] == perturbed.z[total]
    assert list(heavy.statement.steps[-1].parameters) == ["min_count", "max_move", "weights"]


def test_what_the_records_do_not_show_makes_no_difference():
    """On occurring support, with the full crossing and from a matrix the result is the same."""
    full = census(shape=(5, 4, 3))
    frame = full.inner_to_arrow()
    sparse = dc.Table.from_counts(
        frame, count="count", margins="a*b*c", key="cell_key", support="occurring"
    ).with_secret(SECRET)
    here, there = (t.protect(dc.Adjust(NOISE)) for t in (full, sparse))
    for k in np.flatnonzero(there.z):
        assert here.z[here.design.position(there.design.cell(k))] == there.z[k]


def test_a_table_of_margins_alone_needs_no_inner_cells():
    table = secret_party("party*age + party*sex")
    bare = dc.Table(table.design, table.published, secret=SECRET)
    release = bare.protect(dc.Adjust(NOISE))
    assert is_additive([release])
    assert not release.z[table.z == 0].any()
    assert not np.isin(release.z, [1, 2]).any()
    assert release.y is None


def test_a_design_from_a_matrix_is_adjusted_too():
    X = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]])
    values = CellValues(np.array([4, 9, 6]), key=np.array([7, 8, 9]))
    table = dc.Table.from_inner(dc.Design.from_matrix(X), values).with_secret(SECRET)
    release = table.protect(dc.Adjust(dc.DropAdd(share=0.5)))
    assert release.z[0] == release.z[1:].sum()
    weighted = dc.Adjust(dc.DropAdd(), weights={1: 4.0})
    with pytest.raises(ParameterError, match="Keys are 0 to 0 here"):
        table.protect(weighted)
    with pytest.raises(ParameterError, match="made from a matrix"):
        table.simulate(weighted, seed=1)


@settings(max_examples=25, deadline=None)
@given(designs(), st.integers(0, 2**20))
def test_random_designs_add_up_keep_zeros_and_have_no_small_cells(design, seed):
    rng = np.random.default_rng(seed)
    table = dc.Table.from_inner(design, rng.poisson(2.0, design.n_inner)).rekeyed(rng)
    release = table.with_secret(SECRET).protect(dc.Adjust(NOISE))
    assert not np.isin(release.z, [1, 2]).any()
    frame = CellsInUse.of(table)
    values = release.z[design.public().published]
    assert not np.delete(values, frame.cells).any()
    if release.y is not None:
        np.testing.assert_array_equal(release.design.aggregate(release.y), release.z)


def test_an_empty_table_stays_empty():
    design = dc.Design.product({"a": 2, "b": 2}, "a*b")
    table = dc.Table.from_inner(design, np.zeros(4, dtype=int)).rekeyed(np.random.default_rng(1))
    assert not table.with_secret(SECRET).protect(dc.Adjust(NOISE)).z.any()


def test_it_is_built_from_plain_values():
    built = registry.build(
        "method", "adjust",
        {"method": {"name": "cell-key", "D": 5, "V": 3, "js": 2}, "weights": {"0": 9}},
    )  # fmt: skip
    assert (built.source, built.method.source) == ("table", "keys")
    with pytest.raises(ParameterError, match="nested data"):
        registry.build("method", "adjust", {"parameters": {"D": 5}})
    assert built.weights == {0: 9.0}
    assert built.claims.blocked == (1, 2)
    assert dc.Adjust(dc.DropAdd()).claims.blocked == ()
    assert dc.Adjust(dc.DropAdd(), min_count=3).claims.blocked == (1, 2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": dc.DiscreteLaplace(1.0)}, "differentially private"),
        ({"method": "cell-key"}, "wraps a perturbing method"),
        ({"method": dc.CellKey(PTABLE, grid=30)}, "cannot publish counts"),
        ({"min_count": 0}, "min_count"),
        ({"max_move": -1.0}, "max_move"),
        ({"weights": {1: 0.0}}, "weights must be positive"),
        ({"weights": {"x": 2.0}}, "keys of weights are numbers of variables"),
        ({"proposals": float("nan")}, "proposals: a finite number"),
        ({"proposals": 0}, "proposals"),
        ({"seconds": 0.0}, "seconds"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        dc.Adjust(**{"method": NOISE, **options})


def test_tables_that_cannot_be_adjusted_say_why():
    table = sample_table(weights=True)
    with pytest.raises(DesignError, match="hidden"):
        table.protect(dc.Adjust(dc.CellKey(PTABLE, threshold=10)), unit="count")
    with pytest.raises(ParameterError, match="unit='weight'"):
        table.protect(dc.Adjust(NOISE), unit="weight")
    with pytest.raises(KeysError, match="no cell keys"):
        dc.Table.from_inner(table.design, table.y).protect(dc.Adjust(NOISE))
    with pytest.raises(KeysError, match="publication draws from a secret"):
        table.protect(dc.Adjust(NOISE), unit="count")


def test_a_largest_move_that_a_cell_cannot_keep_names_the_cell():
    table = secret_party("party*age")
    with pytest.raises(InfeasibleError, match="age=young.*moves by 5") as caught:
        table.protect(dc.Adjust(NOISE, min_count=11, max_move=4))
    assert "young" not in caught.value.public()


def test_a_smaller_largest_move_is_kept():
    table = census(shape=(6, 5, 4))
    release = table.protect(dc.Adjust(NOISE, max_move=3))
    assert np.abs(release.z - table.z).max() <= 3
    assert np.abs(table.protect(NOISE).z - table.z).max() > 3


def test_noise_on_empty_cells_is_taken_back():
    table = sample_table().with_secret(SECRET)
    noise = dc.CellKey(discrete_laplace(2.0, 7))
    release = table.protect(dc.Adjust(noise))
    assert not release.z[table.z == 0].any()
