"""What statements of synthetic records say: what is preserved, hence disclosed, and what is not.

A predicate takes `Evidence`: the original and the synthetic values, and the matrices of the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.design.statement import Sentence
from discreet.protect.sentences import limit, process
from discreet.synthesize.algebra.decompose import fit, scores
from discreet.synthesize.algebra.matrices import Matrix
from discreet.synthesize.algebra.rotation import rotated

EXACT = 1e-8
"""Relative difference up to which a predicate takes two moments for equal."""

NEAR = ("residual-correlation", "score-correlation", "from-residuals", "romm", "hybrid")
"""Methods whose values lie near the original ones."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """**Confidential.** What sentences are checked against, rows in one order.

    Attributes:
      Y: Original values.
      synthetic: Synthetic values.
      X: All columns of the model, the constant among them.
      weights: Survey weights; ones where there are none.
      clusters: The cluster of each row; one for all where there are none.
    """

    Y: Matrix
    synthetic: Matrix
    X: Matrix
    weights: NDArray[np.float64]
    clusters: NDArray[np.int64]


@dataclass(frozen=True)
class Said:
    """What a statement is made from; all of it is public.

    Attributes:
      method: The method's name.
      confidential: Columns with synthetic values.
      published: Columns that are published as they are.
      model: The model in one spelling.
      weights: Column of weights.
      parameters: Parameters of the method.
      has_secret: Whether randomness comes from a secret.
      has_missing: Whether missing values are a category.
      has_merged: Whether small cells and clusters are merged.
    """

    method: str
    confidential: tuple[str, ...]
    published: tuple[str, ...]
    model: str
    weights: str | None
    parameters: dict[str, Any]
    has_secret: bool
    has_missing: bool
    has_merged: bool


def sentences_of(said: Said) -> list[Sentence]:
    """Everything that is said of synthetic records."""
    found = [synthetic_columns(said), fits_kept(said)]
    if said.parameters.get("residuals") != "zero":
        found.append(moments_kept(said))
    found += [*declared(said), *_choices(said), disclosed(said), published_columns(said)]
    found += [beyond_model(said), out_of_range(said)]
    if said.method in NEAR:
        found.append(near_original(said))
    if "keep" in _wish_list(said) or 1.0 in _wish_list(said):
        found.append(kept_components())
    found.append(repeatable() if said.has_secret else fresh_draws(said))
    return found


def synthetic_columns(said: Said) -> Sentence:
    """Which columns are synthetic."""
    return process(
        "synthetic-columns",
        f"{_listed(said.confidential)} {_are(said.confidential)} synthetic, made by method "
        f"{said.method!r} for the model {said.model!r}.",
        f"The values of {_listed(said.confidential)} are not those of the people in the records; "
        "they were made so that totals and relations between columns stay as they were.",
    )


def fits_kept(said: Said) -> Sentence:
    """Fits are the original ones."""
    how = f"The regression of {_listed(said.confidential)} on the model's columns"
    weighted = f", weighted by {said.weights}," if said.weights else ""
    means = "weighted means" if said.weights else "means"
    return Sentence(
        "fits-kept",
        f"{how}{weighted} has exactly the coefficients of the original records; {means} and the "
        "means of groups that are terms of the model are kept with them.",
        holds=_fits_kept,
    )


def moments_kept(said: Said) -> Sentence:
    """Second moments are the original ones."""
    kind = "weighted variances and covariances" if said.weights else "variances and covariances"
    return Sentence(
        "moments-kept",
        f"The {kind} of {_listed(said.confidential)} are exactly those of the original records.",
        holds=_moments_kept,
    )


def declared(said: Said) -> list[Sentence]:
    """What single methods promise beyond fits and covariances."""
    given = said.parameters
    if said.method == "score-correlation":
        return [
            Sentence(
                "component-correlations",
                "The components of the residuals correlate with those of the original as declared: "
                f"{_wishes(given['correlations'])}.",
                holds=partial(_components_correlate, given),
            )
        ]
    if said.method == "residual-correlation":
        wish, alpha = given["correlations"], given["alpha"]
        return [
            Sentence(
                "residual-correlations",
                "The residuals correlate with those of the original as declared: "
                f"{_wishes(wish)} times {alpha:.6g}.",
                holds=partial(_correlate, np.multiply(wish, alpha)),
            )
        ]
    if said.method == "hybrid":
        return [
            Sentence(
                "clusters-kept",
                f"Within every cluster ({given['clusters']}) sums are exactly those of the "
                "original records.",
                holds=_sums_within_clusters,
            )
        ]
    return []


def disclosed(said: Said) -> Sentence:
    """What is preserved is known."""
    return limit(
        "disclosed",
        "What is preserved is disclosed: coefficients, sums and covariances computed from these "
        "records are the true ones, and so are those of every group that the model or the clusters "
        "tell apart.",
    )


def published_columns(said: Said) -> Sentence:
    """Other columns are not protected."""
    if not said.published:
        return limit("published-columns", "No other column is published.")
    return limit(
        "published-columns",
        f"{_listed(said.published)} {_are(said.published)} published as in the original, record by "
        "record, and protected by nothing: whoever recognises a person there knows all of these "
        "columns.",
        f"{_listed(said.published)} {_are(said.published)} unchanged.",
    )


def beyond_model(said: Said) -> Sentence:
    """What is not preserved."""
    return limit(
        "beyond-model",
        "Relations that the model does not hold, such as curves and interactions without a term, "
        "and the shape of distributions are not preserved exactly.",
        "Results that were not planned for may differ from those of the original records.",
    )


def out_of_range(said: Said) -> Sentence:
    """Values have no bounds."""
    return limit(
        "out-of-range",
        "Synthetic values have decimals and may be negative or beyond what is possible.",
    )


def near_original(said: Said) -> Sentence:
    """Values tell more than the model does."""
    return limit(
        "near-original",
        "Synthetic values lie nearer to the original ones than the model alone would place them, "
        "as the method's parameters say, so a person's values can be estimated from them.",
    )


def kept_components() -> Sentence:
    """Some residuals are the original ones."""
    return limit(
        "kept-components",
        "Components that are kept are those of the original records, not protected at all; with QR "
        "the first ones are the first confidential columns themselves.",
    )


def repeatable() -> Sentence:
    """The same request has the same result."""
    return process(
        "repeatable",
        "Randomness comes from a secret: the same records, model and method always give the same "
        "synthetic records.",
    )


def fresh_draws(said: Said) -> Sentence:
    """Several releases undo each other."""
    target = "the fitted values"
    if said.method in NEAR:
        target = "a known mixture of fitted and original values, which is solved for the original"
    return limit(
        "fresh-draws",
        "Randomness comes from the operating system and not from a secret, so each release of the "
        f"same records is drawn anew. Several releases together can undo each other: their mean "
        f"approaches {target}.",
    )


def _choices(said: Said) -> list[Sentence]:
    """What was done on request to missing values and small cells."""
    found = []
    if said.has_missing:
        found.append(
            process(
                "missing-category",
                "In the model, missing codes are a category, and missing numbers are the mean of "
                "the others with an effect of their own.",
            )
        )
    if said.has_merged:
        found.append(
            process(
                "merged-cells",
                "Cells and clusters with fewer than two residual degrees of freedom, if there were "
                "any, are merged with others in the model; what is said of cells and clusters "
                "holds for the merged ones.",
            )
        )
    return found


def _fits_kept(evidence: Evidence) -> bool:
    return _equal(_weighted(evidence.X, evidence), evidence)


def _moments_kept(evidence: Evidence) -> bool:
    w = evidence.weights[:, None]
    before, after = ((A * w).T @ A for A in (evidence.Y, evidence.synthetic))
    size = np.sqrt(np.outer(np.diag(before), np.diag(before)))
    return bool((np.abs(after - before) <= EXACT * size).all())


def _sums_within_clusters(evidence: Evidence) -> bool:
    indicator = (evidence.clusters[:, None] == np.unique(evidence.clusters)).astype(float)
    return _equal(_weighted(indicator, evidence), evidence)


def _correlate(wish: Any, evidence: Evidence) -> bool:
    before, after = _residuals(evidence)
    lengths = np.linalg.norm(before, axis=0) * np.linalg.norm(after, axis=0)
    found = np.einsum("ij,ij->j", before, after) / lengths
    return bool(np.allclose(found, wish, atol=EXACT))


def _components_correlate(given: Mapping[str, Any], evidence: Evidence) -> bool:
    before, after = _residuals(evidence)
    old = scores(before, given.get("how", "qr"))
    if given.get("rotation") is not None:
        old = rotated(old, given["rotation"])
    found = np.einsum("ij,ij->j", old.T, after @ np.linalg.pinv(old.W))
    wish = given["correlations"]
    wishes = wish if isinstance(wish, (list, tuple)) else [wish] * old.rank
    numbers = [1.0 if each == "keep" else each for each in wishes]
    return all(
        each == "redraw" or abs(r - each) <= EXACT for r, each in zip(found, numbers, strict=True)
    )


def _residuals(evidence: Evidence) -> list[Matrix]:
    """Residuals of the original and of the synthetic values, with weights taken in."""
    root = np.sqrt(evidence.weights)[:, None]
    return [fit(A * root, evidence.X * root).residuals for A in (evidence.Y, evidence.synthetic)]


def _weighted(A: Matrix, evidence: Evidence) -> Matrix:
    return A * evidence.weights[:, None]


def _equal(A: Matrix, evidence: Evidence) -> bool:
    """Whether products with A are the same, on the scale of their columns."""
    size = np.outer(np.linalg.norm(A, axis=0), np.linalg.norm(evidence.Y, axis=0))
    return bool((np.abs(A.T @ (evidence.synthetic - evidence.Y)) <= EXACT * size).all())


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _are(names: Sequence[str]) -> str:
    return "are" if len(names) > 1 else "is"


def _wishes(wish: Any) -> str:
    several = wish if isinstance(wish, (list, tuple)) else [wish]
    return ", ".join(each if isinstance(each, str) else f"{each:g}" for each in several)


def _wish_list(said: Said) -> list[Any]:
    wish = said.parameters.get("correlations", [])
    return list(wish) if isinstance(wish, (list, tuple)) else [wish]
