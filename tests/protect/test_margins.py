import numpy as np
import pytest

import discreet as dc
from discreet.errors import DesignError, ParameterError
from discreet.noise import discrete_laplace
from discreet.testing import check_method
from tests.protect.tables import SECRET, keyed_party, party, secret_party

PTABLE = dc.perturbation_table(D=5, V=3, js=2)
METHODS = [dc.CellKey, dc.Pram, dc.DropAdd, dc.DiscreteLaplace, dc.DiscreteGaussian]


def made(kind, **options):
    first = {
        dc.CellKey: {"matrix": PTABLE},
        dc.DiscreteLaplace: {"epsilon": 3.0},
        dc.DiscreteGaussian: {"rho": 3.0},
    }
    return kind(**first.get(kind, {}), **options)


@pytest.mark.parametrize("kind", METHODS)
def test_summed_margins_add_up_and_own_ones_do_not(kind):
    table = secret_party("party*age*sex", declared=True)
    summed = table.protect(made(kind, margins="summed"))
    np.testing.assert_array_equal(summed.design.aggregate(summed.y), summed.z)
    assert summed.statement.says("adds-up")
    assert summed.statement.says("summed-margins")
    own = table.protect(made(kind))
    assert own.y is None
    assert own.statement.says("need-not-add-up")
    inner = own.design.aggregate(own.z[table.design.slice_of(0)])
    assert not np.array_equal(inner, own.z)


def test_summed_margins_are_sums_of_cells_with_their_own_keys():
    table = keyed_party("party*age*sex")
    block = table.design.slice_of(0)
    own, summed = (table.protect(dc.CellKey(PTABLE, margins=m)) for m in ("own", "summed"))
    np.testing.assert_array_equal(own.z[block], summed.z[block])
    np.testing.assert_array_equal(summed.y, own.z[block])


def test_inner_cells_that_were_not_asked_for_are_not_released():
    table = keyed_party("party*age + party*sex")
    assert not table.design.shows_inner_cells
    release = table.protect(dc.CellKey(PTABLE, margins="summed"))
    assert release.y is None
    assert keyed_party("party*age*sex").design.shows_inner_cells


def test_the_total_agrees_between_tables_when_it_has_its_own_key_only():
    def totals(margins):
        for seed in range(8):
            table = keyed_party("party*age*sex", seed=seed)
            yield {total(table, variable, margins) for variable in ("party", "age", "sex")}

    def total(table, variable, margins):
        """The total of a table over one variable, from that variable's cells and their keys."""
        axis = next(a for a in table.design.axes if a.name == variable)
        where = [table.design.position({variable: code}) for code in axis.leaves]
        cells = {"v": axis.leaves, "n": table.z[where], "k": table.cell_keys[where]}
        narrow = dc.Table.from_counts(cells, count="n", margins="v", key="k")
        release = narrow.protect(dc.CellKey(PTABLE, margins=margins))
        return int(release.z[narrow.design.position({})])

    assert all(len(found) == 1 for found in totals("own"))
    assert any(len(found) > 1 for found in totals("summed"))


ADJUSTED = [
    dc.CellKey(PTABLE, margins="adjusted"),
    dc.DropAdd(margins="adjusted"),
    dc.Pram(margins="adjusted"),
]


@pytest.mark.parametrize("method", ADJUSTED, ids=lambda m: m.name)
def test_adjusted_margins_keep_every_promise(method):
    check_method(method, draws=300)


@pytest.mark.parametrize("seed", range(10))
def test_inner_cells_are_adjusted_to_margins_that_move_only_where_they_contradict(seed):
    table = keyed_square(seed)
    own, adjusted = (table.protect(dc.CellKey(PTABLE, margins=m)) for m in ("own", "adjusted"))
    np.testing.assert_array_equal(adjusted.design.aggregate(adjusted.y), adjusted.z)
    block = table.design.block_of_cell()
    moved = np.bincount(block, np.abs(adjusted.z - own.z))
    orders = [b.order for b in table.design.blocks]
    total = orders.index(0)
    for k in (k for k, order in enumerate(orders) if order == 1):
        contradiction = own.z[block == k].sum() - own.z[block == total][0]
        assert moved[k] <= abs(contradiction) + 1e-9
    assert moved[total] == 0
    assert moved[orders.index(2)] > 0


def keyed_square(seed):
    rng = np.random.default_rng(seed)
    design = dc.Design.product({"a": 6, "b": 7}, "a*b")
    counts = rng.poisson(rng.gamma(1.5, 12.0, design.n_inner))
    return dc.Table.from_inner(design, counts).rekeyed(rng).with_secret(SECRET)


def test_adjusted_margins_say_so_and_are_nearer_to_consistent_than_summed_ones():
    table = secret_party("party*age*sex")
    release = table.protect(dc.CellKey(PTABLE, margins="adjusted"))
    names = [step.name for step in release.statement.steps]
    assert names == ["data", "protect:cell-key", "protect:adjust"]
    assert not release.statement.says("need-not-add-up")
    assert "so that the table adds up" in release.statement.text


def test_adjusted_margins_are_for_counts_and_show_every_cell():
    with pytest.raises(ParameterError, match="whole counts"):
        dc.CellKey(PTABLE, margins="adjusted", grid=30)
    for method in (dc.DiscreteLaplace, dc.DiscreteGaussian, dc.Laplace):
        with pytest.raises(ParameterError, match="margins"):
            method(1.0, margins="adjusted")
    with pytest.raises(ParameterError, match="threshold needs"):
        dc.CellKey(PTABLE, margins="adjusted", threshold=10)


def test_summed_margins_need_inner_cells():
    table = keyed_party()
    margins_only = dc.Table(table.design, table.published)
    with pytest.raises(DesignError, match="published cells only"):
        margins_only.protect(dc.CellKey(PTABLE, margins="summed"))
    assert len(margins_only.protect(dc.CellKey(PTABLE)).z) == 24


def test_a_crossing_too_large_for_noise_on_empty_cells_is_named():
    frame = {f"v{i}": [str(j) for j in range(60)] for i in range(6)} | {"n": [1] * 60}
    margins = [("v0", "v1"), ("v2", "v3"), ("v4", "v5")]
    table = dc.Table.from_counts(
        frame, count="n", margins=margins, support="occurring", declared=True
    )
    table = table.rekeyed(np.random.default_rng(1))
    assert table.protect(dc.CellKey(PTABLE, margins="summed")).design.n_published == 3 * 3600
    with pytest.raises(DesignError, match="Tabulate fewer variables"):
        table.simulate(dc.DiscreteLaplace(1.0, margins="summed"), seed=1)


def test_with_summed_margins_one_record_counts_once():
    release = party("party*age*sex", declared=True).protect(
        dc.DiscreteLaplace(2.0, margins="summed")
    )
    assert release.statement.privacy.sensitivity == 1
    matrix = discrete_laplace(2.0, 7)
    assert dc.CellKey(matrix, margins="summed").claims.additive
