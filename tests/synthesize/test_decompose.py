"""Generalised QR, principal components and random scores."""

import numpy as np
import pytest

from discreet.errors import InfeasibleError, ParameterError
from discreet.randomness import stream
from discreet.synthesis import orthonormal as routes
from discreet.synthesis.decompose import DEPENDENT_RESIDUALS, fit, loadings, random_scores, scores
from discreet.synthesis.orthonormal import orthonormal
from tests.synthesize.cases import NASTY, near_duplicates, plain, unit


def gram_schmidt(A, tolerance):
    """Slow and obvious, in extended precision: column by column."""
    A = A.astype(np.longdouble)
    Q = []
    for column in A.T:
        new = column.copy()
        for _ in range(3):
            for q in Q:
                new -= q * (q @ new)
        if np.sqrt(new @ new) > tolerance * np.sqrt(column @ column):
            Q.append(new / np.sqrt(new @ new))
    Q = np.array(Q).reshape(len(Q), len(A)).T
    return Q, Q.T @ A


def dependent(rng, n=50):
    A = rng.normal(size=(n, 3))
    zero = np.zeros(n)
    return np.column_stack([zero, A[:, 0], 2 * A[:, 0], A[:, 1], A[:, 0] - A[:, 1], A[:, 2]])


def near(rng, n=50):
    A = rng.normal(size=(n, 4))
    A[:, 2] = A[:, 0] + 1e-5 * A[:, 2]
    return A


MATRICES = {
    "independent": lambda rng: rng.normal(size=(50, 4)),
    "dependent": dependent,
    "nearly dependent": near,
    "more columns than rows": lambda rng: rng.normal(size=(3, 5)),
    "several blocks": lambda rng: dependent(rng, 20_000),
    "wide range": lambda rng: rng.normal(size=(50, 3)) * [1e9, 1e-9, 1],
}
each_matrix = pytest.mark.parametrize("make", MATRICES.values(), ids=MATRICES)


@each_matrix
def test_generalised_qr_is_gram_schmidt(make):
    A = make(stream(1, "qr"))
    Q, R = orthonormal(A, 1e-7)
    slow_Q, slow_R = gram_schmidt(A, 1e-7)
    size = np.linalg.norm(A, axis=0)
    assert np.abs(Q - slow_Q).max() < 1e-9
    assert (np.abs(R - slow_R) <= 1e-10 * size).all()
    assert np.abs(Q.T @ Q - np.eye(Q.shape[1])).max() < 1e-14


@each_matrix
def test_both_routes_agree(make, monkeypatch):
    A = make(stream(2, "qr"))
    fast = orthonormal(A, 1e-7)
    monkeypatch.setattr(routes, "SAFE_PIVOT", np.inf)
    careful = orthonormal(A, 1e-7)
    assert np.abs(fast[0] - careful[0]).max() < 1e-9
    np.testing.assert_allclose(fast[1], careful[1], atol=1e-10 * np.linalg.norm(A, axis=0).max())


def test_well_separated_columns_take_the_fast_route(monkeypatch):
    def refused(*_):
        raise AssertionError

    monkeypatch.setattr(routes, "householder", refused)
    rng = stream(3, "qr")
    orthonormal(rng.normal(size=(50, 4)), 1e-7)
    with pytest.raises(AssertionError):
        orthonormal(dependent(rng), 1e-7)


@pytest.mark.parametrize("case", NASTY.values(), ids=NASTY)
@pytest.mark.parametrize("how", ["qr", "svd"])
def test_scores_times_loadings_are_the_residuals_column_by_column(case, how):
    Y, X = case(stream(4, "scores"))
    model = fit(Y, X)
    made = scores(model.residuals, how)
    _, size = unit(model.residuals)
    share = DEPENDENT_RESIDUALS if case is near_duplicates else 1e-12
    assert (np.abs(made.T @ made.W - model.residuals) <= share * size).all()
    assert np.abs(made.T.T @ made.T - np.eye(made.rank)).max(initial=0) < 1e-13
    assert np.abs(unit(X)[0].T @ made.T).max(initial=0) < 1e-11


def test_loadings_alone_are_those_of_the_scores():
    Y, X = NASTY["collinear y"](stream(5, "scores"))
    E = fit(Y, X).residuals
    np.testing.assert_allclose(loadings(E), scores(E).W, atol=1e-12)


def test_principal_components_are_those_of_a_plain_svd_with_positive_sums():
    Y, X = plain(stream(6, "scores"))
    E = fit(Y, X).residuals
    made = scores(E, "svd")
    sizes = np.linalg.svd(E, compute_uv=False)
    np.testing.assert_allclose(made.W @ made.W.T, np.diag(sizes**2), atol=1e-10)
    assert (made.W.sum(axis=1) > 0).all()


def test_fitted_values_and_rank_are_those_of_least_squares():
    Y, X = NASTY["collinear x"](stream(7, "fit"))
    model = fit(Y, X)
    np.testing.assert_allclose(
        model.Y - model.residuals,
        X @ np.linalg.lstsq(X, Y, rcond=None)[0],
        atol=1e-9 * np.abs(Y).max(),
    )
    assert model.rank == 4


def test_a_covariate_of_small_spread_beside_a_large_mean_is_still_preserved():
    rng = stream(8, "fit")
    X = np.column_stack([np.ones(40), 1e9 + rng.normal(size=40)])
    assert fit(rng.normal(size=(40, 2)), X).rank == 2


def test_residuals_of_rounding_alone_are_exactly_zero():
    Y, X = NASTY["zero residuals"](stream(9, "fit"))
    zero = ~fit(Y, X).residuals.any(axis=0)
    assert zero.tolist() == [True, False, True]


def test_random_scores_are_uniform_off_the_bases():
    rng = stream(10, "scores")
    n, r = 6, 2
    basis, _ = np.linalg.qr(rng.normal(size=(n, 2)))
    draws = [random_scores(rng, n, r, basis) for _ in range(20_000)]
    mean = np.mean([T @ T.T for T in draws], axis=0)
    off = np.eye(n) - basis @ basis.T
    assert np.abs(mean - off * r / (n - 2)).max() < 0.02
    assert np.abs(mean - np.eye(n) * r / n).max() > 0.02
    assert np.abs(np.mean(draws, axis=0)).max() < 0.02


def test_too_few_rows_are_refused_with_the_numbers():
    rng = stream(11, "scores")
    basis, _ = np.linalg.qr(rng.normal(size=(7, 5)))
    with pytest.raises(InfeasibleError, match=r"rank of X \+ 3 = 8 rows.* n = 7 .* X is 5"):
        random_scores(rng, 7, 3, basis)


def test_an_unknown_decomposition_is_refused():
    with pytest.raises(ParameterError, match="'qr' or 'svd', got 'lu'"):
        scores(np.ones((3, 1)), "lu")
