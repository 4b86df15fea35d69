"""What every synthesizing method promises, on random and on nasty inputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import DataError, ParameterError
from discreet.randomness import stream
from discreet.synthesis import from_residuals, ipso, residual_correlation, romm, score_correlation
from tests.synthesize.cases import NASTY, Recorded, assert_preserved, plain

METHODS = {
    "ipso": ipso,
    "residual correlation": lambda Y, X, rng: residual_correlation(
        Y, X, np.linspace(0.2, 0.7, Y.shape[1]), rng=rng, alpha="largest"
    ),
    "residual correlation, eigen": lambda Y, X, rng: residual_correlation(
        Y, X, np.linspace(0.7, 0.0, Y.shape[1]), rng=rng, alpha="largest", root="eigen"
    ),
    "score correlation": lambda Y, X, rng: score_correlation(Y, X, 0.6, rng=rng),
    "score correlation, svd": lambda Y, X, rng: score_correlation(Y, X, 0.0, rng=rng, how="svd"),
    "redrawn, varimax": lambda Y, X, rng: score_correlation(
        Y, X, "redraw", rng=rng, how="svd", rotation="varimax"
    ),
    "mixture, scores": lambda Y, X, rng: from_residuals(Y, X, share=0.8, rng=rng),
    "mixture, svd": lambda Y, X, rng: from_residuals(Y, X, share=0.5, rng=rng, how="svd"),
    "mixture, addition": lambda Y, X, rng: from_residuals(
        Y, X, share=0.5, rng=rng, by="addition", alpha="largest"
    ),
    "romm": lambda Y, X, rng: romm(Y, X, 0.3, rng=rng),
    "romm, svd": lambda Y, X, rng: romm(Y, X, 3.0, rng=rng, how="svd"),
}
each_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
each_case = pytest.mark.parametrize("case", NASTY.values(), ids=NASTY)


@each_method
@each_case
def test_fits_and_second_moments_are_exact(method, case):
    rng = stream(1, case.__name__)
    Y, X = case(rng)
    before = Y.copy(), X.copy()
    assert_preserved(Y, X, method(Y, X, rng=rng).Y)
    assert (before[0] == Y).all()
    assert (before[1] == X).all()


@each_method
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    k=st.integers(1, 5),
    m=st.integers(1, 6),
    spare=st.integers(0, 30),
    powers=st.integers(0, 9),
)
def test_fits_and_second_moments_are_exact_on_random_shapes(method, seed, k, m, spare, powers):
    rng = np.random.default_rng(seed)
    Y, X = plain(rng, n=m + 2 * k + spare, k=k, m=m)
    Y *= 10.0 ** rng.integers(-powers, powers + 1, k)
    X[:, 1:] *= 10.0 ** rng.integers(-powers, powers + 1, m - 1)
    assert_preserved(Y, X, method(Y, X, rng=rng).Y)


@each_method
def test_residual_covariances_are_exact_on_the_scale_of_residuals(method):
    rng = stream(3, "residuals")
    Y, X = plain(rng, n=500)
    synthetic = method(Y + 1e4 * X[:, [0]], X, rng=rng).Y - 1e4 * X[:, [0]]
    old, new = (A - X @ np.linalg.lstsq(X, A, rcond=None)[0] for A in (Y, synthetic))
    np.testing.assert_allclose(new.T @ new, old.T @ old, rtol=1e-9, atol=1e-9 * (old**2).sum())


@each_method
def test_permuted_rows_give_permuted_results(method):
    rng = stream(4, "permute")
    Y, X = plain(rng)
    draws = rng.normal(size=(len(Y), 6))
    order = rng.permutation(len(Y))
    straight = method(Y, X, rng=Recorded(draws)).Y
    permuted = method(Y[order], X[order], rng=Recorded(draws[order])).Y
    np.testing.assert_allclose(permuted, straight[order], atol=1e-9)


@each_method
def test_another_basis_of_the_same_fits_gives_the_same_result(method):
    rng = stream(5, "basis")
    Y, X = plain(rng)
    draws = rng.normal(size=(len(Y), 6))
    straight = method(Y, X, rng=Recorded(draws)).Y
    turned = method(Y, X[:, ::-1] @ rng.normal(size=(4, 7)), rng=Recorded(draws)).Y
    np.testing.assert_allclose(turned, straight, atol=1e-9)


@each_method
def test_order_of_memory_and_whole_numbers_do_not_matter(method):
    rng = stream(6, "memory")
    Y = rng.integers(0, 1000, (50, 3))
    X = np.column_stack([np.ones(50, dtype=int), rng.integers(0, 9, 50)])
    draws = rng.normal(size=(50, 6))
    straight = method(Y, X, rng=Recorded(draws)).Y
    other = np.asfortranarray(Y, dtype=float), np.asfortranarray(X, dtype=float)
    np.testing.assert_allclose(method(*other, rng=Recorded(draws)).Y, straight, atol=1e-9)


@each_method
def test_missing_values_and_unequal_rows_are_refused(method):
    rng = stream(7, "missing")
    Y, X = plain(rng)
    with pytest.raises(ParameterError, match="Y has 59, X has 60"):
        method(Y[1:], X, rng=rng)
    with pytest.raises(DataError, match="there are no rows"):
        method(Y[:0], X[:0], rng=rng)
    Y[3, 1] = np.nan
    with pytest.raises(DataError, match="column 1 of Y holds missing or infinite"):
        method(Y, X, rng=rng)


def without_projection(Y, X, rng):
    T, _ = np.linalg.qr(rng.normal(size=Y.shape))
    E = Y - X @ np.linalg.lstsq(X, Y, rcond=None)[0]
    return Y - E + T @ np.linalg.qr(E)[1]


def without_orthogonal_scores(Y, X, rng):
    E = Y - X @ np.linalg.lstsq(X, Y, rcond=None)[0]
    S = rng.normal(size=Y.shape)
    S -= X @ np.linalg.lstsq(X, S, rcond=None)[0]
    return Y - E + S / np.linalg.norm(S, axis=0) * np.linalg.norm(E, axis=0)


def slightly_scaled(Y, X, rng):
    return ipso(Y, X, rng=rng).Y * (1 + 1e-9)


def one_value_moved(Y, X, rng):
    synthetic = ipso(Y, X, rng=rng).Y
    synthetic[0, 0] *= 1 + 1e-7
    return synthetic


@pytest.mark.parametrize(
    "fault", [without_projection, without_orthogonal_scores, slightly_scaled, one_value_moved]
)
def test_planted_faults_are_caught(fault):
    rng = stream(8, "fault")
    Y, X = plain(rng)
    with pytest.raises(AssertionError):
        assert_preserved(Y, X, fault(Y, X, rng))
