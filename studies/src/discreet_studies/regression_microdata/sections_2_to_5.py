"""Sections 2 to 5: residuals drawn anew, declared correlations, scores, orthogonal matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from discreet.arrays import Real
from discreet.errors import InfeasibleError
from discreet.synthesis.methods import (
    from_residuals,
    ipso,
    residual_correlation,
    romm,
    score_correlation,
)
from discreet_studies.chance import orders, quantile
from discreet_studies.model import Finding
from discreet_studies.regression_microdata.judge import (
    EXACT,
    Businesses,
    complement,
    correlations,
    exactly,
    fitted_values,
    gap,
    information_loss,
    many_amounts,
    replay,
    residuals,
    unit_scores,
)

WISH = (0.9, 0.5, 0.2)
SAME_WISH = 0.6
LAMBDAS = (0.01, 0.03, 0.1, 0.3, 1.0)
WATCHED = 0.1
_NEAR = (1e-1, 1e-2, 1e-3)


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


def _by_cholesky(Y: Real, X: Real, drawn: Real) -> Real:
    E, Es = residuals(Y, X), residuals(drawn, X)
    W, Ws = (np.linalg.cholesky(A.T @ A).T for A in (E, Es))
    return np.asarray(fitted_values(Y, X) + Es @ np.linalg.inv(Ws) @ W)


def _one_variable(y: Real, X: Real, drawn: Real) -> Real:
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


@dataclass(frozen=True, eq=False)
class Similarity:
    """Mean correlations of components with their originals, by λ.

    Attributes:
      found: For each draw the first, the middle and the last of the components, taken together.
    """

    found: dict[float, Real]


THIRDS = ("first", "middle", "last")


def similarity(rng: np.random.Generator, draws: int) -> Similarity:
    """How near random orthogonal matrix masking stays to early and late components."""
    Y = many_amounts(rng)
    X = np.ones((len(Y), 1))
    T, W = unit_scores(residuals(Y, X))
    back = np.linalg.inv(W)
    found = {}
    for size in LAMBDAS:
        made = (romm(Y, X, size, rng=rng).Y for _ in range(draws))
        kept = np.array([((residuals(each, X) @ back) * T).sum(axis=0) for each in made])
        thirds = np.array_split(kept, len(THIRDS), axis=1)
        found[size] = np.column_stack([third.mean(axis=1) for third in thirds])
    return Similarity(found)


def section_4(data: Businesses, rng: np.random.Generator) -> Iterator[Finding]:
    """Using scores from arbitrary residual data."""
    Y, X = data.Y, data.X
    other = np.exp(rng.standard_normal(Y.shape))
    yield exactly(
        "Scores of any other data preserve the information (11, 12).",
        {"information": information_loss(Y, X, from_residuals(Y, X, other, rng=rng).Y)},
    )
    yield _correction(data, rng)
    yield _instability(data, rng)
    yield _mixture_as_written(data, rng)
    yield _mixture(data, rng)


def _correction(data: Businesses, rng: np.random.Generator) -> Finding:
    """Data that nearly have the right moments are hardly changed."""
    Y, X = data.Y, data.X
    noise = rng.standard_normal(Y.shape) * Y.std(axis=0)
    moves = []
    for size in _NEAR:
        other = Y + size * noise
        moves.append(float(np.abs(from_residuals(Y, X, other, rng=rng).Y - other).max()))
    scaled = [move / float(Y.std()) for move in moves]
    return Finding(
        "If other data preserve the information approximately, the corrected data are close to "
        "them.",
        all(b < 0.2 * a for a, b in pairwise(scaled)),
        "Largest correction, in standard deviations, for noise of "
        f"{_format_list(_NEAR)}: {_format_list(scaled)}.",
    )


def _instability(data: Businesses, rng: np.random.Generator) -> Finding:
    """Residuals whose principal components are equally large, and nearly the same other data."""
    X = data.X
    T = unit_scores(residuals(rng.standard_normal(data.Y.shape), X))[0]
    Y = fitted_values(data.Y, X) + T * np.sqrt(len(T))
    other = Y + 1e-6 * rng.standard_normal(Y.shape)
    near, far = (
        float(np.abs(from_residuals(Y, X, other, rng=rng, how=how).Y - Y).max())
        for how in ("qr", "svd")
    )
    return Finding(
        "It is important to use QR decomposition to avoid instability.",
        near < 1e-4 and far > 0.1,
        f"Other data that differ by 1e-6: corrected data differ by {near:.0e} with QR and by "
        f"{far:.2f} with principal components.",
    )


def _mixture_as_written(data: Businesses, rng: np.random.Generator) -> Finding:
    """Equation 13 with a share for each variable, written out and corrected by (12)."""
    Y, X = data.Y, data.X
    drawn, D = rng.standard_normal(Y.shape), np.diag(WISH)
    mixture = Y @ D + drawn * Y.std(axis=0) @ (np.eye(len(WISH)) - D)
    scores = unit_scores(residuals(mixture, X))[0]
    explicit = fitted_values(Y, X) + scores @ unit_scores(residuals(Y, X))[1]
    made = from_residuals(Y, X, rng=replay(drawn), share=WISH).Y
    return exactly(
        "Other data can be a mixture of the original and of simulated data (13).",
        {
            "the mixture written out": gap(made, explicit),
            "information": information_loss(Y, X, made),
        },
    )


def _mixture(data: Businesses, rng: np.random.Generator) -> Finding:
    Y, X = data.Y, data.X
    drawn = rng.standard_normal(Y.shape)
    E = residuals(Y, X)
    shares = (0.5, 0.9, 0.99, 1.0)
    distances = []
    for share in shares:
        made = from_residuals(Y, X, rng=replay(drawn), share=share).Y
        distances.append(float(np.linalg.norm(made - Y) / np.linalg.norm(E)))
    return Finding(
        "When all diagonal elements in (13) are close to one, the data are close to the original.",
        all(b < a for a, b in pairwise(distances)) and distances[-1] < 1e-10,
        f"Distance relative to the residuals at {_format_list(shares)}: {_format_list(distances)}.",
    )


def section_5(data: Businesses, rng: np.random.Generator, similar: Similarity) -> Iterator[Finding]:
    """Random orthogonal matrix masking."""
    yield _written_as_matrix(data, rng)
    yield _without_the_matrix(data, rng)
    yield _both_ends(data, rng)
    yield _sequential(similar)


def _written_as_matrix(data: Businesses, rng: np.random.Generator) -> Finding:
    """Equation 16, with the n×n matrix written out."""
    Y, X = data.Y, data.X
    made = ipso(Y, X, rng=rng).Y
    U = np.linalg.qr(X)[0]
    T, W = unit_scores(residuals(Y, X))
    new = residuals(made, X) @ np.linalg.inv(W)
    before, after = (np.hstack([U, S, complement(np.hstack([U, S]))]) for S in (T, new))
    M = after @ before.T
    return exactly(
        "All methods that preserve the information are random orthogonal matrix masking (14, 16).",
        {"M'M = I": gap(M.T @ M, np.eye(len(M))), "MY": gap(M @ Y, made)},
    )


def _without_the_matrix(data: Businesses, rng: np.random.Generator) -> Finding:
    """Equations 14 and 15 with the same draws: P* from I + λH in a basis that begins with T."""
    Y, X = data.Y, data.X
    H = rng.standard_normal(Y.shape)
    T, W = unit_scores(residuals(Y, X))
    basis = np.hstack([T, complement(np.hstack([np.linalg.qr(X)[0], T]))])
    differences = {}
    for size in LAMBDAS:
        start = np.eye(basis.shape[1])[:, : T.shape[1]] + size * basis.T @ H
        explicit = fitted_values(Y, X) + basis @ unit_scores(start)[0] @ W
        differences[f"λ = {size:g}"] = gap(romm(Y, X, size, rng=replay(H)).Y, explicit)
    text = "Masking by (17) is the method by the orthogonal matrix (15), without forming it."
    return exactly(text, differences)


def _both_ends(data: Businesses, rng: np.random.Generator) -> Finding:
    H = rng.standard_normal(data.Y.shape)
    none, all_ = (romm(data.Y, data.X, size, rng=replay(H)).Y for size in (0.0, 1e14))
    return exactly(
        "With λ = 0 the data are unchanged, and with λ → ∞ the method is IPSO.",
        {"λ = 0": gap(none, data.Y), "λ = 1e14": gap(all_, ipso(data.Y, data.X, rng=replay(H)).Y)},
    )


def _sequential(similar: Similarity) -> Finding:
    found = similar.found[WATCHED]
    holds, step = orders([[found[:, 2], found[:, 1], found[:, 0]]])
    means = ", ".join(f"{mean:.4f}" for mean in found.mean(axis=0))
    return Finding(
        "The similarity to the original data is highest for the first score vectors.",
        holds,
        f"Mean correlations of the first, middle and last components at λ = {WATCHED}: {means}; "
        f"{step}.",
    )


def _format_list(values: tuple[float, ...] | list[float]) -> str:
    return ", ".join(f"{value:.2g}" for value in values)
