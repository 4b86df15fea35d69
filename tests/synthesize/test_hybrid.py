"""Hybrid microdata against the R package, against the paper's steps one by one, and by laws."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import DataError, InfeasibleError, ParameterError
from discreet.synthesis import ipso
from discreet.synthesis.hybrid import hybrid
from tests.synthesize.cases import EXACT, NASTY, Recorded, assert_preserved, unit

GOLDEN = sorted(Path(__file__).parents[1].joinpath("golden").glob("regsdc_*n*.json"))


def stored(path):
    data = json.loads(path.read_text())
    n = len(data["y"])

    def matrix(name, constant=False):
        columns = np.empty((n, 0)) if data.get(name) is None else data[name]
        columns = np.array(columns, dtype=float).reshape(n, -1)
        return np.column_stack([np.ones(n), columns]) if constant else columns

    return data, matrix


def ours(call, data, matrix):
    Y, rng, clusters = matrix("y"), Recorded(matrix("yNew")), data["clusters"]
    if call == "hybrid_MHa":
        return hybrid(Y, matrix("x", True), None, clusters, rng=rng)
    if call == "hybrid_MHb":
        return hybrid(Y, matrix("x", True), None, None, pieces=clusters, rng=rng)
    if call == "hybrid_global_local":
        return hybrid(Y, matrix("x2", True), matrix("x"), clusters, rng=rng)
    X_A, X_B = matrix("x1", True), matrix("x2")
    if call == "hybrid_grouped":
        return hybrid(Y, X_A, X_B, clusters, groups=data["grouped_clusters"], rng=rng)
    variant = call.removeprefix("hybrid_local_global").removeprefix("_") or "main"
    return hybrid(Y, X_A, X_B, clusters, variant=variant, rng=rng)


CALLS = [
    pytest.param(path, call, id=f"{path.stem} {call}")
    for path in GOLDEN
    for call in json.loads(path.read_text())["outputs"]
    if call.startswith("hybrid")
]


@pytest.mark.parametrize(("path", "call"), CALLS)
def test_outputs_are_those_of_the_r_package(path, call):
    data, matrix = stored(path)
    expected = np.array(data["outputs"][call]).reshape(len(data["y"]), -1)
    assert np.abs(ours(call, data, matrix).Y - expected).max() < 1e-8 * np.abs(expected).max()


def test_a_wish_that_the_r_package_cannot_meet_names_the_eigenvalue_and_a_feasible_wish():
    path = next(path for path in GOLDEN if "n120" in path.stem)
    data, matrix = stored(path)
    with pytest.raises(InfeasibleError) as error:
        ours("hybrid_local_global_b", data, matrix)
    assert "in cluster 3" in str(error.value)
    assert "eigenvalue -0.0645" in str(error.value)
    alpha = ours("hybrid_local_global_c", data, matrix).details["alpha"]
    assert f"α = {alpha:.6g}" in str(error.value)
    numbers = np.abs(matrix("y")).ravel()
    assert not any(f"{number:g}" in str(error.value) for number in numbers[numbers > 1])


# --- the paper's steps, one by one, on matrices that are really crossed -------------------------


def crossed(X, labels):
    return np.hstack([X * (labels == label)[:, None] for label in np.unique(labels)])


def fit(A, X):
    return X @ np.linalg.lstsq(X, A, rcond=1e-10)[0] if X.shape[1] else np.zeros_like(A)


def gram_schmidt(A):
    Q, R = [], np.zeros((0, A.shape[1]))
    for column in A.T:
        rest = column.copy()
        for _ in range(2):
            rest -= sum((q * (q @ rest) for q in Q), np.zeros(len(rest)))
        if np.linalg.norm(rest) > 1e-7 * np.linalg.norm(column):
            Q.append(rest / np.linalg.norm(rest))
    Q = np.array(Q).reshape(-1, len(A)).T
    R = Q.T @ A
    return Q, R


def replaced(E, drawn, blocks):
    out = np.zeros_like(E)
    for label in np.unique(blocks):
        W, T = gram_schmidt(E[blocks == label])[1], gram_schmidt(drawn[blocks == label])[0]
        out[blocks == label] = T[:, : len(W)] @ W
    return out


def slow_parts(Y, X_1, X_B, X_B_local, clusters):
    """The four parts of equation (19)."""
    Y_1 = fit(Y, X_1)
    X_2 = X_B - fit(X_B, X_1)
    X_ext = crossed(X_B_local - fit(X_B_local, X_1), clusters)
    Y_2ext, Y_2 = fit(Y - Y_1, X_ext), fit(Y - Y_1, X_2)
    return Y_1, Y_2, Y_2ext - Y_2, Y - Y_1 - Y_2ext


def slow_hybrid(Y, Y_s, X_A, X_B, clusters, groups, pieces, variant):
    X_1 = crossed(X_A, clusters)
    if pieces is not None:
        X_1 = np.hstack([X_1, crossed(np.ones((len(Y), 1)), 1000 * clusters + pieces)])
    X_Bg = X_B if groups is None else crossed(X_B, groups)
    Y_1, Y_2, E_3, E_4 = slow_parts(Y, X_1, X_Bg, X_B, clusters)
    _, _, E_s3, E_s4 = slow_parts(Y_s, X_1, X_Bg, X_B, clusters)
    if variant == "a":
        return Y_1 + Y_2 + replaced(E_3 + E_4, E_s4, clusters)
    new_3 = replaced(E_3, E_s3, np.zeros(len(Y)))
    if variant == "main":
        return Y_1 + Y_2 + new_3 + replaced(E_4, E_s4, clusters)
    new_4 = np.zeros_like(Y)
    for label in np.unique(clusters):
        own = clusters == label
        rest = E_4[own].T @ E_4[own] + E_3[own].T @ E_3[own] - new_3[own].T @ new_3[own]
        new_4[own] = gram_schmidt(E_s4[own])[0] @ np.linalg.cholesky(rest).T
    return Y_1 + Y_2 + new_3 + new_4


def example(seed, n=160, c=6, k=3):
    rng = np.random.default_rng(seed)
    clusters = rng.integers(0, c, n)
    X_A = np.column_stack([np.ones(n), rng.normal(size=n)])
    X_B = np.column_stack([rng.normal(size=n), rng.integers(0, 2, n)])
    Y = X_A @ rng.normal(size=(2, k)) + X_B @ rng.normal(size=(2, k)) + rng.normal(size=(n, k))
    return Y * 10.0 ** rng.integers(-2, 4, k), X_A, X_B, clusters, rng


@pytest.mark.parametrize("variant", ["main", "a", "b"])
@pytest.mark.parametrize("has_pieces", [False, True])
@pytest.mark.parametrize("has_groups", [False, True])
def test_blocks_give_what_the_steps_give_on_crossed_matrices(variant, has_pieces, has_groups):
    Y, X_A, X_B, clusters, rng = example(7)
    groups = clusters // 2 if has_groups else None
    pieces = rng.integers(0, 3, len(Y)) if has_pieces else None
    Y_s = rng.normal(size=Y.shape)
    expected = slow_hybrid(Y, Y_s, X_A, X_B, clusters, groups, pieces, variant)
    found = hybrid(
        Y, X_A, X_B, clusters, groups=groups, pieces=pieces, variant=variant, rng=Recorded(Y_s)
    )
    np.testing.assert_allclose(unit(found.Y)[0], unit(expected)[0], atol=1e-11)


def test_a_part_of_the_shared_columns_can_be_crossed_with_groups():
    Y, X_A, X_B, clusters, rng = example(3)
    Y_s, groups = rng.normal(size=Y.shape), clusters % 3
    X_Bg = np.hstack([crossed(X_B[:, :1], groups), X_B[:, 1:]])
    parts = slow_parts(Y, crossed(X_A, clusters), X_Bg, X_B, clusters)
    drawn = slow_parts(Y_s, crossed(X_A, clusters), X_Bg, X_B, clusters)
    expected = parts[0] + parts[1] + replaced(parts[2], drawn[2], np.zeros(len(Y)))
    expected += replaced(parts[3], drawn[3], clusters)
    found = hybrid(
        Y, X_A, X_B[:, 1:], clusters, groups=groups, X_groups=X_B[:, :1], rng=Recorded(Y_s)
    )
    np.testing.assert_allclose(unit(found.Y)[0], unit(expected)[0], atol=1e-11)


def test_columns_can_be_crossed_with_pieces():
    Y, X_A, _, clusters, rng = example(4)
    pieces, Y_s = rng.integers(0, 2, len(Y)), rng.normal(size=Y.shape)
    found = hybrid(Y, None, None, clusters, pieces=pieces, X_pieces=X_A, rng=Recorded(Y_s))
    full = crossed(X_A, 10 * clusters + pieces)
    expected = fit(Y, full) + replaced(Y - fit(Y, full), Y_s - fit(Y_s, full), clusters)
    np.testing.assert_allclose(unit(found.Y)[0], unit(expected)[0], atol=1e-11)


# --- laws ---------------------------------------------------------------------------------------


def within(A, clusters):
    return np.array([A[clusters == label].T @ A[clusters == label] for label in set(clusters)])


def assert_same_within(A, B, clusters, scale):
    """Products within clusters are equal, relative to the lengths of the original columns."""
    A, B = A / scale, B / scale
    assert np.abs(within(A, clusters) - within(B, clusters)).max() < EXACT


@pytest.mark.parametrize("case", NASTY)
@pytest.mark.parametrize("count", [1, 3])
def test_nasty_inputs_keep_fits_and_products_within_clusters(case, count):
    rng = np.random.default_rng(5)
    Y, X = NASTY[case](rng)
    clusters = rng.integers(0, count, len(Y))
    found = hybrid(Y, X, None, clusters, rng=rng)
    for label in range(count):
        own = clusters == label
        assert_preserved(Y[own], X[own], found.Y[own])


@pytest.mark.parametrize("case", NASTY)
@pytest.mark.parametrize("variant", ["main", "c"])
def test_nasty_shared_columns_keep_their_fits(case, variant):
    rng = np.random.default_rng(6)
    Y, X = NASTY[case](rng)
    clusters = rng.integers(0, 2, len(Y))
    try:
        found = hybrid(Y, None, X, clusters, variant=variant, rng=rng)
    except InfeasibleError:
        assert variant == "c"
        assert case in {"few observations", "zero residuals"}
        return
    assert_preserved(Y, np.hstack([X, crossed(np.ones((len(Y), 1)), clusters)]), found.Y)


@pytest.mark.parametrize("case", NASTY)
@pytest.mark.parametrize("seed", [1, 2])
def test_nasty_inputs_keep_all_levels_at_once(case, seed):
    rng = np.random.default_rng(seed)
    Y, X = NASTY[case](rng)
    n, half = len(Y), X.shape[1] // 2
    clusters, pieces = rng.integers(0, 4, n), rng.integers(0, 2, n)
    labels = {"groups": clusters // 2, "pieces": pieces}
    parts = {"X_groups": X[:, half:], "X_pieces": X[:, :1]}
    found = hybrid(Y, X[:, :half], X, clusters, rng=rng, **labels, **parts).Y
    levels = [
        crossed(X[:, :1], 2 * clusters + pieces),
        crossed(X[:, :half], clusters),
        crossed(X[:, half:], clusters // 2),
        X,
    ]
    assert_preserved(Y, np.hstack(levels), found)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 40), st.integers(1, 4), st.booleans())
def test_clusters_of_any_size_keep_their_means_and_covariances(seed, n, c, shared):
    rng = np.random.default_rng(seed)
    Y, clusters = rng.normal(size=(n, 3)) + 5, rng.integers(0, c, n)
    X_B = rng.normal(size=(n, 2)) if shared else None
    found = hybrid(Y, None, X_B, clusters, rng=rng).Y
    indicators = crossed(np.ones((n, 1)), clusters)
    assert_preserved(Y, indicators if X_B is None else np.hstack([indicators, X_B]), found)
    if X_B is None:
        assert_same_within(Y, found, clusters, unit(Y)[1])


def residual_parts(Y, X_A, X_B, clusters):
    return slow_parts(Y, crossed(X_A, clusters), X_B, X_B, clusters)[2:]


def test_the_main_algorithm_keeps_the_last_residuals_within_and_the_others_over_all_rows():
    Y, X_A, X_B, clusters, rng = example(11)
    found = hybrid(Y, X_A, X_B, clusters, rng=rng).Y
    E, new = residual_parts(Y, X_A, X_B, clusters), residual_parts(found, X_A, X_B, clusters)
    scale = unit(Y)[1]
    assert_same_within(E[1], new[1], clusters, scale)
    assert_same_within(E[0], new[0], np.zeros(len(Y)), scale)
    changed = within(E[0] / scale, clusters) - within(new[0] / scale, clusters)
    assert np.abs(changed).max() > 1e-3


@pytest.mark.parametrize("variant", ["a", "b", "c"])
def test_variants_keep_all_residuals_within_clusters(variant):
    Y, X_A, X_B, clusters, rng = example(11)
    found = hybrid(Y, X_A, X_B, clusters, variant=variant, rng=rng).Y
    E, new = residual_parts(Y, X_A, X_B, clusters), residual_parts(found, X_A, X_B, clusters)
    assert_same_within(E[0] + E[1], new[0] + new[1], clusters, unit(Y)[1])
    assert np.abs(found - Y).max() > 1e-2


def test_under_variant_a_shared_coefficients_are_the_same_in_every_cluster():
    Y, X_A, X_B, clusters, rng = example(12)
    found = hybrid(Y, X_A, X_B, clusters, variant="a", rng=rng).Y
    X_2 = X_B - fit(X_B, crossed(X_A, clusters))
    coefficients = [
        np.linalg.lstsq(X_2[clusters == c], found[clusters == c], rcond=None)[0] for c in range(6)
    ]
    np.testing.assert_allclose(np.ptp(coefficients, axis=0) / unit(Y)[1], 0, atol=1e-9)


def test_no_larger_alpha_is_feasible():
    path = next(path for path in GOLDEN if "n120" in path.stem)
    data, matrix = stored(path)
    X_A, X_B, clusters = matrix("x1", True), matrix("x2"), np.array(data["clusters"])
    E = residual_parts(matrix("y"), X_A, X_B, clusters)
    drawn = residual_parts(matrix("yNew"), X_A, X_B, clusters)
    new = replaced(E[0], drawn[0], np.zeros(len(clusters)))
    alpha = ours("hybrid_local_global_c", data, matrix).details["alpha"]
    for factor, feasible in ((1.0, True), (1.001, False)):
        rest = within(E[0] + E[1], clusters) - (alpha * factor) ** 2 * within(new, clusters)
        assert (np.linalg.eigvalsh(rest).min() > -1e-9) == feasible


def test_one_cluster_is_ipso():
    Y, X_A, _, _, rng = example(2)
    Y_s = rng.normal(size=Y.shape)
    found = hybrid(Y, X_A, None, None, rng=Recorded(Y_s)).Y
    expected = ipso(Y, X_A, rng=Recorded(Y_s)).Y
    np.testing.assert_allclose(unit(found)[0], unit(expected)[0], atol=1e-12)


def test_zero_residuals_are_generalised_microaggregation():
    Y, X_A, X_B, clusters, _ = example(9)
    means = hybrid(Y, None, None, clusters, rng=None, residuals="zero").Y
    for label in range(6):
        own = clusters == label
        np.testing.assert_allclose(means[own], np.tile(Y[own].mean(axis=0), (own.sum(), 1)))
    fitted = hybrid(Y, X_A, X_B, clusters, rng=None, residuals="zero").Y
    expected = fit(Y, np.hstack([crossed(X_A, clusters), X_B]))
    np.testing.assert_allclose(unit(fitted)[0], unit(expected)[0], atol=1e-12)


def test_rows_can_come_in_any_order():
    Y, X_A, X_B, clusters, rng = example(13)
    order, Y_s = rng.permutation(len(Y)), rng.normal(size=Y.shape)
    found = hybrid(Y, X_A, X_B, clusters, rng=Recorded(Y_s)).Y
    moved = hybrid(Y[order], X_A[order], X_B[order], clusters[order], rng=Recorded(Y_s[order])).Y
    np.testing.assert_allclose(unit(moved)[0], unit(found[order])[0], atol=1e-12)


def test_many_clusters_are_worked_on_as_if_each_were_alone():
    rng = np.random.default_rng(21)
    n = 30_000
    Y, Y_s = rng.normal(size=(n, 2)) + 3, rng.normal(size=(n, 2))
    X = np.column_stack([np.ones(n), rng.normal(size=n)])
    clusters, pieces = rng.integers(0, 700, n) ** 2, rng.integers(0, 3, n)
    found = hybrid(Y, X, None, clusters, pieces=pieces, rng=Recorded(Y_s))
    assert len(found.details["residual_degrees"]) == len(found.details["clusters"]) == 700
    for label in (0, 1, 120**2, 350**2, 351**2, 699**2):
        own = clusters == label
        alone = hybrid(Y[own], X[own], None, None, pieces=pieces[own], rng=Recorded(Y_s[own]))
        np.testing.assert_allclose(found.Y[own], alone.Y, atol=1e-12)
        degrees = found.details["residual_degrees"][found.details["clusters"] == label]
        assert degrees == alone.details["residual_degrees"]


@pytest.mark.parametrize("kind", [np.int8, np.uint64, float, str, bool])
def test_labels_of_any_type_make_the_same_clusters(kind):
    Y, X_A, X_B, clusters, rng = example(13, n=200, c=2)
    clusters, Y_s = 1 - clusters, rng.normal(size=Y.shape)
    found = hybrid(Y, X_A, X_B, (clusters * 101).astype(kind), rng=Recorded(Y_s)).Y
    expected = hybrid(Y, X_A, X_B, clusters, rng=Recorded(Y_s)).Y
    np.testing.assert_allclose(unit(found)[0], unit(expected)[0], atol=1e-12)


def test_far_apart_numbers_are_labels_too():
    Y, X_A, _, clusters, rng = example(13)
    Y_s, far = rng.normal(size=Y.shape), np.array([-(2**63), -1, 0, 5, 2**62, 2**63 - 1])
    found = hybrid(Y, X_A, None, far[clusters], rng=Recorded(Y_s))
    expected = hybrid(Y, X_A, None, clusters, rng=Recorded(Y_s))
    np.testing.assert_array_equal(found.Y, expected.Y)
    np.testing.assert_array_equal(found.details["clusters"], far)


def test_no_rows_are_refused():
    with pytest.raises(DataError, match="no rows"):
        hybrid(np.empty((0, 2)), None, None, None, rng=np.random.default_rng(1))


def test_labels_may_be_text():
    Y, X_A, X_B, clusters, rng = example(13)
    Y_s, text = rng.normal(size=Y.shape), np.array(list("qwerty"))[clusters]
    found = hybrid(Y, X_A, X_B, text, rng=Recorded(Y_s)).Y
    expected = hybrid(Y, X_A, X_B, clusters, rng=Recorded(Y_s)).Y
    np.testing.assert_allclose(unit(found)[0], unit(expected)[0], atol=1e-12)


def test_what_was_found_is_told():
    Y, X_A, X_B, clusters, rng = example(1)
    details = hybrid(Y, X_A, X_B, clusters, rng=rng).details
    assert details["rank_X"] == 2 * 6 + 2
    np.testing.assert_array_equal(details["clusters"], np.arange(6))
    np.testing.assert_array_equal(details["residual_degrees"], np.bincount(clusters) - 4)


def test_too_few_dimensions_for_a_variant_are_an_error():
    rng = np.random.default_rng(0)
    Y, X_B = rng.normal(size=(20, 3)), rng.normal(size=(20, 3))
    clusters = np.repeat([0, 1, 2], [5, 5, 10])
    with pytest.raises(InfeasibleError, match="2 of 3 clusters.*cluster 0.*rank 3.*only 1 dim"):
        hybrid(Y, None, X_B, clusters, variant="a", rng=rng)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"variant": "d"}, "variant must be one of main, a, b, c, got 'd'"),
        ({"residuals": "none"}, "residuals must be 'synthetic' or 'zero'"),
        ({"groups": np.arange(160) % 2}, "lies in several groups"),
        ({"groups": [1, 2]}, "one label for each of the 160 rows"),
    ],
)
def test_wishes_that_make_no_sense_are_refused(options, text):
    Y, X_A, X_B, clusters, rng = example(1)
    with pytest.raises(ParameterError, match=text):
        hybrid(Y, X_A, X_B, clusters, rng=rng, **options)
