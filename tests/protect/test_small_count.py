"""Small count rounding: the paper's example, the peer's results, and promises for every design."""

import itertools
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet import Secret, SmallCountRounding, registry
from discreet.errors import InfeasibleError, KeysError, ParameterError
from discreet.tables import CellValues
from discreet.testing import check_method, sample_table
from tests.protect.peer_rounding import FOLDER, own_cases, peer_cases
from tests.protect.tables import SECRET, party
from tests.strategies import designs

FIVE_WAY = FOLDER.parent / "data" / "lfs_like_agg.csv.gz"
PSD = [[6, 0, 1, 3, 4], [1, 2, 3, 1, 2], [0, 1, 1, 0, 2]]


def rng_of(seed):
    return np.random.default_rng(seed)


def utility(true, rounded):
    apart = np.sqrt(0.5 * ((np.sqrt(true) - np.sqrt(rounded)) ** 2).sum())
    return 1 - apart / np.sqrt(true.sum())


def is_free_of_small(z, base):
    return not ((z > 0) & (z < base)).any()


def table_of(counts, margins):
    counts = np.asarray(counts)
    shape = dict(zip("abc", counts.shape, strict=False))
    return dc.Table.from_inner(dc.Design.product(shape, margins), CellValues(counts.ravel()))


@pytest.mark.parametrize(
    ("method", "table"),
    [
        (SmallCountRounding(3), party()),
        (SmallCountRounding(5, max_round=7, proposals=0), sample_table()),
        (SmallCountRounding(5, single_random=True), sample_table()),
        (SmallCountRounding(3, zero_candidates=True), party()),
        (SmallCountRounding(4, identify_new=False, single_random=True), sample_table()),
    ],
)
def test_the_battery_of_promises_holds(method, table):
    found = check_method(
        replace(method, proposals=2e4 if method.proposals is None else method.proposals),
        table,
        draws=500,
    )
    assert found["additive"] == "published cells are sums"


@given(designs(), st.integers(0, 2**32 - 1), st.integers(2, 6), st.booleans())
@settings(max_examples=60, deadline=None)
def test_whatever_the_design_no_published_cell_is_small(design, seed, base, candidates):
    rng = rng_of(seed)
    table = dc.Table.from_inner(design, CellValues(rng.poisson(1.5, design.n_inner)))
    method = SmallCountRounding(base, zero_candidates=candidates, proposals=2e3)
    inner = method.inner(table, rng=rng)
    z = design.aggregate(inner)
    assert is_free_of_small(z, base)
    assert (np.abs(inner - table.y) < base + candidates).all()
    moved = inner != table.y
    assert not (inner[moved] % base).any()
    if not candidates:
        assert not inner[table.y == 0].any()
        assert not z[table.z == 0].any()


def test_the_two_outcomes_of_the_papers_example_are_equally_likely():
    """Langsrud & Lupp (2021): two inner cells of one are touched; utilities .9457 and .9460."""
    table = party()
    young, old = (
        table.design.inner_position({"party": "B", "age": age, "sex": sex})
        for age, sex in (("young", "f"), ("old", "m"))
    )
    outcomes, utilities = Counter(), {}
    for seed in range(200):
        inner = SmallCountRounding(3, proposals=2e3).inner(table, rng=rng_of(seed))
        assert set(np.flatnonzero(inner != table.y)) == {young, old}
        outcome = int(inner[young]), int(inner[old])
        outcomes[outcome] += 1
        utilities[outcome] = round(utility(table.z, table.design.aggregate(inner)), 4)
    assert utilities == {(3, 0): 0.9457, (0, 3): 0.946}
    assert 70 <= outcomes[3, 0] <= 130


def test_the_margins_of_the_peers_example_come_out_in_two_rounds():
    table = table_of(PSD, "a + b")
    for seed in range(20):
        z = table.simulate(SmallCountRounding(5), seed=seed).z
        assert sorted(z.tolist()) == [5, 5, 5, 5, 6, 7, 8, 15, 28]
        assert z[table.design.position({})] == 28


CASES = [*peer_cases(), *own_cases()] if FOLDER.exists() else []


@pytest.mark.parametrize(("name", "table", "method", "recorded"), CASES, ids=[c[0] for c in CASES])
def test_every_reference_case_is_reached(name, table, method, recorded):
    """The loss is never larger than the peer's; maximum and utility are reached together.

    Ties are broken by chance, and roundings with the same loss differ in utility; so the last two
    are asked of the best of some seeds.
    """
    reached = []
    for seed in range(8):
        z = table.design.aggregate(method.inner(table, rng=rng_of(seed)))
        size = np.abs(z - table.z)
        assert np.sqrt((size**2).mean()) <= recorded["rootMeanSquare"] + 1e-9
        near = size.max() <= recorded["maxdiff"]
        reached.append(near and utility(table.z, z) >= recorded["HDutility"] - 1e-9)
        assert not method.identify_new or is_free_of_small(z, method.base)
    assert any(reached)


def test_the_search_improves_on_the_greedy_start():
    rng = rng_of(1)
    table = table_of(rng.poisson(rng.gamma(0.4, 4.0, (12, 10, 8))), "a*b + a*c + b*c")

    def loss(**options):
        z = [table.simulate(SmallCountRounding(5, **options), seed=s).z for s in range(3)]
        return ((np.array(z) - table.z) ** 2).sum()

    assert loss(proposals=1e5) < loss(proposals=0) < 0.8 * loss(single_random=True)


def test_many_cells_start_from_systematic_sampling_and_end_as_well():
    rng = rng_of(1)
    table = table_of(rng.poisson(rng.gamma(0.4, 4.0, (12, 10, 8))), "a*b + a*c + b*c")
    few, many = (
        table.simulate(SmallCountRounding(3, max_iter_rows=rows), seed=1).z for rows in (10**6, 10)
    )
    losses = [((z - table.z) ** 2).sum() for z in (few, many)]
    assert losses[1] < 1.2 * losses[0]
    assert is_free_of_small(many, 3)


@pytest.mark.skipif(not FIVE_WAY.exists(), reason="the five-way data are not here")
def test_a_short_search_on_a_large_table_beats_the_peer():
    """SmallCountRounding 1.2.5 on ten three-way margins: 7, 0.801 and 0.97896."""
    frame = pandas.read_csv(FIVE_WAY, dtype=dict.fromkeys("abcde", str))
    margins = list(itertools.combinations("abcde", 3))
    table = dc.Table.from_counts(frame, "freq", margins, support="occurring")
    z = table.design.aggregate(SmallCountRounding(3, proposals=1e5).inner(table, rng=rng_of(1)))
    size = np.abs(z - table.z)
    assert size.max() <= 7
    assert size.mean() < 0.801
    assert utility(table.z, z) > 0.97896
    assert is_free_of_small(z, 3)


def test_inner_cells_stay_hidden():
    release = party().simulate(SmallCountRounding(3), seed=1)
    assert release.y is None
    assert release.statement.says("true-counts")
    forced = party().simulate(SmallCountRounding(3, force_inner=True), seed=1)
    np.testing.assert_array_equal(forced.design.aggregate(forced.y), forced.z)
    assert not forced.statement.says("true-counts")


def test_max_round_widens_what_is_rounded():
    table = table_of(PSD, "a + b")
    z = table.simulate(SmallCountRounding(5, max_round=7), seed=1).z
    small_before = table.z <= 7
    assert not (z[small_before] % 5).any()


def test_all_small_and_forced_cells_are_rounded():
    table = table_of(PSD, [()])
    y = table.y
    untouched = SmallCountRounding(5).inner(table, rng=rng_of(1))
    np.testing.assert_array_equal(untouched, y)
    small = SmallCountRounding(5, all_small=True).inner(table, rng=rng_of(1))
    assert not (small[y < 5] % 5).any()
    assert small[0] == 6
    forced = SmallCountRounding(5, force_inner=True).inner(table, rng=rng_of(1))
    assert not (forced % 5).any()
    assert abs(int(forced.sum()) - int(y.sum())) < 5


def test_zero_candidates_can_be_raised():
    table = table_of([[0, 2], [2, 9]], "a + b")
    inner = [
        SmallCountRounding(5, zero_candidates=True).inner(table, rng=rng_of(s)) for s in range(30)
    ]
    assert any(y[0] == 5 for y in inner)
    kept = [SmallCountRounding(5).inner(table, rng=rng_of(s)) for s in range(30)]
    assert all(y[0] == 0 for y in kept)


def test_without_a_second_look_small_cells_may_stay():
    table = table_of(PSD, "a + b")
    method = SmallCountRounding(5, identify_new=False)
    made = [table.simulate(method, seed=s) for s in range(4)]
    assert method.claims.blocked == ()
    assert not all(is_free_of_small(m.z, 5) for m in made)
    assert "no published count is small" not in made[0].statement.text


def test_weights_pull_the_loss_to_some_cells():
    rng = rng_of(2)
    table = table_of(rng.poisson(1.2, (6, 6)), "a*b")
    total = table.design.position({})
    array = np.ones(table.design.n_published)
    array[total] = 1e4
    for weights in (array, array.tolist(), {0: 1e4}, {"0": 1e4}):
        method = SmallCountRounding(7, weights=weights)
        off = [table.simulate(method, seed=s).z[total] - table.z[total] for s in range(5)]
        assert np.abs(off).max() <= 4


def test_a_further_table_keeps_the_cells_that_were_rounded():
    first, second = table_of(PSD, "a + b"), table_of(PSD, "a*b")
    method = SmallCountRounding(5)
    inner = method.inner(first, rng=rng_of(1))
    assert not is_free_of_small(second.design.aggregate(inner), 5)
    more = method.further(second, inner, rng=rng_of(2))
    moved = inner != first.y
    np.testing.assert_array_equal(more[moved], inner[moved])
    assert is_free_of_small(second.design.aggregate(more), 5)


def test_given_values_stay_and_what_they_make_small_is_rounded():
    table = table_of([[9, 9], [9, 2]], "a + b")
    given = np.array([-1, -1, 0, -1])
    inner = SmallCountRounding(5, pre_rounded=given).inner(table, rng=rng_of(1))
    assert inner[2] == 0
    assert inner[3] in (0, 5)
    assert is_free_of_small(table.design.aggregate(inner), 5)


def test_differences_made_elsewhere_are_made_good():
    table = table_of([[1, 1, 1, 1, 1, 1]], "b")
    total = table.design.position({})
    offsets = np.zeros(table.design.n_published, dtype=np.int64)
    offsets[total] = 3
    for elsewhere, total in ((None, 6), (offsets, 3)):
        method = SmallCountRounding(3, pre_difference=elsewhere)
        assert method.inner(table, rng=rng_of(1)).sum() == total


def test_cells_that_are_given_away_are_rounded_too():
    """The last cell is zero, so the second is 5, so the first is 1: no published cell is small."""
    X = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1]])
    table = dc.Table.from_inner(dc.Design.from_matrix(X), CellValues(np.array([1, 5, 0])))
    assert is_free_of_small(table.z, 3)
    assert SmallCountRounding(3).inner(table, rng=rng_of(1))[0] in (0, 3)
    left = SmallCountRounding(3, easy_check=False).inner(table, rng=rng_of(1))
    np.testing.assert_array_equal(left, table.y)


def test_leverage_finds_what_elimination_does_not():
    X = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]])
    table = dc.Table.from_inner(dc.Design.from_matrix(X), CellValues(np.array([2, 7, 8])))
    easy = SmallCountRounding(3).inner(table, rng=rng_of(1))
    np.testing.assert_array_equal(easy, table.y)
    wide = SmallCountRounding(3, leverage_check=True).inner(table, rng=rng_of(1))
    assert wide[0] in (0, 3)


def test_the_same_secret_gives_the_same_release_and_another_one_another():
    rng = rng_of(3)
    table = table_of(rng.poisson(1.2, (6, 6)), "a*b")
    secrets = [
        Secret(f"custodian number {k} has a secret of their own".encode())
        for k in (1, 1, 2, 3, 4, 5)
    ]
    first, again, *others = (table.with_secret(s).protect(SmallCountRounding(3)).z for s in secrets)
    np.testing.assert_array_equal(first, again)
    assert not all(np.array_equal(first, other) for other in others)  # ties are broken by chance


def test_arrays_follow_their_cells_into_canonical_order():
    """Weights and given values of single cells mean the same cells however the table is written."""
    frame = {"b": list("yyxx"), "a": list("qpqp"), "n": [1, 4, 2, 9]}
    for names in (("a", "b"), ("b", "a")):
        table = dc.Table.from_counts(frame, "n", "*".join(names)).with_secret(SECRET)
        given = np.full(4, -1)
        given[table.design.inner_position({"a": "q", "b": "x"})] = 6
        release = table.simulate(SmallCountRounding(3, pre_rounded=given, force_inner=True), seed=1)
        assert release.z[release.design.position({"a": "q", "b": "x"})] == 6


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"base": 1}, "at least 2"),
        ({"base": 2.5}, "base must be a whole number of at least 2, got 2.5"),
        ({"max_round": 0}, "max_round must be a whole number of at least 1"),
        ({"step": -1}, "step must be a whole number of at least 0"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1"),
        ({"max_iter_rows": math.nan}, "max_iter_rows must be a whole number of at least 0"),
        ({"proposals": -1}, "proposals must be at least 0"),
        ({"weights": [-1.0]}, "weights must not be negative"),
        ({"weights": [1.0, math.nan]}, "weights must be a list of finite numbers"),
        ({"pre_rounded": ["x"]}, "pre_rounded must be a list of finite numbers"),
        ({"pre_rounded": [1.5]}, "pre_rounded must be whole numbers"),
        ({"weights": 2.0}, "list of finite numbers"),
        ({"weights": ["much"]}, r"list of finite numbers, got \['much'\]"),
        ({"weights": {"x": 1}}, "keys of weights are numbers of variables .* got 'x'"),
        ({"weights": {1: math.nan}}, "weights: a finite number is needed"),
        ({"weights": {1: -1}}, "weights must not be negative"),
    ],
)
def test_nonsense_is_refused_when_it_is_written(options, why):
    with pytest.raises(ParameterError, match=why):
        SmallCountRounding(**options)


@pytest.mark.parametrize("name", ["pre_rounded", "pre_difference", "weights"])
def test_arrays_of_the_wrong_length_are_refused(name):
    with pytest.raises(ParameterError, match=f"{name} has 2 values for"):
        party().simulate(SmallCountRounding(3, **{name: [1, 1]}), seed=1)


def test_too_few_rounds_are_an_error():
    table = table_of(PSD, "a + b")
    with pytest.raises(InfeasibleError, match="still small after 1 rounds"):
        table.simulate(SmallCountRounding(5, max_iter=1, proposals=0), seed=1)


def test_a_secret_is_needed():
    with pytest.raises(KeysError, match="publication draws from a secret"):
        party().protect(SmallCountRounding(3))


def test_recipes_give_plain_values():
    method = registry.build("method", "small-count-rounding", {"base": 5, "weights": {"1": 2}})
    assert (method.base, method.weights) == (5, {1: 2.0})
