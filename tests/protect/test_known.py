"""Known margins whose own small counts are rounded before they are held."""

import numpy as np
import pytest

import discreet as dc
from discreet.errors import KeysError, ParameterError
from discreet.protect import SeededDraws
from discreet.protect.cells import NoiseCells
from discreet.protect.private_noise import change_of_known
from discreet.tables import CellValues
from discreet.testing import check_method, sample_table
from tests.protect.tables import SECRET

PRIVATE = [
    dc.DiscreteLaplace(1.0, known=["a", "b:c", "1"], known_base=4),
    dc.Laplace(1.0, known=["a", "b:c", "1"], known_base=4),
    dc.DiscreteGaussian(0.5, known=["a", "b:c", "1"], known_base=4),
]


def sparse(seed=1, formula="a*b*c", shape=(7, 4, 3), secret=SECRET):
    rng = np.random.default_rng(seed)
    design = dc.Design.product(dict(zip("abc", shape, strict=True)), formula)
    table = dc.Table.from_inner(design, rng.poisson(0.4, design.n_inner))
    return table if secret is None else table.with_secret(secret)


def positions(design, margins):
    orders = [[design.axes[i].name for i, x in enumerate(b.levels) if x] for b in design.blocks]
    found = [design.slice_of(k) for k, names in enumerate(orders) if names in margins]
    return np.concatenate([np.arange(design.n_published)[place] for place in found])


@pytest.mark.parametrize("method", PRIVATE, ids=lambda m: m.name)
def test_no_known_margin_is_small_and_all_of_them_add_up(method):
    table = sparse()
    known = positions(table.design, [["a"], ["b", "c"], []])
    assert np.isin(table.z[known], [1, 2, 3]).any()
    release = table.protect(method)
    assert not np.isin(release.z[known], [1, 2, 3]).any()
    assert not release.z[known][table.z[known] == 0].any()
    assert np.abs(release.z - table.z)[known].max() <= 8
    fitted = release.fit(dc.NonNegative(exact=["a", "b:c", "1"]))
    np.testing.assert_allclose(fitted.z[known], release.z[known], atol=1e-3)
    assert release.statement.says("known-rounded")
    assert release.statement.says("private-known")
    assert not release.statement.says("mean-zero")
    assert release.statement.steps[-1].parameters["known_base"] == 4


def test_the_rounding_follows_from_the_known_margins_and_the_secret_alone():
    """Another table with the same known margins, in another order, has the same ones published."""
    table = sparse()
    y = table.y.reshape(7, 4, 3).copy()
    a, b = np.argwhere(y[:, 0, 0] > 0)[0][0], np.argwhere(y[:, 1, 0] > 0)[-1][0]
    if a == b:
        b = (a + 1) % 7
    y[[a, b], 0, 0] += [-1, 1]
    y[[a, b], 1, 0] += [1, -1]
    assert y.min() >= 0
    other = dc.Table.from_inner(table.design, y.ravel()).with_secret(SECRET)
    known = positions(table.design, [["a"], ["b", "c"], []])
    np.testing.assert_array_equal(other.z[known], table.z[known])
    first, second = (t.protect(PRIVATE[0]).z[known] for t in (table, other))
    np.testing.assert_array_equal(first, second)
    design = dc.Design.product({"c": 3, "b": 4, "a": 7}, "c*b*a")
    turned = dc.Table.from_inner(design, table.y.reshape(7, 4, 3).transpose().ravel())
    third = turned.with_secret(SECRET).protect(PRIVATE[0])
    there = [design.position(table.design.cell(k)) for k in known.tolist()]
    np.testing.assert_array_equal(third.z[there], first)


def test_other_secrets_round_otherwise():
    table = sparse(shape=(15, 4, 3))
    known = positions(table.design, [["a"], ["b", "c"], []])
    made = {tuple(table.simulate(PRIVATE[0], seed=s).z[known]) for s in range(8)}
    assert len(made) > 1


def test_margins_without_small_counts_stay_as_they_are():
    """The row totals 11, 12 and 40 of Table 7 of Langsrud (2019b), and the total."""
    design = dc.Design.product({"row": 3, "column": 3}, [("row",), ("column",), ()])
    table = dc.Table.from_inner(design, np.array([3, 6, 2, 1, 4, 7, 5, 8, 27]))
    change = change_of_known(NoiseCells(table), ["row", "1"], 5, SeededDraws(1))
    assert not change.any()
    fit = dc.NonNegative(exact=["row", "1"])(
        design, np.array([11, 12, 40, 3.286, 21.633, 35.433, 63.0])
    )
    printed = [0.000, 3.200, 7.800, 0.000, 3.700, 8.300, 4.168, 15.616, 20.216]
    np.testing.assert_allclose(fit.y, printed, atol=2e-3)


def test_a_known_total_alone_and_known_levels_are_rounded():
    table = sample_table().with_secret(SECRET)
    level = table.protect(dc.DiscreteLaplace(1.0, known=["region[1]", "1"], known_base=2000))
    for cell in ({}, {"region": "north"}, {"region": "south"}):
        value = level.z[table.design.position(cell)]
        assert value == 0 or value >= 2000
    total = table.protect(dc.DiscreteLaplace(1.0, known="1", known_base=10_000))
    assert total.z[table.design.position({})] in (0, 10_000)


def test_known_margins_of_a_huge_crossing_are_rounded_over_their_own_variables():
    names = [f"v{i}" for i in range(12)]
    design = dc.Design.product(dict.fromkeys(names, 10), dc.margins(names, 1))
    counts = np.where(design.column_sizes == design.column_sizes.max(), 20, 2)
    table = dc.Table(design, CellValues(counts), secret=SECRET)
    release = table.protect(dc.DiscreteLaplace(1.0, known=["1", "v3"], known_base=3))
    held = np.isinf(release.precision)
    assert held.sum() == 11
    assert set(release.z[held & (counts == 2)].tolist()) == {0, 3}


def test_errors_of_rounded_margins_are_not_known():
    release = sparse().protect(dc.Laplace(1.0, known="a", known_base=3))
    held = np.isinf(release.precision)
    assert (np.isnan(release.standard_errors()) == held).all()
    assert release.fit("least-squares").precision is None


def test_the_battery_finds_nothing_to_complain_of():
    method = dc.DiscreteLaplace(8.0, known=["1"], known_base=3, nonnegative=False)
    check_method(method, draws=1_000)


def test_what_cannot_be_rounded_is_refused():
    with pytest.raises(ParameterError, match="known_base"):
        dc.DiscreteLaplace(1.0, known="a", known_base=1)
    with pytest.raises(ParameterError, match="name them with known="):
        dc.DiscreteLaplace(1.0, known_base=3)
    with pytest.raises(KeysError, match="draws from a secret"):
        sparse(secret=None).protect(dc.DiscreteLaplace(1.0, known="a", known_base=3))
