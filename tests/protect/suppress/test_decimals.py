"""Decimals in place of suppressed cells: the paper's tables, the peer's figures, and attacks."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import discreet as dc
from discreet import Design, LeastSquares, Secret, Table
from discreet.errors import (
    DataError,
    DesignError,
    InfeasibleError,
    ParameterError,
    UnknownNameError,
)
from discreet.suppress import Decimals, Pattern
from discreet.tables import CellStatus

REFERENCE = Path(__file__).parents[4] / "shared" / "reference"
needs_reference = pytest.mark.skipif(not REFERENCE.exists(), reason="no reference files here")

INNER = np.array([3, 11, 32, 30, 1, 9, 13, 8, 12, 22, 2, 2, 18, 19, 16, 3])
SUPPRESSED = [(2, 1), (3, 3), (3, 4), (1, 1), (4, 4), (2, 2), (1, 2), (2, 3), (4, 1)]
FITTED = [4.5217, 6.6957, -2.6957, 4.1739, 7.6957, 10.1739, 9.8261, 8.3043, 13.3043]
MOD_4 = [0.8696, 1.8261, 2.1739, 2.9565, 2.8261, 8.9565, 11.0435, 13.1739, 18.1739]
MOD_10 = [4.0870, 2.7826, 1.2174, 0.6957, 3.7826, 6.6957, 13.3043, 12.2174, 17.2174]


def paper_table():
    return Table.from_inner(Design.product({"row": 4, "col": 4}, "row*col"), INNER)


def paper_pattern(cells=SUPPRESSED):
    labels = {(str(r), str(c)): "p" for r, c in cells}
    return Pattern.from_labels(paper_table(), labels)


def paper_order(y):
    return [y[4 * (r - 1) + c - 1] for r, c in SUPPRESSED]


def draw(decimals, pattern, seed=1):
    return decimals(pattern, rng=np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("modulo", "expected"), [(None, FITTED), (4, MOD_4), (10, MOD_10)], ids=["plain", "4", "10"]
)
def test_fitted_values_are_those_of_the_paper(modulo, expected):
    found = draw(Decimals("none", modulo=modulo), paper_pattern())
    np.testing.assert_allclose(paper_order(found.y), expected, atol=5.1e-5)


def test_the_residual_with_the_true_variance_has_the_papers_length():
    found = draw(Decimals("variance", force=True), paper_pattern())
    fitted = draw(Decimals("none"), paper_pattern())
    assert ((found.y - fitted.y) ** 2).sum() == pytest.approx(126.7826, abs=5e-5)
    assert (found.y**2).sum() == pytest.approx((INNER**2).sum())


def test_a_tenth_of_the_residual_of_modulo_ten_has_the_length_of_table_3():
    found = draw(Decimals("scaled", scale=0.1, modulo=10, force=True), paper_pattern())
    fitted = draw(Decimals("none", modulo=10), paper_pattern())
    assert np.linalg.norm(found.y - fitted.y) == pytest.approx(0.5340, abs=1e-4)


def test_everything_adds_up_and_published_cells_are_untouched():
    pattern = paper_pattern()
    for residual in ("rmse", "variance", "scaled", "none"):
        found = draw(Decimals(residual, force=True), pattern)
        np.testing.assert_array_equal(found.z[~pattern.suppressed], pattern.z[~pattern.suppressed])
        np.testing.assert_allclose(pattern.design.aggregate(found.y), found.z, atol=1e-9)
        np.testing.assert_array_equal(found.is_decimal, pattern.suppressed)


def test_decimals_need_no_true_values():
    pattern = paper_pattern()
    blind = Pattern(pattern.design, np.where(pattern.suppressed, -99, pattern.z), pattern.state)
    known, unknown = (draw(Decimals(), each) for each in (pattern, blind))
    np.testing.assert_allclose(unknown.y, known.y, atol=1e-9)
    for options in ({"residual": "variance"}, {"residual": "scaled"}, {"modulo": 10}):
        with pytest.raises(DataError, match="rmse"):
            draw(Decimals(**options, force=True), blind)


def test_fitted_values_are_the_least_squares_fit_of_what_is_public():
    pattern = paper_pattern()
    fit = LeastSquares(tolerance=1e-12)(
        pattern.design,
        np.where(pattern.suppressed, 0, pattern.z),
        weights=(~pattern.suppressed).astype(float),
    )
    np.testing.assert_allclose(draw(Decimals("none"), pattern).y, fit.y, atol=1e-9)


def test_a_single_open_number_is_refused_unless_forced():
    design = Design.product({"row": 3, "col": 3}, "row*col")
    table = Table.from_inner(design, np.array([3, 6, 2, 1, 4, 7, 5, 8, 27]))
    pattern = Pattern.from_labels(table, {(r, c): "p" for r in "12" for c in "13"})
    amounts = replace(pattern, z=pattern.z * 1.5, y=pattern.y * 1.5)
    for residual in ("variance", "scaled"):
        with pytest.raises(ParameterError, match="mirror image"):
            draw(Decimals(residual), amounts)
    forced = draw(Decimals("variance", force=True), pattern)
    fitted = draw(Decimals("none"), pattern).y
    mirror = 2 * fitted - table.y
    assert np.allclose(forced.y, table.y) or np.allclose(forced.y, mirror)
    free = draw(Decimals(rmse=1.234), pattern)
    assert np.linalg.norm(free.y - fitted) == pytest.approx(1.234)
    printed = [[0.633, 6, 4.367], [3.367, 4, 4.633], [5, 8, 27]]
    outcomes = [fitted + sign * (free.y - fitted) for sign in (1, -1)]
    assert any(np.allclose(y.reshape(3, 3), printed, atol=5e-4) for y in outcomes)


def test_several_values_keep_their_covariances():
    pattern = paper_pattern()
    y = np.column_stack([INNER, INNER[::-1], INNER + INNER[::-1]])
    z = np.column_stack([pattern.design.aggregate(column) for column in y.T])
    normal = np.random.default_rng(2).standard_normal
    given_y = pattern.design, pattern.suppressed, z, y
    found = Decimals("variance", force=True).replace(*given_y, normal=normal)
    np.testing.assert_allclose(found.y.T @ found.y, y.T @ y, rtol=1e-9)
    np.testing.assert_allclose(found.y[:, 0] + found.y[:, 1], found.y[:, 2], atol=1e-8)
    np.testing.assert_allclose(
        found.z, np.column_stack([pattern.design.aggregate(c) for c in found.y.T]), atol=1e-8
    )
    assert np.abs(found.y - y).max() > 1


@pytest.mark.parametrize("modulo", [3, 4, 10, 15])
@pytest.mark.parametrize("columns", [1, 2])
def test_sums_of_squares_are_the_true_ones_with_modulo_too(modulo, columns):
    pattern = paper_pattern()
    y = np.column_stack([INNER, 2.5 * INNER[::-1] + 1])[:, :columns]
    z = np.column_stack([pattern.design.aggregate(column) for column in y.T])
    decimals = Decimals("variance", modulo=modulo, force=True)
    normal = np.random.default_rng(modulo).standard_normal
    found = decimals.replace(pattern.design, pattern.suppressed, z, y, normal=normal)
    np.testing.assert_allclose(found.y.T @ found.y, y.T @ y, rtol=1e-9)
    np.testing.assert_allclose((pattern.design.matrix().T @ found.y), found.z, atol=1e-8)
    assert np.abs(found.y - y).max() > 0.1
    # A residual of the usual length, without the factor, misses them: the fault that this replaced.
    kept = modulo * (y // modulo)
    plain = Decimals("variance", force=True).replace(
        pattern.design, pattern.suppressed, z - pattern.design.matrix().T @ kept, y - kept,
        normal=np.random.default_rng(modulo).standard_normal,
    )  # fmt: skip
    missed = (plain.y + kept).T @ (plain.y + kept)
    assert not np.allclose(missed, y.T @ y, rtol=1e-6)


def test_squares_that_no_residual_brings_back_are_refused():
    pattern = paper_pattern()
    kept = 1e6 * np.random.default_rng(1).standard_normal(len(INNER))
    given_y = pattern.design, pattern.suppressed, pattern.z, pattern.y
    with pytest.raises(InfeasibleError, match="another modulo"):
        Decimals("variance", force=True).replace(
            *given_y, deduct=kept, normal=np.random.default_rng(1).standard_normal
        )


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_decimal_cells_are_exactly_those_that_do_not_follow(seed):
    rng = np.random.default_rng(seed)
    design = Design.product({"a": 3, "b": 3, "c": 2}, "a*b + b*c" if seed % 2 else "a*b*c")
    table = Table.from_inner(design, rng.integers(0, 9, design.n_inner))
    labels = "".join(rng.choice([".", "s"], design.n_published))
    pattern = Pattern.from_labels(table, labels)
    found = draw(Decimals(), pattern, seed)
    dense = design.matrix().toarray().astype(float)
    shown = dense[:, ~pattern.suppressed]
    rest = np.linalg.norm(dense - shown @ (np.linalg.pinv(shown) @ dense), axis=0)
    np.testing.assert_array_equal(found.is_decimal, rest > 1e-9)
    whole = np.abs(found.z - np.rint(found.z)) < 1e-9
    np.testing.assert_array_equal(whole, ~found.is_decimal)


def test_sensitive_cells_that_follow_are_refused():
    with pytest.raises(DataError, match="Audit the pattern"):
        draw(Decimals(), paper_pattern(SUPPRESSED[:3]))


def test_wrong_options_are_refused():
    with pytest.raises(UnknownNameError, match="residual"):
        Decimals("random")
    for options in ({"rmse": 0}, {"scale": -1}, {"modulo": 0}):
        with pytest.raises(ParameterError):
            Decimals(**options)


@needs_reference
def test_the_peers_figures_are_met():
    content = json.loads((REFERENCE / "regsdc" / "regsdc_suppressdec_2way.json").read_text())
    y = np.array([row["freq"] for row in content["inner"]])
    suppressed = np.array([row["suppressed"] for row in content["published"]])
    pairs = (np.ones(len(content["X_inner"]), int), (content["X_inner"], content["X_published"]))
    design = Design.from_matrix(sparse.csr_array(pairs, shape=(len(y), len(suppressed))))
    source = np.array(content["random_source"])

    def replaced(decimals, inner, **options):
        z = np.column_stack([design.aggregate(each) for each in np.atleast_2d(inner.T)])
        normal = lambda shape: source[: np.prod(shape)].reshape(shape)  # noqa: E731
        given_y = inner.reshape(len(y), -1)
        return decimals.replace(design, suppressed, z, given_y, normal=normal, **options).y

    def agrees(name, found):
        np.testing.assert_allclose(found, np.array(content["outputs"][name]), atol=1e-10)

    agrees("fitted", replaced(Decimals("none"), y))
    agrees("ipso", replaced(Decimals("variance", force=True), y))
    agrees("rmse_1", replaced(Decimals(), y))
    agrees("rmse_1_rep3", replaced(Decimals(), np.column_stack([y, y, y])))
    agrees("resScale_0.1", replaced(Decimals("scaled", force=True), y))
    agrees("deduct_floor", replaced(Decimals("scaled", scale=0.5, force=True), y, deduct=y // 2))


@needs_reference
def test_the_peers_decimals_of_accidents_have_our_length_around_our_fit():
    rows = json.loads((REFERENCE / "f_suppdec_mun.json").read_text())["output"]
    shown = {(r["mun"], r["inj"]): r for r in rows if r["isPublish"]}
    inner = [r for r in rows if r["isInner"]]
    columns = list(shown)
    pairs = [
        (i, k)
        for i, r in enumerate(inner)
        for k, (mun, inj) in enumerate(columns)
        if mun in (r["mun"], "Total") and inj in (r["inj"], "Total")
    ]
    i, k = np.array(pairs).T
    X = sparse.csr_array((np.ones(len(i), int), (i, k)), shape=(len(inner), len(columns)))
    design = Design.from_matrix(X)
    y = np.array([r["freq"] for r in inner])
    suppressed = np.array([shown[c]["suppressed"] for c in columns])
    pattern = Pattern(design, design.aggregate(y), np.where(suppressed, 1, 0), y=y)
    peer_y = np.array([r["freqDec"] for r in inner])
    fitted = draw(Decimals("none"), pattern).y
    found = draw(Decimals(rmse=np.pi / 3), pattern)
    # The peer's root mean square is a third of π, over the 13 dimensions that are open.
    assert np.linalg.norm(peer_y - fitted) == pytest.approx(np.pi / 3 * np.sqrt(13))
    assert np.linalg.norm(peer_y - fitted) == pytest.approx(np.linalg.norm(found.y - fitted))
    np.testing.assert_allclose(design.aggregate(peer_y)[~suppressed], pattern.z[~suppressed])
    np.testing.assert_array_equal(found.is_decimal, suppressed)


# Counts whose distance from the fit is told.


def tables_at_the_distance(pattern, decimals=None):
    """Tables of counts that fit all that is public, and decimals with the true variance.

    Hidden counts are known to be positive, since empty cells are shown. In a table of two variables
    the cells that elimination leaves free determine the others in whole numbers; there must be two
    to four of them.
    """
    design, hidden = pattern.design, pattern.suppressed
    public = Pattern(design, np.where(hidden, 0, pattern.z).astype(float), pattern.state)
    fitted = draw(Decimals("none"), public).y
    X = design.matrix().toarray()
    system = np.column_stack([X[:, ~hidden].T, pattern.z[~hidden]]).astype(float)
    pivots = []
    for column in range(len(X)):
        row = len(pivots)
        if row == len(system) or not np.abs(system[row:, column]).any():
            continue
        found = row + int(np.argmax(np.abs(system[row:, column])))
        system[[row, found]] = system[[found, row]]
        system[row] /= system[row, column]
        others = np.arange(len(system)) != row
        system[others] -= np.outer(system[others, column], system[row])
        pivots.append(column)
    system = system[: len(pivots)]
    free = [cell for cell in range(len(X)) if cell not in pivots]
    if not 2 <= len(free) <= 4:
        return None
    tops = [int(pattern.z[~hidden & (X[cell] > 0)].min()) for cell in free]
    axes = np.meshgrid(*(np.arange(top + 1) for top in tops), indexing="ij")
    y = np.zeros((len(X), axes[0].size))
    y[free] = [axis.ravel() for axis in axes]
    y[pivots] = system[:, -1:] - system[:, free] @ y[free]
    z = X.T @ y
    fits = (y >= 0).all(axis=0) & (z[hidden] >= 1).all(axis=0)
    if decimals is not None:
        apart = np.linalg.norm(y - fitted[:, None], axis=0)
        fits &= np.abs(apart - np.linalg.norm(decimals - fitted)) < 1e-6
    return z[:, fits]


def test_the_true_variance_of_counts_gives_cells_of_half_of_the_tables_away():
    """The attack for which `"variance"` and `"scaled"` are refused for counts."""
    told, given_away = [], 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        design = Design.product({"a": int(rng.integers(3, 5)), "b": 4}, "a*b")
        table = Table.from_inner(design, rng.negative_binomial(1, 0.2, design.n_inner))
        pattern = dc.Suppress(dc.rules.Threshold(3)).pattern(table)
        if not pattern.suppressed.any():
            continue
        before = tables_at_the_distance(pattern)
        if before is None:
            continue
        found = draw(Decimals("variance", force=True), pattern, seed)
        after = tables_at_the_distance(pattern, found.y)
        assert (after == pattern.z[:, None]).all(axis=0).any()
        hidden = pattern.suppressed
        given_away += int((np.ptp(before[hidden], axis=1) == 0).sum())
        told.append((np.ptp(after[hidden], axis=1) == 0).any())
        # Decimals of a public length tell nothing: no other table lies at their distance.
        public = draw(Decimals(), pattern, seed)
        assert tables_at_the_distance(pattern, public.y).shape[1] == 0
    assert given_away == 0  # crosses alone give no cell away
    assert len(told) >= 20
    assert np.mean(told) == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("residual", ["variance", "scaled"])
def test_counts_are_refused_where_the_distance_from_the_fit_is_told(residual):
    with pytest.raises(ParameterError, match="decimals of counts"):
        draw(Decimals(residual), paper_pattern())
    with pytest.raises(ParameterError, match="decimals of counts"):
        release(dc.Suppress(decimals=residual))
    amounts = replace(paper_pattern(), z=paper_pattern().z * 1.5, y=INNER * 1.5)
    with pytest.raises(ParameterError, match="leave 2 numbers open"):
        draw(Decimals(residual), amounts)


def test_amounts_with_enough_open_numbers_keep_their_variance():
    design = Design.product({"row": 5, "col": 5}, "row*col")
    amounts = np.random.default_rng(4).gamma(0.7, 90.0, 25)
    labels = {(str(r), str(c)): "p" for r in range(1, 4) for c in range(1, 4)}
    pattern = Pattern.from_labels(design, labels, design.aggregate(amounts), y=amounts)
    found = draw(Decimals("variance"), pattern)
    assert (found.y**2).sum() == pytest.approx((amounts**2).sum())
    assert np.abs(found.y - amounts)[pattern.suppressed[:25]].min() > 0.01


# What users do with a release.


def release(method=None):
    table = paper_table().with_secret(Secret.demo())
    return table.protect(method or dc.Suppress(decimals=Decimals()))


def test_a_release_with_decimals_can_be_shown_and_saved(tmp_path):
    found = release()
    assert set(np.unique(found.status)) == {CellStatus.published, CellStatus.decimal}
    assert not found.hidden.any()
    frame = found.to_pandas()
    assert (frame["status"] == "decimal").sum() == found.replaced.sum()
    found.save(tmp_path / "release.parquet")
    again = dc.facade.read_release(tmp_path / "release.parquet")
    np.testing.assert_array_equal(again.replaced, found.replaced)
    np.testing.assert_allclose(again.z, found.z)
    assert "Decimal numbers stand" in again.statement.text


def test_the_same_table_has_the_same_decimals_and_another_secret_others():
    np.testing.assert_array_equal(release().z, release().z)
    other = paper_table().with_secret(Secret(b"another secret, thirty-two bytes"))
    moved = other.protect(dc.Suppress(decimals=Decimals()))
    assert (moved.z != release().z)[release().replaced].all()


def test_decimals_are_the_same_however_the_table_was_asked_for():
    turned = Design.product({"col": 4, "row": 4}, "col*row")
    table = Table.from_inner(turned, INNER.reshape(4, 4).T.ravel()).with_secret(Secret.demo())
    other, found = table.protect(dc.Suppress(decimals=Decimals())), release()
    for row, col in itertools.product(range(1, 5), repeat=2):
        cell = {"row": row, "col": col}
        assert other.z[turned.position(cell)] == pytest.approx(found.z[found.design.position(cell)])


@pytest.mark.parametrize("method", [dc.Suppress(), dc.Suppress(decimals=Decimals())])
def test_a_sum_is_publishable_exactly_when_it_is_whole(method):
    found, whole = release(method), release()
    truth = INNER.reshape(4, 4)
    for rows in [(1,), (1, 2), (2, 3), (1, 2, 3, 4)]:
        for cols in [(1,), (1, 2), (2, 4), (3, 4), (1, 2, 3)]:
            value = found.exact_sum({"row": list(rows), "col": list(cols)})
            decimals = whole.y.reshape(4, 4)[np.ix_(np.array(rows) - 1, np.array(cols) - 1)].sum()
            is_whole = abs(decimals - round(decimals)) < 1e-9
            assert (value is not None) == is_whole
            if is_whole:
                assert value == truth[np.ix_(np.array(rows) - 1, np.array(cols) - 1)].sum()


def test_sums_are_given_by_cells_and_checked():
    found = release()
    assert found.exact_sum({}) == INNER.sum()
    # Which cells protect others follows from the secret: one of the first row is shown.
    col = next(c for c in (1, 2, 3, 4) if found.exact_sum({"row": 1, "col": c}) is not None)
    expected = INNER.reshape(4, 4)[0, col - 1] + INNER.reshape(4, 4)[1].sum()
    assert found.exact_sum([{"row": 1, "col": col}, {"row": 2}]) == expected
    assert found.exact_sum({"row": 1, "col": 1}) is None
    with pytest.raises(DesignError, match="overlap"):
        found.exact_sum([{"row": 1}, {"col": 1}])
    with pytest.raises(UnknownNameError, match="variable"):
        found.exact_sum({"age": 1})
    with pytest.raises(UnknownNameError, match="code of row"):
        found.exact_sum({"row": 9})


def test_decimals_of_a_public_length_tell_nothing_of_the_suppressed_values():
    """Two tables with the same published cells and the same pattern have the same decimals."""
    pattern = paper_pattern()
    other = INNER.reshape(4, 4).copy()
    other[0, 0] += 1
    other[0, 1] -= 1
    other[1, 0] -= 1
    other[1, 1] += 1
    twin = Pattern(
        pattern.design, pattern.design.aggregate(other.ravel()), pattern.state, y=other.ravel()
    )
    same, moved = draw(Decimals(), pattern), draw(Decimals(), twin)
    np.testing.assert_allclose(same.y, moved.y, atol=1e-9)
    told = [draw(Decimals("none", modulo=10), each).y for each in (pattern, twin)]
    assert np.abs(told[0] - told[1]).max() > 0.1


def test_an_average_over_many_draws_leads_to_the_fit_and_not_to_the_truth():
    pattern = paper_pattern()
    mean = np.mean([draw(Decimals(), pattern, seed).y for seed in range(400)], axis=0)
    fitted = draw(Decimals("none"), pattern).y
    assert np.abs(mean - fitted).max() < 0.3
    assert np.abs(mean - INNER).max() > 4


def test_decimals_of_large_counts_are_never_whole_and_add_up():
    rng = np.random.default_rng(3)
    design = dc.Design.product({"row": 8, "col": 8}, "row*col")
    counts = rng.poisson(30, 64) * 10**6 + rng.integers(0, 10**6, 64)
    counts[[0, 9, 18, 27, 36]] = [1, 2, 3, 1, 2]
    table = dc.Table.from_inner(design, counts)
    method = dc.Suppress(dc.rules.Threshold(3), decimals=dc.suppress.Decimals())
    for seed in range(20):
        trial = table.simulate(method, seed=seed)
        decimal = trial.z[trial.replaced]
        assert (decimal != np.rint(decimal)).all()
        assert np.abs(design.aggregate(trial.y) - trial.z).max() < 1e-5
