"""Quality of single cells: frequencies kept, single deviations not shown."""

import csv
import io

import numpy as np
import pytest

import discreet as dc
from discreet import registry
from discreet.design.release import CellStatus, Statement, Step
from discreet.design.show import NO_QUALITY
from discreet.design.values import CellValues
from discreet.errors import DesignError, ParameterError
from discreet.noise import blurred_deviations
from discreet.noise.linear import linear_table
from discreet.protect import quality as module
from discreet.release.export import to_csv
from discreet.testing import check_method
from tests.protect.tables import keyed_party

NOISE = dc.CellKey(linear_table(5, 2.0, 2))


def census(seed=1, shape=(20, 12, 8), scale=8.0):
    rng = np.random.default_rng(seed)
    design = dc.Design.product(dict(zip("abc", shape, strict=True)), "a*b*c")
    counts = rng.poisson(rng.gamma(0.5, scale, design.n_inner))
    return dc.Table.from_inner(design, counts).rekeyed(rng)


def graded(table, release):
    """True and shown sizes of the cells that have a quality."""
    has = release.quality != NO_QUALITY
    return np.abs(release.z - table.z)[has], release.quality[has]


def once(table, release):
    """Whether a cell is the first of those with the same records."""
    first = table.design.duplicates() == np.arange(len(release.z))
    return first[release.quality != NO_QUALITY]


@pytest.mark.parametrize(
    ("method", "seed"),
    [
        (NOISE, None),
        (dc.Adjust(NOISE, proposals=1e5), None),
        (dc.Safe(proposals=1e5), 1),
        (dc.Pram(invariant=False), 1),
        (dc.SmallCountRounding(3), 1),
    ],
    ids=["cell-key", "adjust", "safe", "pram", "rounding"],
)
def test_sizes_are_as_frequent_as_they_truly_are(method, seed):
    table = census()
    release = table.protect(dc.Quality(method), seed=seed)
    true, shown = graded(table, release)
    first = once(table, release)
    top = shown.max()
    expected = np.bincount(np.minimum(true[first], top))
    np.testing.assert_array_equal(np.bincount(shown[first]), expected)
    assert expected[top] >= 10
    assert (true[first] > top).sum() < 10


def test_values_and_claims_are_those_of_the_method():
    table = census()
    plain, release = table.protect(NOISE), table.protect(dc.Quality(NOISE))
    np.testing.assert_array_equal(plain.z, release.z)
    assert dc.Quality(NOISE).claims == NOISE.claims
    assert [s.name for s in release.statement.steps] == ["protect:cell-key", "protect:quality"]
    assert release.statement.text.startswith(plain.statement.text)
    assert plain.quality is None


@pytest.mark.parametrize("method", [NOISE, dc.DropAdd(), dc.Safe(proposals=2e4)])
def test_the_battery_finds_nothing_to_complain_of(method):
    check_method(dc.Quality(method), census(shape=(6, 5, 4)), draws=20_000)


def test_no_true_deviation_is_shown():
    """What is shown is the true size for a minority of cells of each size but the commonest."""
    table = census(shape=(40, 20, 10))
    release = table.protect(dc.Quality(NOISE))
    true, shown = graded(table, release)
    certainty = {k: (true[shown == k] == k).mean() for k in range(1, 6)}
    assert max(certainty.values()) < 0.6
    assert np.corrcoef(true, shown)[0, 1] > 0.2
    weak = table.protect(dc.Quality(NOISE, step=0.15, strength=0.4))
    true, shown = graded(table, weak)
    assert (true == shown).mean() > 0.8
    share = f"{(true == shown)[once(table, weak)].mean():.0%} of the cells show their own"
    assert share in weak.statement.text


def dependence(table):
    """In standard errors: what the quality of cells with deviation +2 tells about their count."""
    release = table.protect(dc.Quality(NOISE))
    d, n = release.z - table.z, table.z
    chosen = (release.quality != NO_QUALITY) & (d == 2)
    sizes, small = release.quality[chosen], n[chosen] == 1
    groups = sizes[small], sizes[~small]
    error = np.sqrt(sum(g.var() / len(g) for g in groups))
    return abs(groups[0].mean() - groups[1].mean()) / error


def test_the_quality_depends_on_the_deviation_and_not_on_the_count(monkeypatch):
    table = census(shape=(100, 80, 10))
    assert dependence(table) < 4
    monkeypatch.setattr(module, "_mixed", lambda keys: keys)
    assert dependence(table) > 8


def test_zeros_and_hidden_cells_have_no_quality():
    table = census()
    release = table.protect(dc.Quality(dc.CellKey(NOISE.matrix, threshold=10)))
    hidden = release.status == CellStatus.below_threshold
    assert hidden.any()
    assert (release.quality[hidden] == NO_QUALITY).all()
    release = table.protect(dc.Quality(NOISE))
    np.testing.assert_array_equal(release.quality == NO_QUALITY, release.z == 0)


def test_the_same_cell_has_one_quality():
    design = dc.Design.product({"a": 60, "b": 1}, "a*b")
    rng = np.random.default_rng(1)
    table = dc.Table.from_inner(design, rng.poisson(9, 60)).rekeyed(rng)
    release = table.protect(dc.Quality(NOISE))
    first = design.duplicates()
    assert len(np.unique(first)) == 61
    np.testing.assert_array_equal(release.quality, release.quality[first])


def test_a_cell_in_another_table_nearly_always_has_the_same_quality():
    """No second draw to average with."""
    inner = census(shape=(30, 20, 6))
    frame = inner.inner_to_arrow()
    found = []
    for margins in ("a*b + a*c", "a*b + b*c"):
        table = dc.Table.from_counts(frame, count="count", margins=margins, key="cell_key")
        release = table.protect(dc.Quality(NOISE)).to_pandas()
        found.append(release[(release.a != "Total") & (release.b != "Total")])
    same = [f[f.c == "Total"].set_index(["a", "b"]).quality for f in found]
    one, other = same[0].align(same[1], join="inner")
    assert len(one) == 600
    assert (one.fillna(-1) == other.fillna(-1)).mean() > 0.9


def test_support_read_from_the_records_makes_no_difference():
    full = census(shape=(8, 6, 5))
    frame = full.inner_to_arrow()
    sparse = dc.Table.from_counts(
        frame, count="count", margins="a*b*c", key="cell_key", support="occurring"
    )
    expected = full.protect(dc.Quality(NOISE)).to_arrow()
    assert sparse.protect(dc.Quality(NOISE)).to_arrow().to_pylist() == expected.to_pylist()


def test_quality_travels_with_the_release(tmp_path):
    release = census(shape=(8, 6, 5)).protect(dc.Quality(NOISE))
    column = release.to_arrow().column("quality")
    assert column.null_count == (release.z == 0).sum() > 0
    lines = list(csv.DictReader(io.StringIO(to_csv(release).decode())))
    assert [line["quality"] for line in lines] == [
        "" if q == NO_QUALITY else str(q) for q in release.quality
    ]
    again = dc.read_release(release.save(tmp_path / "release.parquet"))
    np.testing.assert_array_equal(again.quality, release.quality)
    assert again.quality.dtype == np.int64


def test_quality_is_about_the_values_it_came_with():
    table = census(shape=(8, 6, 5))
    plain, release = table.protect(NOISE), table.protect(dc.Quality(NOISE))
    assert "Quality is the size" in release.statement.text
    fitted = release.fit(dc.NonNegative())
    assert fitted.quality is None
    assert fitted.round(seed=1).quality is None
    assert fitted.statement == plain.fit(dc.NonNegative()).statement


def test_whatever_changes_the_values_takes_the_sentence_back():
    table = census(shape=(8, 6, 5))
    adjusted = table.protect(dc.Adjust(dc.Quality(NOISE), proposals=1e4))
    assert adjusted.quality is None
    assert adjusted.statement == table.protect(dc.Adjust(NOISE, proposals=1e4)).statement
    safe = dc.Safe(proposals=1e4)
    rounded = table.protect(dc.Quality(safe), seed=1).round(seed=2)
    assert rounded.statement == table.protect(safe, seed=1).round(seed=2).statement


def test_a_statement_of_which_a_step_is_taken_back():
    before = Statement((Step("a"),), "Line of a.").then(Step("b"), "Line of b.")
    assert before.then(Step("c"), "Line of c.").without("c") == before
    assert before.then(Step("c"), "Line of c.").without("b").text == "Line of a.\nLine of c."
    assert before.without("c") == before
    bare = Statement((), "Two lines\nand no step.")
    assert bare.then(Step("c"), "Line of c.").without("c") == bare


def test_rare_sizes_are_not_shown():
    """A single cell that is far off would stand out."""
    d = np.array([0] * 50 + [1, -1] * 20 + [9])
    coded = dc.Quality(NOISE, min_cells=10)._top_coded(d)
    assert np.abs(coded).max() == 1
    assert not dc.Quality(NOISE, min_cells=50)._top_coded(d).any()


def test_deviations_with_gaps_are_blurred_too():
    d = np.repeat([-9, 0, 9], [30, 40, 30])
    blurred = blurred_deviations(d, q=1 / 3, alpha=1.0, rng=np.random.default_rng(1))
    assert np.bincount(blurred + 9)[[0, 9, 18]].tolist() == [30, 40, 30]
    assert 0.3 < (blurred == d).mean() < 0.7


def test_what_cannot_be_blurred_is_refused():
    with pytest.raises(ParameterError, match="differentially private"):
        dc.Quality(dc.Laplace(epsilon=1.0))
    with pytest.raises(ParameterError, match="wraps"):
        dc.Quality("safe")
    with pytest.raises(ParameterError, match="strength"):
        dc.Quality(NOISE, strength=0)
    weighted = dc.CellKey(NOISE.matrix, weighting="mean")
    with pytest.raises(DesignError, match="weighted"):
        weighted_census().protect(dc.Quality(weighted))


@pytest.mark.parametrize(
    ("table", "method", "seed"),
    [(keyed_party(), dc.Quality(NOISE, min_cells=50), None), (census(), None, 1)],
    ids=["few cells", "no deviation"],
)
def test_no_quality_where_single_deviations_could_not_be_hidden(table, method, seed):
    release = table.protect(method or dc.Quality(Untouched()), seed=seed)
    assert release.quality is None
    assert "not given" in release.statement.text


def weighted_census():
    table = census(shape=(8, 6, 5))
    values = CellValues(table.y, table.y * 2.0)
    return dc.Table.from_inner(table.design, values).rekeyed(np.random.default_rng(1))


class Untouched:
    """A method that does nothing."""

    name, source = "untouched", "seed"
    claims = NOISE.claims

    def __call__(self, table, *, rng=None):
        from discreet.design.release import Release, Statement

        return Release.of(table.design, table.z, Statement((), "Nothing."))


def test_by_name():
    parameters = {"D": 5, "V": 3, "js": 2}
    built = registry.build("method", "quality", {"method": "cell-key", "parameters": parameters})
    assert isinstance(built.method, dc.CellKey)
    assert built.source == "keys"
