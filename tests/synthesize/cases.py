"""Inputs named by what makes them hard, what must hold of every result, and recorded draws."""

import numpy as np

EXACT = 1e-10


class Recorded:
    """A generator that hands out the columns of a given matrix as its standard normal draws."""

    def __init__(self, draws):
        self.draws = np.asarray(draws, dtype=float)

    def standard_normal(self, shape):
        assert shape[0] == len(self.draws)
        return self.draws[:, : shape[1]].copy()


def plain(rng, n=60, k=3, m=4):
    X = np.column_stack([np.ones(n), rng.normal(size=(n, m - 1))])
    Y = X @ rng.normal(size=(m, k)) + rng.normal(size=(n, k)) @ rng.normal(size=(k, k))
    return Y, X


def collinear_x(rng):
    Y, X = plain(rng)
    return Y, np.column_stack([X, X[:, 1] + X[:, 2], 3 * X[:, 0], X[:, 1] / 3 - X[:, 3] * 7e5])


def nearly_collinear_x(rng):
    Y, X = plain(rng)
    return Y, np.column_stack([X, X[:, 1] + 1e-9 * rng.normal(size=len(X))])


def collinear_y(rng):
    Y, X = plain(rng)
    return np.column_stack([Y[:, 0], 2 * Y[:, 0] - X[:, 1], Y[:, 1], Y[:, 0] + Y[:, 1], Y[:, 2]]), X


def constant_columns(rng):
    Y, X = plain(rng)
    return np.column_stack([np.full(len(Y), 7.1), Y, np.zeros(len(Y))]), np.column_stack(
        [X, X[:, 0]]
    )


def zero_residuals(rng):
    Y, X = plain(rng)
    return np.column_stack([X @ [1, 2, 3, 0.1], Y[:, 0], X[:, 1] / 3]), X


def all_residuals_zero(rng):
    _, X = plain(rng)
    return X @ rng.normal(size=(4, 2)), X


def far_scales(rng):
    Y, X = plain(rng, k=4)
    return Y * [1e9, 1e-3, 1, 1e-9], X * [1, 1e9, 1e-3, 1e-12]


def large_means(rng):
    Y, X = plain(rng)
    return Y + [1e9, -1e6, 1e3], X + [0, 1e9, 1e5, 0]


def beyond_squares(rng):
    Y, X = plain(rng)
    return Y * [1e170, 1e-170, 1], X * [1, 1e170, 1e-170, 1]


def near_duplicates(rng):
    a, noise = rng.normal(size=60), rng.normal(size=(60, 2))
    return np.column_stack([a, a + 1e-8 * noise[:, 0], a + 1e-5 * noise[:, 1]]), np.ones((60, 1))


def polynomial_of_years(rng):
    Y, _ = plain(rng, n=600)
    return Y, np.vander(np.linspace(2000, 2026, 600), 6)


def hilbert(rng):
    Y, _ = plain(rng)
    return Y, 1 / (np.arange(60)[:, None] + np.arange(1, 16))


def saturated(rng):
    return rng.normal(size=(4, 2)), rng.normal(size=(4, 9))


def few_observations(rng):
    return plain(rng, n=13, k=4, m=5)


def no_covariates(rng):
    Y, _ = plain(rng)
    return Y, np.ones((len(Y), 1))


def one_variable(rng):
    return plain(rng, n=20, k=1, m=2)


def empty_x(rng):
    Y, _ = plain(rng)
    return Y, np.zeros((len(Y), 0))


def many_rows(rng):
    return plain(rng, n=20_001, k=5, m=6)


def skewed(rng):
    n = 300
    region = np.eye(5)[rng.integers(0, 5, n)]
    X = np.column_stack([np.ones(n), region, rng.lognormal(size=n) * 1e4])
    return np.exp(rng.normal(size=(n, 3)) * 3 + 8), X


NASTY = {
    case.__name__.replace("_", " "): case
    for case in (
        plain,
        collinear_x,
        nearly_collinear_x,
        collinear_y,
        constant_columns,
        zero_residuals,
        all_residuals_zero,
        far_scales,
        large_means,
        beyond_squares,
        near_duplicates,
        polynomial_of_years,
        hilbert,
        saturated,
        few_observations,
        no_covariates,
        one_variable,
        empty_x,
        many_rows,
        skewed,
    )
}


def unit(A):
    """Columns scaled to length one, first by their largest entry so that squares stay finite."""
    top = np.abs(A).max(axis=0, initial=0)
    A = A / np.where(top > 0, top, 1)
    length = np.linalg.norm(A, axis=0)
    return A / np.where(length > 0, length, 1), top * length


def assert_preserved(Y, X, synthetic, exact=EXACT):
    """Fits and second moments are those of the original, relative to the columns' lengths."""
    Y1, length = unit(np.asarray(Y, dtype=float))
    X1, _ = unit(X)
    Ys = synthetic / np.where(length > 0, length, 1)
    assert synthetic.shape == Y.shape
    assert np.abs(X1.T @ Ys - X1.T @ Y1).max(initial=0) < exact
    assert np.abs(Ys.T @ Ys - Y1.T @ Y1).max(initial=0) < exact


def correlation(a, b):
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))
