"""Sections 2 and 3: drawing residuals anew, and declared correlations with the original."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from discreet.errors import InfeasibleError
from discreet.synthesize.from_residuals import from_residuals
from discreet.synthesize.ipso import ipso
from discreet.synthesize.residual_correlation import residual_correlation
from discreet.synthesize.score_correlation import score_correlation
from discreet_studies.arrays import Matrix
from discreet_studies.chance import quantile
from discreet_studies.model import Finding
from discreet_studies.regression_microdata.judge import (
    EXACT,
    Businesses,
    correlations,
    exactly,
    fitted_values,
    gap,
    information_loss,
    replay,
    residuals,
    unit_scores,
)

WISH = (0.9, 0.5, 0.2)
SAME_WISH = 0.6


def section_2(data: Businesses, rng: np.random.Generator, draws: int) -> Iterator[Finding]:
    """Information preserving statistical obfuscation."""
    Y, X = data.Y, data.X
    drawn = rng.standard_normal(Y.shape)
    made = ipso(Y, X, rng=replay(drawn)).Y
    yield exactly(
        "Fitted values and the covariance matrix are preserved (2–4).",
        {"ipso": information_loss(Y, X, made)},
    )
    yield exactly(
        "The algorithm by the Cholesky decomposition gives the same data.",
        {"both algorithms": gap(_by_cholesky(Y, X, drawn), made)},
    )
    yield exactly(
        "With one variable, residuals of simulated data are scaled to the same sum of squares.",
        {"both": gap(_one_variable(Y[:, :1], X, drawn), ipso(Y[:, :1], X, rng=replay(drawn)).Y)},
    )
    yield _independence(data, rng, draws)


def _by_cholesky(Y: Matrix, X: Matrix, drawn: Matrix) -> Matrix:
    E, Es = residuals(Y, X), residuals(drawn, X)
    W, Ws = (np.linalg.cholesky(A.T @ A).T for A in (E, Es))
    return np.asarray(fitted_values(Y, X) + Es @ np.linalg.inv(Ws) @ W)


def _one_variable(y: Matrix, X: Matrix, drawn: Matrix) -> Matrix:
    e, es = residuals(y, X), residuals(drawn[:, :1], X)
    return np.asarray(fitted_values(y, X) + es * np.linalg.norm(e) / np.linalg.norm(es))


def _independence(data: Businesses, rng: np.random.Generator, draws: int) -> Finding:
    """A uniform direction in ν dimensions has squared correlation 1/ν with any other."""
    E = residuals(data.Y, data.X)
    freedom = len(E) - np.linalg.matrix_rank(data.X)
    found = np.array(
        [correlations(residuals(ipso(data.Y, data.X, rng=rng).Y, data.X), E) for _ in range(draws)]
    )
    scaled = np.concatenate([found * np.sqrt(freedom), (found**2 * freedom - 1) / np.sqrt(2)])
    z = np.abs(scaled.reshape(2, draws, -1).mean(axis=1)) * np.sqrt(draws)
    return Finding(
        "Original and generated data are independent, given what is preserved.",
        bool(z.max() < quantile(draws)),
        f"Correlations of residuals over {draws} draws: mean {found.mean():+.4f}, mean square "
        f"times degrees of freedom {(found**2).mean() * freedom:.3f}; {z.max():.1f} standard "
        "errors from 0 and 1 at most.",
    )


def section_3(data: Businesses, rng: np.random.Generator) -> Iterator[Finding]:
    """Arbitrary residual data with a synthetic addition."""
    yield _variables(data, rng)
    yield _components(data, rng)
    yield _same(data, rng)
    yield _keeping(data, rng)
    yield _rotation(data, rng)
    yield _largest(data, rng)
    yield _two_roots(data, rng)
    yield _addition(data, rng)


def _variables(data: Businesses, rng: np.random.Generator) -> Finding:
    Y, X = data.Y, data.X
    found = residual_correlation(Y, X, WISH, rng=rng, alpha="largest")
    reached = correlations(residuals(found.Y, X), residuals(Y, X))
    wished = float(found.details["alpha"]) * np.array(WISH)
    return exactly(
        "In (7) the correlation between original and generated residuals is controlled exactly.",
        {"correlations": gap(reached, wished), "information": information_loss(Y, X, found.Y)},
    )


def _components(data: Businesses, rng: np.random.Generator) -> Finding:
    Y, X = data.Y, data.X
    made = score_correlation(Y, X, WISH, rng=rng).Y
    T, W = unit_scores(residuals(Y, X))
    scores = residuals(made, X) @ np.linalg.inv(W)
    differences = {
        "correlations of scores": gap(correlations(scores, T), np.array(WISH)),
        "information": information_loss(Y, X, made),
    }
    text = "In (8) the correlation between original and generated score vectors is controlled "
    return exactly(f"{text}exactly.", differences)


def _same(data: Businesses, rng: np.random.Generator) -> Finding:
    drawn = rng.standard_normal(data.Y.shape)
    a = residual_correlation(data.Y, data.X, SAME_WISH, rng=replay(drawn)).Y
    b = score_correlation(data.Y, data.X, SAME_WISH, rng=replay(drawn)).Y
    return exactly(
        "If all diagonal elements of D are equal, (7) and (8) are equivalent.", {"both": gap(a, b)}
    )


def _keeping(data: Businesses, rng: np.random.Generator) -> Finding:
    Y, X = data.Y, data.X
    made = score_correlation(Y, X, (1, 0, 0), rng=rng, how="svd").Y
    T, s, Vt = np.linalg.svd(residuals(Y, X), full_matrices=False)
    scores = residuals(made, X) @ Vt.T / s
    differences = {
        "kept score": gap(scores[:, 0], T[:, 0]),
        "others, correlation": float(np.abs(T[:, 1:].T @ scores[:, 1:]).max()),
        "information": information_loss(Y, X, made),
    }
    return exactly(
        "With zeros and ones in (8) some principal components are kept and others are simulated.",
        differences,
    )


def _rotation(data: Businesses, rng: np.random.Generator) -> Finding:
    Y, X = data.Y, data.X
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    made = score_correlation(Y, X, WISH, rng=rng, rotation=turn).Y
    T, W = unit_scores(residuals(Y, X))
    scores = residuals(made, X) @ np.linalg.inv(W)
    found = [correlations(scores @ R, T @ R) for R in (turn, turn.T)]
    nearest = min(gap(each, np.array(WISH)) for each in found)
    return exactly(
        "Components may be rotated; the correlations are then those of rotated components.",
        {"correlations": nearest, "information": information_loss(Y, X, made)},
    )


def _largest(data: Businesses, rng: np.random.Generator) -> Finding:
    Y, X = data.Y, data.X
    E = residuals(Y, X)
    Eg = E * np.array(WISH)
    limit = float(np.sqrt(np.linalg.eigvals(E.T @ E @ np.linalg.inv(Eg.T @ Eg)).real.min()))
    told = float(
        residual_correlation(Y, X, WISH, rng=rng, alpha="largest").details["largest_alpha"]
    )
    beyond = _is_feasible(data, rng, limit * (1 + 1e-4))
    below = _is_feasible(data, rng, limit * (1 - 1e-4))
    return Finding(
        "The largest α is the root of the smallest eigenvalue of Ê'Ê(Eg'Eg)⁻¹; beyond it no "
        "solution exists.",
        bool(abs(told / limit - 1) < 1e-6 and below and not beyond and limit < 1),
        f"Limit {limit:.6f}, reported {told:.6f}; feasible below: {below}, above: {beyond}.",
    )


def _is_feasible(data: Businesses, rng: np.random.Generator, alpha: float) -> bool:
    try:
        made = residual_correlation(data.Y, data.X, WISH, rng=rng, alpha=alpha).Y
    except InfeasibleError:
        return False
    return information_loss(data.Y, data.X, made) <= EXACT


def _two_roots(data: Businesses, rng: np.random.Generator) -> Finding:
    Y, X = data.Y, data.X
    differences = {}
    for root in ("cholesky", "eigen"):
        made = residual_correlation(Y, X, WISH, rng=rng, alpha=0.3, root=root).Y
        reached = correlations(residuals(made, X), residuals(Y, X))
        gaps = information_loss(Y, X, made), gap(reached, 0.3 * np.array(WISH))
        differences[root] = max(gaps)
    return exactly("C may be found by the Cholesky or by the eigen decomposition.", differences)


def _addition(data: Businesses, rng: np.random.Generator) -> Finding:
    """Equation 6: the residuals of other data stay, and what is missing is added."""
    Y, X = data.Y, data.X
    other = 0.5 * Y + rng.standard_normal(Y.shape)
    made = from_residuals(Y, X, other, rng=rng, by="addition").Y
    added = residuals(made, X) - residuals(other, X)
    size = np.linalg.norm(residuals(other, X), axis=0) * np.linalg.norm(added, axis=0)
    differences = {
        "information": information_loss(Y, X, made),
        "addition along the residuals": float(
            np.abs(residuals(other, X).T @ added / size[:, None]).max()
        ),
    }
    text = "Residuals of arbitrary data with a synthetic addition preserve the information (5, 6)."
    return exactly(text, differences)
