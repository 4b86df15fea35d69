"""ROMM against the explicit n×n orthogonal matrix, equations (14) to (16)."""

import numpy as np
import pytest

from discreet.errors import ParameterError
from discreet.randomness import stream
from discreet.synthesis import ipso, romm
from discreet.synthesis.decompose import fit, scores
from discreet.synthesis.methods import romm_matrix
from tests.synthesize.cases import Recorded, correlation, plain


def completed(A):
    """An orthogonal n×n matrix that begins with the orthonormal columns of `A`."""
    n, r = A.shape
    complement = np.linalg.svd(A.T)[2][r:].T
    assert complement.shape == (n, n - r)
    return np.hstack([A, complement])


def positive_qr(A):
    Q, R = np.linalg.qr(A)
    return Q * np.sign(np.diag(R))


def explicit(Y, X, lambda_, draws, rng):
    """Equations (14) and (15), with P* from I + λH where H holds the draws in the basis U_E."""
    model = fit(Y, X)
    T = scores(model.residuals).T
    r, m = T.shape[1], model.rank
    U = completed(np.hstack([model.basis, T]))
    U_X, U_E = U[:, :m], U[:, m:]
    H = rng.normal(size=(len(Y) - m, len(Y) - m))
    H[:, :r] = U_E.T @ draws
    P = positive_qr(np.eye(len(H)) + lambda_ * H)
    return U_X @ U_X.T + U_E @ P @ U_E.T


@pytest.mark.parametrize("lambda_", [0.0, 0.01, 0.5, 3.0, 1e6])
def test_scores_give_what_the_orthogonal_matrix_gives(lambda_):
    rng = stream(1, "romm")
    Y, X = plain(rng, n=30)
    draws = rng.normal(size=Y.shape)
    M = explicit(Y, X, lambda_, draws, rng)
    np.testing.assert_allclose(M.T @ M, np.eye(30), atol=1e-12)
    np.testing.assert_allclose(M @ X, X, atol=1e-12)
    synthetic = romm(Y, X, lambda_, rng=Recorded(draws)).Y
    np.testing.assert_allclose(synthetic, M @ Y, atol=1e-10)


def test_every_result_is_an_orthogonal_matrix_times_the_original():
    rng = stream(2, "romm")
    Y, X = plain(rng, n=30)
    synthetic = ipso(Y, X, rng=rng).Y
    model = fit(Y, X)
    old, fitted = scores(model.residuals), Y - model.residuals
    new = np.linalg.lstsq(old.W.T, (synthetic - fitted).T, rcond=None)[0].T
    M = completed(np.hstack([model.basis, new])) @ completed(np.hstack([model.basis, old.T])).T
    np.testing.assert_allclose(M.T @ M, np.eye(30), atol=1e-12)
    np.testing.assert_allclose(M @ Y, synthetic, atol=1e-11)


def test_without_noise_the_original_comes_back():
    rng = stream(3, "romm")
    Y, X = plain(rng)
    np.testing.assert_allclose(romm(Y, X, 0, rng=rng).Y, Y, atol=1e-12)


def test_large_noise_gives_ipso():
    rng = stream(4, "romm")
    Y, X = plain(rng)
    draws = rng.normal(size=Y.shape)
    far = romm(Y, X, 1e9, rng=Recorded(draws)).Y
    np.testing.assert_allclose(far, ipso(Y, X, rng=Recorded(draws)).Y, atol=1e-6)


def test_similarity_decreases_from_the_first_score_to_the_last():
    rng = stream(5, "romm")
    Y, X = plain(rng, n=6, k=4, m=1)
    T = scores(fit(Y, X).residuals).T
    alike = np.zeros(4)
    for _ in range(2000):
        new = scores(fit(romm(Y, X, 0.5, rng=rng).Y, X).residuals).T
        alike += [correlation(T[:, i], new[:, i]) for i in range(4)]
    assert (np.diff(alike) < 0).all()


@pytest.mark.parametrize("basis", ["scores", "random"])
@pytest.mark.parametrize("how", ["qr", "svd"])
def test_the_matrix_itself_gives_the_values_of_the_same_draws(basis, how):
    Y, X = plain(stream(7, "romm"), n=30)
    options = {"how": how, "basis": basis}
    M = romm_matrix(Y, X, 0.4, rng=stream(8, "romm"), **options)
    np.testing.assert_allclose(M.T @ M, np.eye(30), atol=1e-12)
    np.testing.assert_allclose(M @ X, X, atol=1e-12)
    synthetic = romm(Y, X, 0.4, rng=stream(8, "romm"), **options).Y
    np.testing.assert_allclose(M @ Y, synthetic, atol=1e-10)
    # Whoever has the matrix has the original: it is confidential.
    np.testing.assert_allclose(M.T @ synthetic, Y, atol=1e-10)


@pytest.mark.parametrize(("basis", "spread"), [("scores", 0.07), ("random", 0.0)])
def test_a_random_basis_takes_the_sequential_effect_away(basis, spread):
    rng = stream(9, "romm")
    Y, X = plain(rng, n=6, k=4, m=1)
    T = scores(fit(Y, X).residuals).T
    alike = np.zeros(4)
    for _ in range(1500):
        synthetic = romm(Y, X, 0.5, rng=rng, basis=basis).Y
        new = scores(fit(Y, X).residuals)
        rotated = np.linalg.lstsq(new.W.T, (synthetic - Y + fit(Y, X).residuals).T, rcond=None)[0].T
        alike += np.einsum("ij,ij->j", T, rotated) / 1500
    if spread:
        assert alike[0] - alike[-1] > spread
    else:
        assert np.ptp(alike) < 0.04
        assert alike.min() > 0.3


def test_a_basis_of_another_name_and_a_large_matrix_are_refused():
    rng = stream(10, "romm")
    with pytest.raises(ParameterError, match="basis must be"):
        romm(*plain(rng), 0.5, rng=rng, basis="mixed")
    Y = rng.normal(size=(4001, 1))
    with pytest.raises(ParameterError, match="at most 4,000"):
        romm_matrix(Y, np.ones((4001, 1)), 0.5, rng=rng)


@pytest.mark.parametrize("lambda_", [-1, np.nan, np.inf])
def test_noise_of_no_size_is_refused(lambda_):
    rng = stream(6, "romm")
    with pytest.raises(ParameterError, match="lambda must be a number of at least 0"):
        romm(*plain(rng), lambda_, rng=rng)
