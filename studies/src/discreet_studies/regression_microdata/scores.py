"""Sections 4 and 5: scores of other data, and random orthogonal matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from discreet.synthesize.from_residuals import from_residuals
from discreet.synthesize.ipso import ipso
from discreet.synthesize.romm import romm
from discreet_studies.arrays import Matrix
from discreet_studies.chance import orders
from discreet_studies.model import Finding
from discreet_studies.regression_microdata.judge import (
    Businesses,
    complement,
    exactly,
    fitted_values,
    gap,
    information_loss,
    many_amounts,
    replay,
    residuals,
    unit_scores,
)

LAMBDAS = (0.01, 0.03, 0.1, 0.3, 1.0)
WATCHED = 0.1
_NEAR = (1e-1, 1e-2, 1e-3)


@dataclass(frozen=True, eq=False)
class Similarity:
    """Mean correlations of components with their originals, by λ.

    Attributes:
      found: For each draw the first, the middle and the last of the components, taken together.
    """

    found: dict[float, Matrix]


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
