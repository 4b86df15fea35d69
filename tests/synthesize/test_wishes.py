"""Declared correlations are exact; wishes that cannot be met are refused with the nearest one."""

import numpy as np
import pytest

from discreet.errors import InfeasibleError, ParameterError
from discreet.randomness import stream
from discreet.synthesis import from_residuals, ipso, residual_correlation, score_correlation
from discreet.synthesis.decompose import fit, rotate, scores, varimax
from tests.synthesize.cases import Recorded, assert_preserved, collinear_y, correlation, plain


def residuals(Y, X):
    return fit(Y, X).residuals


def modest(rng, n=60):
    """Variables so little correlated that many wishes are feasible."""
    X = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    return rng.normal(size=(n, 3)), X


@pytest.mark.parametrize("root", ["cholesky", "eigen"])
def test_residuals_correlate_as_declared(root):
    rng = stream(1, "wishes")
    Y, X = modest(rng)
    wish = [0.3, 0.0, 0.6]
    made = residual_correlation(Y, X, wish, rng=rng, root=root)
    old, new = residuals(Y, X), residuals(made.Y, X)
    reached = [correlation(old[:, i], new[:, i]) for i in range(3)]
    np.testing.assert_allclose(reached, wish, atol=1e-12)
    assert made.details["alpha"] == 1
    assert made.details["largest_alpha"] > 1


@pytest.mark.parametrize("how", ["qr", "svd"])
@pytest.mark.parametrize("rotation", [None, "varimax"])
def test_components_correlate_as_declared(how, rotation):
    rng = stream(2, "wishes")
    Y, X = plain(rng)
    made = score_correlation(Y, X, [0.9, "keep", 0.2], rng=rng, how=how, rotation=rotation)
    old = scores(residuals(Y, X), how)
    if rotation:
        old = rotate(old, rotation)
    new = np.linalg.solve(old.W.T, residuals(made.Y, X).T).T
    np.testing.assert_allclose(np.diag(old.T.T @ new), [0.9, 1, 0.2], atol=1e-12)


def test_a_redrawn_component_saves_dimensions():
    rng = stream(3, "wishes")
    Y, X = plain(rng, n=11, k=4, m=5)
    wish = ["keep", 0.5, "redraw", "redraw"]
    assert_preserved(Y, X, score_correlation(Y, X, [*wish[:2], "keep", "keep"], rng=rng).Y)
    assert_preserved(Y, X, score_correlation(Y, X, wish, rng=rng).Y)
    with pytest.raises(InfeasibleError, match=r"n = 11 rows"):
        score_correlation(Y, X, ["keep", 0.5, 0.0, 0.0], rng=rng)


def test_equal_numbers_make_both_methods_the_same():
    rng = stream(4, "wishes")
    Y, X = plain(rng)
    draws = rng.normal(size=Y.shape)
    by_residuals = residual_correlation(Y, X, 0.7, rng=Recorded(draws)).Y
    by_scores = score_correlation(Y, X, 0.7, rng=Recorded(draws)).Y
    np.testing.assert_allclose(by_residuals, by_scores, atol=1e-10)


def test_kept_variables_are_as_if_they_were_covariates():
    rng = stream(5, "wishes")
    Y, X = plain(rng)
    draws = rng.normal(size=(len(Y), 2))
    kept = score_correlation(Y, X, ["keep", "redraw", "redraw"], rng=Recorded(draws)).Y
    as_covariate = ipso(Y[:, 1:], np.hstack([X, Y[:, :1]]), rng=Recorded(draws)).Y
    np.testing.assert_allclose(kept[:, 0], Y[:, 0], atol=1e-12)
    np.testing.assert_allclose(kept[:, 1:], as_covariate, atol=1e-10)


@pytest.mark.parametrize("method", [residual_correlation, score_correlation])
def test_full_correlation_returns_the_original(method):
    rng = stream(6, "wishes")
    Y, X = plain(rng)
    np.testing.assert_allclose(method(Y, X, 1.0, rng=rng).Y, Y, atol=1e-11)


def test_the_largest_alpha_is_the_limit_of_the_definition():
    rng = stream(7, "wishes")
    Y, X = plain(rng)
    E = residuals(Y, X)
    d = np.array([0.9, 0.5, 0.2])
    S, G = E.T @ E, (E * d).T @ (E * d)
    limit = np.sqrt(np.linalg.eigvals(S @ np.linalg.inv(G)).real.min())
    made = residual_correlation(Y, X, d, rng=rng, alpha="largest")
    assert made.details["largest_alpha"] == pytest.approx(limit, rel=1e-9)
    assert made.details["alpha"] == pytest.approx(limit, rel=2e-7)
    assert np.linalg.eigvalsh(S - made.details["alpha"] ** 2 * G).min() > 0
    new = residuals(made.Y, X)
    reached = [correlation(E[:, i], new[:, i]) for i in range(3)]
    np.testing.assert_allclose(reached, made.details["correlations"], atol=1e-11)


def test_an_infeasible_wish_names_the_binding_eigenvalue_and_the_nearest_wish():
    rng = stream(8, "wishes")
    Y, X = plain(rng)
    d = np.array([0.95, 0.1, 0.6])
    nearest = residual_correlation(Y, X, d, rng=rng, alpha="largest").details
    assert nearest["alpha"] < 1
    with pytest.raises(InfeasibleError) as caught:
        residual_correlation(Y, X, d, rng=rng)
    text = str(caught.value)
    assert f"{1 - nearest['largest_alpha'] ** -2:.6g}" in text
    assert f"{nearest['alpha']:.10g}" in text
    assert ", ".join(f"{v:.6g}" for v in nearest["correlations"]) in text
    assert_preserved(Y, X, residual_correlation(Y, X, nearest["correlations"], rng=rng).Y)


def test_dependent_variables_with_unequal_wishes_leave_no_room():
    rng = stream(9, "wishes")
    Y, X = collinear_y(rng)
    wish = [0.1, 0.2, 0.3, 0.4, 0.5]
    with pytest.raises(
        InfeasibleError, match=r"depend on each other .* nearest feasible alpha is 0"
    ):
        residual_correlation(Y, X, wish, rng=rng)
    assert residual_correlation(Y, X, wish, rng=rng, alpha="largest").details["alpha"] == 0
    assert_preserved(Y, X, residual_correlation(Y, X, 0.4, rng=rng).Y)


def test_correction_by_scores_stays_close_to_nearly_right_data():
    rng = stream(10, "wishes")
    Y, X = plain(rng, n=200)
    other = ipso(Y, X, rng=rng).Y
    other += 1e-4 * rng.normal(size=Y.shape)
    corrected = from_residuals(Y, X, other, rng=rng).Y
    assert_preserved(Y, X, corrected)
    assert np.abs(corrected - other).max() < 1e-2


def test_correction_by_addition_keeps_the_other_residuals():
    rng = stream(11, "wishes")
    Y, X = modest(rng)
    other = 0.3 * rng.normal(size=Y.shape)
    made = from_residuals(Y, X, other, rng=rng, by="addition")
    assert_preserved(Y, X, made.Y)
    Eg = residuals(other, X)
    rest = residuals(made.Y, X) - Eg
    assert np.abs(Eg.T @ rest).max() < 1e-12
    with pytest.raises(InfeasibleError, match="alpha = 1 takes up more variance than there is"):
        from_residuals(Y, X, 100 * other, rng=rng, by="addition")


def test_a_full_share_of_the_original_is_the_original():
    rng = stream(12, "wishes")
    Y, X = plain(rng)
    np.testing.assert_allclose(from_residuals(Y, X, share=1, rng=rng).Y, Y, atol=1e-12)


def test_other_data_with_too_few_components_are_refused():
    rng = stream(13, "wishes")
    Y, X = plain(rng)
    flat = np.column_stack([Y[:, 0], Y[:, 0], Y[:, 1]])
    with pytest.raises(InfeasibleError, match="have 2 independent components, but 3 are needed"):
        from_residuals(Y, X, flat, rng=rng)


def test_varimax_turns_mixed_loadings_back_to_simple_ones():
    rng = stream(14, "wishes")
    simple = np.kron(np.eye(3), np.ones((4, 1)))
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    found = np.abs(simple @ turn @ varimax(simple @ turn))
    np.testing.assert_allclose(np.sort(found, axis=1), np.sort(simple, axis=1), atol=1e-6)


BAD = {
    "three numbers wanted": (
        lambda Y, X, rng: residual_correlation(Y, X, [0.5, 0.5], rng=rng),
        "3 v",
    ),
    "above one": (lambda Y, X, rng: residual_correlation(Y, X, 1.2, rng=rng), r"in \[0, 1\]"),
    "unknown word": (lambda Y, X, rng: score_correlation(Y, X, "hold", rng=rng), "got 'hold'"),
    "wrong count": (lambda Y, X, rng: score_correlation(Y, X, [1.0], rng=rng), "3 components"),
    "no rotation": (
        lambda Y, X, rng: score_correlation(Y, X, 0.5, rng=rng, rotation=np.ones((3, 3))),
        "orthogonal matrix with 3 rows",
    ),
    "unknown rotation": (
        lambda Y, X, rng: score_correlation(Y, X, 0.5, rng=rng, rotation="quartimax"),
        "got 'quartimax'",
    ),
    "unknown root": (
        lambda Y, X, rng: residual_correlation(Y, X, 0.5, rng=rng, root="lu"),
        "got 'lu'",
    ),
    "alpha": (lambda Y, X, rng: residual_correlation(Y, X, 0.5, rng=rng, alpha=2), "alpha must"),
    "neither": (lambda Y, X, rng: from_residuals(Y, X, rng=rng), "either the data"),
    "columns": (lambda Y, X, rng: from_residuals(Y, X, Y[:, :2], rng=rng), "2 columns, expected 3"),
    "by": (lambda Y, X, rng: from_residuals(Y, X, Y, rng=rng, by="luck"), "got 'luck'"),
}


@pytest.mark.parametrize(("call", "text"), BAD.values(), ids=BAD)
def test_wrong_options_are_refused(call, text):
    rng = stream(15, "wishes")
    with pytest.raises(ParameterError, match=text):
        call(*plain(rng), rng)
