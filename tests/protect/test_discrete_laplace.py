import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet import registry
from discreet.design.values import CellValues
from discreet.errors import DataError, KeysError, ParameterError, UnknownNameError
from discreet.microdata.secret import Secret
from discreet.noise import discrete_laplace, laplace_law
from discreet.progress import listening
from discreet.protect.opendp_source import laplace_noise, scale_for
from discreet.protect.seeded_noise import law_by_key, seeded_laplace
from discreet.testing import check_method
from discreet.testing.draws import chi_square, chi_square_p, sample_table
from tests.protect.tables import keyed_party, party
from tests.strategies import designs

SECRET = Secret(b"a secret of at least thirty-two bytes for tests")


def with_secret(table):
    return table.with_zero_key(partial(SECRET.zero_key, rule=table.convention))


@pytest.mark.parametrize(
    ("method", "draws"),
    [
        (dc.DiscreteLaplace(8.0), 20_000),
        (dc.DiscreteLaplace(12.0, cap=9, nonnegative=False), 20_000),
        (dc.DiscreteLaplace(1.0, margins="summed"), 3_000),
        (dc.DiscreteLaplace(12.0, keyed=True), 100_000),
        (dc.DiscreteLaplace(12.0, keyed=True, sensitivity=24, nonnegative=False), 100_000),
    ],
    ids=["system", "capped", "summed", "keyed", "keyed and consistent"],
)
def test_the_battery_finds_nothing_to_complain_of(method, draws):
    check_method(method, draws=draws)


@pytest.mark.parametrize(("tilt", "accepted"), [(1.0, True), (0.9, False), (1.1, False)])
@pytest.mark.parametrize("cap", [None, 4])
@pytest.mark.parametrize("source", ["system", "seeded"])
def test_draws_follow_the_law_and_no_other(source, cap, tilt, accepted):
    scale, n = 1.5, 40_000
    drawn = (
        laplace_noise(n, scale, cap)
        if source == "system"
        else seeded_laplace(np.random.default_rng(3), n, scale, cap)
    )
    reach = cap or 60
    law = laplace_law(1.0, reach, scale * tilt)
    p = chi_square_p(*chi_square(drawn, np.arange(-reach, reach + 1), law))
    assert (p > 1e-6) == accepted


@pytest.mark.parametrize(
    ("margins", "known", "sensitivity"),
    [
        ([("party", "age", "sex")], (), 1),
        ("party*age*sex", ("1",), 7),
        ("party*age*sex", (), 8),
        ("party*age + party*sex", (), 6),
        ("party*age + party*sex", ("1",), 5),
        ("party*age + party*sex", ((), ("age",)), 4),
        (dc.margins(["party", "age", "sex"], 2, lower=False), (), 3),
    ],
)
def test_the_sensitivity_is_the_largest_row_sum_of_the_perturbed_cells(margins, known, sensitivity):
    release = party(margins).protect(dc.DiscreteLaplace(1.0, known=known))
    assert release.statement.privacy.sensitivity == sensitivity
    assert release.statement.privacy.epsilon == 1.0
    assert release.statement.privacy.delta == 0
    assert f"by {sensitivity} in all" in release.statement.text


def test_levels_of_a_hierarchy_count_and_cells_that_are_the_same_count_once():
    release = sample_table().protect(dc.DiscreteLaplace(1.0))
    # region, part of the country and total, each crossed with age, sex and their totals
    assert release.statement.privacy.sensitivity == 3 * 2 * 2
    assert "75 cells" in release.statement.text
    alone = dc.Table.from_counts({"a": ["x"] * 2, "b": ["y", "z"], "n": [3, 4]}, "n", "a*b")
    assert alone.design.sensitivity() == 4
    release = alone.protect(dc.DiscreteLaplace(1.0))
    assert release.statement.privacy.sensitivity == 2
    assert "3 cells" in release.statement.text


def test_known_margins_of_a_huge_crossing_need_no_inner_cells():
    names = [f"v{i}" for i in range(12)]
    design = dc.Design.product(dict.fromkeys(names, 10), dc.margins(names, 1))
    table = dc.Table(design, CellValues(np.full(121, 50)))
    release = table.protect(dc.DiscreteLaplace(1.0, known=["1", "v3"]))
    assert release.statement.privacy.sensitivity == 11


@given(designs(kinds=["product"]), st.data())
def test_the_sensitivity_of_whole_margins_is_that_of_their_columns(design, data):
    chosen = data.draw(st.sets(st.sampled_from(range(len(design.blocks))), min_size=1))
    columns = np.flatnonzero(np.isin(design.block_of_cell(), list(chosen)))
    assert design.sensitivity(columns) == design.row_sums(columns).max()
    assert design.sensitivity(columns[:1]) == 1


def test_cells_that_are_the_same_get_the_same_noise():
    table = sample_table()
    moves = table.protect(dc.DiscreteLaplace(1.0, nonnegative=False)).z - table.z
    np.testing.assert_array_equal(moves, moves[table.design.duplicates()])
    assert len(set(moves.tolist())) > 10


def test_margins_that_are_known_are_exact_and_so_are_their_other_names():
    table = sample_table()
    release = table.protect(dc.DiscreteLaplace(0.5, known=["region[1]", "1"], nonnegative=False))
    for cell in ({}, {"region": "north"}, {"region": "south"}, {"region": "s1"}):
        k = table.design.position(cell)
        assert release.z[k] == table.z[k]
    assert (release.z != table.z).mean() > 0.8
    assert "without noise: region[1], 1" in release.statement.text


def test_zeros_outside_the_support_of_the_records_get_noise_too():
    occurring, public, method = party(support="occurring"), party(), dc.DiscreteLaplace(0.3)
    assert occurring.protect(method).design.n_published == 24
    first, second = (
        method.simulate(table, np.random.default_rng(4)) for table in (occurring, public)
    )
    np.testing.assert_array_equal(first, second)


def test_structural_zeros_are_not_among_the_cells():
    table = party(structural_zeros=[{"party": "A", "age": "young"}])
    release = table.protect(dc.DiscreteLaplace(0.3))
    assert release.design.n_published == 23
    X = np.array([[1, 0], [1, 0]])
    matrix = dc.Table.from_inner(dc.Design.from_matrix(X), np.array([4, 5]))
    assert all(matrix.protect(dc.DiscreteLaplace(0.05)).z[1] == 0 for _ in range(20))


def test_the_cap_costs_the_delta_of_the_paper():
    """Shlomo, Krenzke & Li (2019): ε = 2, cap 7, one cell: δ = 0.000000633."""
    table = party([("party", "age", "sex")])
    privacy = table.protect(dc.DiscreteLaplace(2.0, cap=7)).statement.privacy
    assert privacy.delta == pytest.approx(6.332875e-7, rel=1e-6)
    assert "δ = 6.33e-07" in privacy.text
    audit = discrete_laplace(2.0, 7).audit(epsilon=2.0)
    assert privacy.delta == pytest.approx(audit.delta, rel=1e-6)


def test_delta_adds_up_over_the_cells_of_a_record():
    table = party("party*age*sex")
    privacy = table.protect(dc.DiscreteLaplace(8.0, cap=9)).statement.privacy
    assert privacy.delta == pytest.approx(8 * laplace_law(8.0, 9, 8)[0])
    given = table.protect(dc.DiscreteLaplace(8.0, cap=9, sensitivity=8)).statement.privacy
    assert given.delta == pytest.approx(laplace_law(8.0, 9, 8)[:8].sum())
    assert given.delta > privacy.delta
    moves = table.protect(dc.DiscreteLaplace(8.0, cap=2)).z - table.z
    assert np.abs(moves).max() <= 2


def test_a_cap_that_leaves_no_guarantee_is_refused():
    with pytest.raises(ParameterError, match="leaves no guarantee"):
        party("party*age*sex").protect(dc.DiscreteLaplace(0.01, cap=3))


def test_the_budget_can_be_split_over_margins():
    table = party("party*age + 1")
    split = {"party:age": 0.5, ("party",): 0.25, "age": 0.125, "1": 0.125}
    method = dc.DiscreteLaplace(2.0, split=split)
    release = table.protect(method)
    privacy = release.statement.privacy
    assert (privacy.epsilon, privacy.sensitivity) == (2.0, 4)
    block = table.design.block_of_cell()
    scales = [1.0, 2.0, 4.0, 4.0]
    for k, scale in enumerate(scales):
        noise, law = method.cell_law(table, int(np.flatnonzero(block == k)[0]))
        tail = law[noise >= 3]
        np.testing.assert_allclose(tail[1] / tail[0], math.exp(-1 / scale))
    q = np.exp(-1 / np.array(scales))
    variance = 2 * q / (1 - q) ** 2
    relative = release.precision[np.searchsorted(block, range(4))]
    np.testing.assert_allclose(relative, variance[0] / variance)
    assert release.statement.steps[0].parameters["split"]["party"] == 0.25


def test_levels_of_a_split_margin_share_its_part():
    table = sample_table()
    terms = ["region:age:sex", "region:age", "region:sex", "age:sex", "region", "age", "sex", "1"]
    release = table.protect(dc.DiscreteLaplace(8.0, split=dict.fromkeys(terms, 1 / 8)))
    spent = release.statement.privacy
    assert spent.epsilon == pytest.approx(8.0)
    assert spent.sensitivity == 4 * 2 + 4 * 1


@pytest.mark.parametrize(
    ("split", "words"),
    [
        ({"party:age": 0.5, "party": 0.5}, "leaves out"),
        ({"party:age": 0.5, "party": 0.4}, "sum to one"),
        ({"party:age": 1.5, "party": -0.5}, "positive"),
        ({"party:age": 0.4, "party": 0.5, "party[leaves]": 0.1}, "twice"),
        ({"party:sex": 1.0}, "not among the published"),
    ],
)
def test_a_wrong_split_is_explained(split, words):
    with pytest.raises(ParameterError, match=words):
        party("party*age + sex").protect(dc.DiscreteLaplace(1.0, split=split))


def test_a_margin_of_an_unknown_variable_is_named():
    with pytest.raises(UnknownNameError, match="'party'"):
        party().protect(dc.DiscreteLaplace(1.0, known=["prty"]))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": 1, "cap": 0}, "cap"),
        ({"epsilon": 1, "cap": 2.5}, "cap"),
        ({"epsilon": 1, "sensitivity": 0}, "sensitivity"),
        ({"epsilon": 1, "sensitivity": 3, "split": {"1": 1.0}}, "sensitivity or split"),
        ({"epsilon": 1, "weighting": "cell"}, "voids"),
        ({"epsilon": 1, "weight_bound": 3.0}, "weighting='scale'"),
        ({"epsilon": 1, "weighting": "scale", "weight_bound": -1.0}, "weight_bound"),
        ({"epsilon": 1, "margins": "adjusted"}, "Adjust"),
    ],
)
def test_wrong_options_are_refused(given, words):
    with pytest.raises(ParameterError, match=words):
        registry.build("method", "discrete-laplace", given)


def test_a_sensitivity_below_the_designs_is_refused_and_a_larger_one_taken():
    with pytest.raises(ParameterError, match="up to 6 perturbed cells"):
        party().protect(dc.DiscreteLaplace(1.0, sensitivity=5))
    release = party().protect(dc.DiscreteLaplace(1.0, sensitivity=30))
    assert "noise of scale 30" in release.statement.text


def test_split_and_known_need_margins_of_their_own():
    with pytest.raises(ParameterError, match="margins='own'"):
        party().protect(dc.DiscreteLaplace(1.0, margins="summed", known=["1"]))
    matrix = dc.Table.from_inner(dc.Design.from_matrix(np.eye(2)), np.array([4, 5]))
    with pytest.raises(ParameterError, match="no margins to name"):
        matrix.protect(dc.DiscreteLaplace(1.0, known=["1"]))
    with pytest.raises(ParameterError, match="nothing is left"):
        party("sex").protect(dc.DiscreteLaplace(1.0, known=["sex", "1"]))


def test_noise_cannot_be_repeated():
    table = party()
    with pytest.raises(ParameterError, match="operating system"):
        table.protect(dc.DiscreteLaplace(1.0), seed=1)
    first, second = (table.protect(dc.DiscreteLaplace(0.1)).z for _ in range(2))
    assert not np.array_equal(first, second)


def test_a_simulation_is_an_array_and_no_release():
    table, method = party(), dc.DiscreteLaplace(1.0, cap=30)
    first, second = (method.simulate(table, np.random.default_rng(s)) for s in (1, 1))
    np.testing.assert_array_equal(first, second)
    assert isinstance(first, np.ndarray)
    assert first.min() >= 0
    rng = np.random.default_rng(2)
    open_ = dc.DiscreteLaplace(1.0, nonnegative=False)
    moves = np.concatenate([open_.simulate(table, rng) - table.z for _ in range(2000)])
    law = laplace_law(1.0, 200, 6)
    assert chi_square_p(*chi_square(moves, np.arange(-200, 201), law)) > 1e-6


def test_by_key_it_is_the_look_up_in_the_matrix():
    table = with_secret(keyed_party())
    matrix = discrete_laplace(3.0, 40, 6)
    keyed = table.protect(dc.DiscreteLaplace(3.0, cap=40, keyed=True))
    np.testing.assert_array_equal(keyed.z, table.protect(dc.CellKey(matrix)).z)
    rng = np.random.default_rng(1)
    keys = rng.integers(256, size=300)
    rule = dc.KeyConvention("tiny", 256)
    direct = law_by_key(laplace_law(1.0, 5), keys, rule)
    points = np.cumsum(laplace_law(1.0, 5))
    assert direct.tolist() == [int(np.searchsorted(points, k / 256, "right")) - 5 for k in keys]


def test_by_key_the_guarantee_is_another_one_and_says_so():
    release = with_secret(keyed_party()).protect(dc.DiscreteLaplace(3.0, keyed=True))
    assert release.statement.privacy is None
    assert "not differential privacy" in release.statement.text
    with pytest.raises(KeysError, match="empty cells"):
        keyed_party().protect(dc.DiscreteLaplace(3.0, keyed=True))
    with pytest.raises(KeysError, match="no cell keys"):
        party().protect(dc.DiscreteLaplace(3.0, keyed=True))


@pytest.mark.parametrize(
    ("epsilon", "sensitivity"), [(0.3, 3), (1.0, 7), (0.1, 31), (math.log(2), 5), (2.0, 1)]
)
def test_the_scale_is_one_for_which_the_guarantee_is_proved(epsilon, sensitivity):
    from discreet.protect import opendp_source

    scale = scale_for(epsilon, sensitivity)
    assert opendp_source._laplace(scale).map(sensitivity) <= epsilon
    np.testing.assert_allclose(scale, sensitivity / epsilon, rtol=1e-12)


def test_long_work_reports_its_progress(monkeypatch):
    monkeypatch.setattr("discreet.protect.opendp_source._CHUNK", 100)
    seen = []
    with listening(lambda task, share: seen.append(share)):
        laplace_noise(450, 0.5, cap=1)
    assert seen == sorted(seen)
    assert seen[0] == 0
    assert seen[-1] == 1
    assert len(seen) >= 5


def test_the_statement_survives_storage(tmp_path):
    release = party().protect(dc.DiscreteLaplace(2.0, cap=60, known=["1"]))
    again = dc.read_release(release.save(tmp_path / "release.parquet"))
    assert again.statement == release.statement
    assert again.statement.privacy.unit == "one record added or removed"


def test_fractional_counts_never_get_here():
    with pytest.raises(DataError, match="whole"):
        dc.Table.from_inner(dc.Design.product({"a": 2}, "a"), np.array([0.5, 1.0]))
