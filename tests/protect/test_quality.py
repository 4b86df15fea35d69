"""Quality of single cells: coarse classes, drawn by the secret, at a cost that is stated."""

import csv
import io

import numpy as np
import pytest

import discreet as dc
from discreet import registry
from discreet.errors import KeysError, ParameterError
from discreet.noise import blurred_deviations, linear_table
from discreet.protect import mean_p
from discreet.release import write_csv
from discreet.tables import CellStatus
from discreet.tables.show import NO_QUALITY
from discreet.testing import check_method
from tests.protect.tables import SECRET, keyed_party

NOISE = dc.CellKey(linear_table(5, 2.0, 2))


def census(seed=1, shape=(20, 12, 8), scale=8.0):
    rng = np.random.default_rng(seed)
    design = dc.Design.product(dict(zip("abc", shape, strict=True)), "a*b*c")
    counts = rng.poisson(rng.gamma(0.5, scale, design.n_inner))
    return dc.Table.from_inner(design, counts).rekeyed(rng).with_secret(SECRET)


def own_classes(table, release, edges=(1, 4)):
    """True and shown classes of the cells that have a quality, each cell once."""
    first = table.design.duplicates() == np.arange(len(release.z))
    has = (release.quality != NO_QUALITY) & first
    own = np.searchsorted(edges, np.abs(release.z - table.z))
    return own[has], release.quality[has]


@pytest.mark.parametrize(
    "method",
    [NOISE, dc.Adjust(NOISE), dc.Pram(), dc.SmallCountRounding(3)],
    ids=lambda m: m.name,
)
@pytest.mark.parametrize(("edges", "keep"), [((1, 4), 0.5), ((2,), 0.3)])
def test_a_class_is_kept_with_its_probability_and_otherwise_any(method, edges, keep):
    table, quality = census(), dc.protect.Quality(method, edges, keep)
    own, shown = own_classes(table, table.protect(quality), edges)
    for true in np.unique(own):
        seen = shown[own == true]
        for k in range(quality.n_classes):
            expected = (k == true) * keep + (1 - keep) / quality.n_classes
            assert len(seen) < 30 or mean_p((seen == k) - expected) > 1e-6


def test_shares_of_the_classes_are_estimated_without_bias():
    table, quality = census(shape=(8, 6, 5)), dc.protect.Quality(NOISE)
    off = []
    for seed in range(60):
        trial = table.simulate(quality, seed=seed)
        has = trial.quality != NO_QUALITY
        own = np.searchsorted((1, 4), np.abs(trial.z - table.z)[has])
        off.append(quality.shares(trial) - np.bincount(own, minlength=3) / has.sum())
    assert min(mean_p(np.array(off)[:, k]) for k in range(3)) > 1e-4


def test_what_a_class_tells_is_bounded_as_stated():
    """Whoever knows the rest of a cell learns at most the odds, and no deviation for certain."""
    table, quality = census(shape=(40, 20, 10)), dc.protect.Quality(NOISE)
    release = table.protect(quality)
    own, shown = own_classes(table, release)
    rate = np.array([[(shown[own == t] == k).mean() for k in range(3)] for t in np.unique(own)])
    assert (rate.max(axis=0) / rate.min(axis=0)).max() < 1.15 * quality.odds
    assert f"at most {quality.odds:.4g} times" in release.statement.text
    has = release.quality != NO_QUALITY
    moves, classes = (release.z - table.z)[has], release.quality[has]
    best = [np.bincount(moves[classes == k] + 5).max() for k in range(3)]
    assert sum(best) / len(moves) - np.bincount(moves + 5).max() / len(moves) < 0.1


def test_values_and_claims_are_those_of_the_method():
    table = census()
    plain, release = table.protect(NOISE), table.protect(dc.protect.Quality(NOISE))
    np.testing.assert_array_equal(plain.z, release.z)
    assert dc.protect.Quality(NOISE).claims == NOISE.claims
    names = [step.name for step in release.statement.steps]
    assert names == ["data", "protect:cell-key", "protect:quality"]
    assert set(plain.statement.sentences) < set(release.statement.sentences)
    assert plain.quality is None


@pytest.mark.parametrize("method", [NOISE, dc.DropAdd(), dc.Safe(proposals=2e4)])
def test_the_battery_finds_nothing_to_complain_of(method):
    check_method(dc.protect.Quality(method), census(shape=(6, 5, 4)), draws=20_000)


def test_the_quality_depends_on_the_deviation_and_not_on_the_count():
    table = census(shape=(100, 80, 10))
    release = table.protect(dc.protect.Quality(NOISE))
    chosen = (release.quality != NO_QUALITY) & (release.z - table.z == 2)
    sizes, small = release.quality[chosen], table.z[chosen] == 1
    groups = sizes[small], sizes[~small]
    error = np.sqrt(sum(g.var() / len(g) for g in groups))
    assert abs(groups[0].mean() - groups[1].mean()) / error < 4


def test_zeros_and_hidden_cells_have_no_quality():
    table = census()
    release = table.protect(dc.protect.Quality(dc.CellKey(NOISE.matrix, threshold=10)))
    hidden = release.status == CellStatus.below_threshold
    assert hidden.any()
    assert (release.quality[hidden] == NO_QUALITY).all()
    release = table.protect(dc.protect.Quality(NOISE))
    np.testing.assert_array_equal(release.quality == NO_QUALITY, release.z == 0)


def test_the_same_cell_has_one_quality():
    design = dc.Design.product({"a": 60, "b": 1}, "a*b")
    rng = np.random.default_rng(1)
    table = dc.Table.from_inner(design, rng.poisson(9, 60)).rekeyed(rng).with_secret(SECRET)
    release = table.protect(dc.protect.Quality(NOISE))
    first = design.duplicates()
    assert len(np.unique(first)) == 61
    np.testing.assert_array_equal(release.quality, release.quality[first])


def test_a_cell_has_the_same_quality_in_another_table():
    """No second draw to average with."""
    inner = census(shape=(30, 20, 6))
    frame = inner.inner_to_arrow()
    found = []
    for margins in ("a*b + a*c", "a*b + b*c"):
        table = dc.Table.from_counts(frame, count="count", margins=margins, key="cell_key")
        table = table.with_secret(SECRET)
        release = table.protect(dc.protect.Quality(NOISE)).to_pandas()
        found.append(release[(release.a != "Total") & (release.b != "Total")])
    same = [f[f.c == "Total"].set_index(["a", "b"]).quality for f in found]
    one, other = same[0].align(same[1], join="inner")
    assert len(one) == 600
    assert (one.fillna(-1) == other.fillna(-1)).all()


def test_support_read_from_the_records_makes_no_difference():
    full = census(shape=(8, 6, 5))
    frame = full.inner_to_arrow()
    sparse = dc.Table.from_counts(
        frame, count="count", margins="a*b*c", key="cell_key", support="occurring"
    ).with_secret(SECRET)
    expected = full.protect(dc.protect.Quality(NOISE)).to_arrow()
    assert sparse.protect(dc.protect.Quality(NOISE)).to_arrow().to_pylist() == expected.to_pylist()


def test_quality_travels_with_the_release(tmp_path):
    release = census(shape=(8, 6, 5)).protect(dc.protect.Quality(NOISE))
    column = release.to_arrow().column("quality")
    assert column.null_count == (release.z == 0).sum() > 0
    lines = list(csv.DictReader(io.StringIO(write_csv(release, tmp_path / "r.csv").read_text())))
    assert [line["quality"] for line in lines] == [
        "" if q == NO_QUALITY else str(q) for q in release.quality
    ]
    again = dc.facade.read_release(release.save(tmp_path / "release.parquet"))
    np.testing.assert_array_equal(again.quality, release.quality)
    assert again.quality.dtype == np.int64


def test_quality_is_about_the_values_it_came_with():
    table = census(shape=(8, 6, 5))
    plain, release = table.protect(NOISE), table.protect(dc.protect.Quality(NOISE))
    assert "Quality is a class of a cell's deviation" in release.statement.text
    fitted = release.fit(dc.NonNegative())
    assert fitted.quality is None
    assert fitted.round(seed=1).quality is None
    np.testing.assert_array_equal(fitted.z, plain.fit(dc.NonNegative()).z)


def test_adjusted_values_have_no_quality_of_the_ones_before():
    table = census(shape=(8, 6, 5))
    adjusted = table.protect(dc.Adjust(dc.protect.Quality(NOISE)))
    assert adjusted.quality is None


def test_deviations_with_gaps_are_blurred_too():
    d = np.repeat([-9, 0, 9], [30, 40, 30])
    blurred = blurred_deviations(d, q=1 / 3, alpha=1.0, rng=np.random.default_rng(1))
    assert np.bincount(blurred + 9)[[0, 9, 18]].tolist() == [30, 40, 30]
    assert 0.3 < (blurred == d).mean() < 0.7


def test_what_cannot_have_a_quality_is_refused():
    with pytest.raises(ParameterError, match="differentially private"):
        dc.protect.Quality(dc.Laplace(epsilon=1.0))
    with pytest.raises(ParameterError, match="wraps"):
        dc.protect.Quality("safe")
    with pytest.raises(ParameterError, match="whole counts"):
        dc.protect.Quality(dc.CellKey(NOISE.matrix, grid=30))
    with pytest.raises(KeysError, match="drawn from a secret"):
        keyed_party().protect(dc.protect.Quality(NOISE))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"keep": 1.0}, "keep must lie strictly"),
        ({"keep": 0}, "keep must lie strictly"),
        ({"edges": ()}, "one or two increasing"),
        ({"edges": (1, 2, 3)}, "one or two increasing"),
        ({"edges": (4, 1)}, "one or two increasing"),
        ({"edges": (-1,)}, "edges"),
    ],
)
def test_only_coarse_classes_are_offered(options, words):
    with pytest.raises(ParameterError, match=words):
        dc.protect.Quality(NOISE, **options)


def test_arrays_of_the_method_follow_the_cells_into_canonical_order():
    """Given values of single cells mean the same cells with and without a quality."""
    table = census(shape=(3, 12, 2))
    given = np.full(table.design.n_inner, -1)
    given[table.design.inner_position({"a": "1", "b": "10", "c": "1"})] = 6
    method = dc.SmallCountRounding(3, pre_rounded=given, force_inner=True)
    for each in (method, dc.protect.Quality(method)):
        release = table.simulate(each, seed=1)
        assert release.z[release.design.position({"a": "1", "b": "10", "c": "1"})] == 6


def test_by_name():
    parameters = {"D": 5, "V": 3, "js": 2}
    built = registry.build("method", "quality", {"method": {"name": "cell-key", **parameters}})
    assert isinstance(built.method, dc.CellKey)
    assert built.source == "keys"
