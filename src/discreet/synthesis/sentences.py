"""What statements of synthetic records say: what is preserved, hence disclosed, and what is not.

A predicate takes `Evidence`: the original and the synthetic values, and the matrices of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from discreet.arrays import Mask, Real, Whole
from discreet.protect.sentences import limit, process
from discreet.synthesis.decompose import fit, rotate, scores
from discreet.synthesis.large import LEVERAGE, weighs_too_much
from discreet.synthesis.request import SynthesisRequest
from discreet.tables.statement import Sentence

# Relative difference up to which a predicate takes two moments for equal: wider than the rounding
# of sums over millions of rows, far below what anybody would call a difference.
EXACT = 1e-8


# Methods whose values lie near the original ones.
NEAR = ("residual-correlation", "score-correlation", "from-residuals", "romm", "hybrid")


@dataclass(frozen=True, eq=False)
class SynthesisEvidence:
    """**Confidential.** What sentences are checked against, rows in one order."""

    Y: Real  # original values, those of large units as they were cut
    synthetic: Real  # synthetic values
    X: Real  # all columns of the model as it was used, the constant among them
    weights: Real  # survey weights; ones where there are none
    clusters: Whole  # the cluster of each row; one for all where there are none


@dataclass(frozen=True)
class StatementFacts:
    """What a statement is made from; all of it is public."""

    request: SynthesisRequest
    parameters: dict[str, Any]  # the request as it is shown, with the multiplier that was used
    published: tuple[str, ...]  # columns that are published as they are
    has_secret: bool  # whether randomness comes from a secret
    is_counted: bool = False  # whether a ledger counts releases


def sentences_of(said: StatementFacts) -> list[Sentence]:
    """Everything that is said of synthetic records."""
    request, given = said.request, said.parameters
    found = _about_moments(said)
    found += _declared_by_method(said)
    if request.missing == "category":
        found.append(MISSING_CATEGORY)
    if request.merge is not None:
        found.append(MERGED_CELLS)
    if request.outliers is not None and request.method != "hybrid":
        found.append(OUTLIERS_APART)
    if request.outlying == "public":
        found.append(PUBLIC_OUTLIERS)
    if request.formula.cells is not None:
        found.append(cells_kept(request))
    found.append(about_large_units(request))
    if request.method == "hybrid":
        found.append(EQUAL_VALUES)
    found += [DISCLOSED, _about_other_columns(said.published), BEYOND_MODEL, OUT_OF_RANGE]
    if request.method in NEAR:
        found.append(NEAR_ORIGINAL)
    if keeps_components(given):
        found.append(KEPT_COMPONENTS)
    found += [] if said.is_counted else [second_release(request)]
    return [*found, randomness(said)]


MISSING_CATEGORY = process(
    "missing-category",
    "In the model, missing codes are a category, and missing numbers are the mean of the others "
    "with an effect of their own.",
)
MERGED_CELLS = process(
    "merged-cells",
    "Cells and clusters with too few residual degrees of freedom, or in which a record weighs too "
    "much, if there were any, are merged with others in the model; what is said of cells and "
    "clusters holds for the merged ones.",
)
OUTLIERS_APART = process(
    "outliers-apart",
    "Records that lie far out were treated apart from the others: fits, variances and covariances "
    "are preserved in each of the two groups.",
)
PUBLIC_OUTLIERS = limit(
    "public-outliers",
    "Records that lie far out keep their true values in every column. The custodian has declared "
    "that these values are public.",
    "Some very large or very small values are true and were known before.",
)


def cells_kept(request: SynthesisRequest) -> Sentence:
    """Which sums of a table are preserved."""
    return Sentence(
        "cells-kept",
        f"Sums in the cells of the table {request.formula.cells} are preserved where the rules of "
        f"suppression ({', '.join(request.public['rules'])}) allow them to be published, and not "
        "preserved in the other cells.",
        holds=_same_fits,
    )


DISCLOSED = limit(
    "disclosed",
    "What is preserved is disclosed: coefficients, sums and covariances computed from these "
    "records are those of the confidential ones, and so are those of every group that the model or "
    "the clusters tell apart.",
)
EQUAL_VALUES = limit(
    "equal-values", "Where all records of a cluster have the same value, they keep it."
)
BEYOND_MODEL = limit(
    "beyond-model",
    "Relations that the model does not hold, such as curves and interactions without a term, and "
    "the shape of distributions are not preserved exactly.",
    "Results that were not planned for may differ from those of the original records.",
)
OUT_OF_RANGE = limit(
    "out-of-range", "Synthetic values have decimals and may be negative or beyond what is possible."
)
NEAR_ORIGINAL = limit(
    "near-original",
    "Synthetic values lie nearer to the original ones than the model alone would place them, as "
    "the method's parameters say, so a person's values can be estimated from them.",
)
KEPT_COMPONENTS = limit(
    "kept-components",
    "Components that are kept are those of the original records, not protected at all; with QR "
    "the first ones are the first confidential columns themselves.",
)
REPEATABLE = process(
    "repeatable",
    "Randomness comes from a secret: the same records, model and method always give the same "
    "synthetic records.",
)


def randomness(said: StatementFacts) -> Sentence:
    """Whether the same request has the same result, or several releases undo each other."""
    if said.has_secret:
        return REPEATABLE
    target = "the fitted values"
    if said.request.method in NEAR:
        target = "a known mixture of fitted and original values, which is solved for the original"
    return limit(
        "fresh-draws",
        "Randomness comes from the operating system and not from a secret, so each release of the "
        f"same records is drawn anew. Several releases together can undo each other: their mean "
        f"approaches {target}.",
    )


def about_large_units(request: SynthesisRequest) -> Sentence:
    """What happened to large units; it follows from the parameters, whatever the records hold."""
    kept = ", ".join(request.public["rules"]) or "none"
    limits = (
        "no record weighs more than a third in its own fit, and the sums, squares and covariances "
        f"that are preserved keep the rules of suppression ({kept})"
    )
    if request.large == "top-code":
        text = (
            "Values of large units, if there were any, were cut back to the next smaller ones, and "
            f"numbers of the model likewise, until {limits}; what is said to be preserved is that "
            "of the records so cut."
        )
    else:
        text = f"Records are released only where {limits}."
    return Sentence("large-units", text, about="process", holds=_weigh_little)


def second_release(request: SynthesisRequest) -> Sentence:
    """What a second release costs that no ledger would refuse."""
    near = (
        " Of methods that stay near the original, such as this one, 64 releases left a fifth to "
        "a quarter of the error of one when it was measured."
    )
    return limit(
        "second-release",
        "No ledger is named that would refuse a second release of these records. With another "
        "model, other clusters or another parameter it is drawn anew: what either preserves can be "
        "subtracted from the other, and their mean comes nearer to what they have in common."
        + (near if request.method in NEAR else ""),
    )


def _about_moments(said: StatementFacts) -> list[Sentence]:
    formula, names = said.request.formula, _join(said.request.formula.confidential)
    made = Sentence(
        "synthetic-columns",
        f"{names} {_are(formula.confidential)} synthetic, made by method "
        f"{said.request.method!r} for the model {formula.text!r}.",
        f"The values of {names} were drawn so that totals and relations between columns stay as "
        "they were. A value can still lie near somebody's own.",
        "process",
        holds=partial(
            _are_new, keeps_components(said.parameters) or said.request.outlying == "public"
        ),
    )
    by_weights = f", weighted by {formula.weights}," if formula.weights else ""
    weighted = "weighted " if formula.weights else ""
    fits = Sentence(
        "fits-kept",
        f"The regression of {names} on the model's columns{by_weights} has exactly the "
        f"coefficients of {_source(said.request)}; {weighted}means and the means of groups that "
        "are terms of the model are kept with them.",
        holds=_same_fits,
    )
    moments = Sentence(
        "moments-kept",
        f"The {weighted}variances and covariances of {names} are exactly those of "
        f"{_source(said.request)}.",
        holds=_same_moments,
    )
    # Fits alone have less variance than the original.
    return [made, fits] if said.parameters.get("residuals") == "zero" else [made, fits, moments]


def _about_other_columns(names: tuple[str, ...]) -> Sentence:
    if not names:
        return limit("published-columns", "No other column is published.")
    return limit(
        "published-columns",
        f"{_join(names)} {_are(names)} published as in the original, record by record, and "
        "protected by nothing: whoever recognises a person there knows all of these columns.",
        f"{_join(names)} {_are(names)} unchanged.",
    )


def _declared_by_method(said: StatementFacts) -> list[Sentence]:
    """What single methods promise beyond fits and covariances."""
    given, as_declared = said.parameters, "correlate with those of the original as declared:"
    if said.request.method == "score-correlation":
        text = f"The components of the residuals {as_declared} {_wishes(given['correlations'])}."
        holds: Callable[[Any], bool] = partial(_components_correlate, given)
        return [Sentence("component-correlations", text, holds=holds)]
    if said.request.method == "residual-correlation":
        wish, alpha = given["correlations"], given["alpha"]
        text = f"The residuals {as_declared} {_wishes(wish)} times {alpha:.6g}."
        holds = partial(_correlate, np.multiply(wish, alpha))
        return [Sentence("residual-correlations", text, holds=holds)]
    if said.request.method == "hybrid":
        text = f"Within every cluster ({given['clusters']}) sums are exactly those of "
        text += f"{_source(said.request)}."
        return [Sentence("clusters-kept", text, holds=_sums_within_clusters)]
    return []


def _source(request: SynthesisRequest) -> str:
    cut = " after large values were cut" if request.large == "top-code" else ""
    return f"the original records{cut}"


def keeps_components(given: Mapping[str, Any]) -> bool:
    """Whether a component, and so perhaps a column, stays as it was."""
    return bool({"keep", 1.0} & set(_several(given.get("correlations", ()))))


def _are_new(is_kept: bool, evidence: SynthesisEvidence) -> bool:
    return is_kept or not unchanged(evidence.Y, evidence.synthetic, evidence.clusters).any()


def unchanged(Y: Real, synthetic: Real, clusters: Whole | None) -> Mask:
    """Which values came out as they went in, but for those that all of their cluster share."""
    # A billionth of a column's spread is rounding of the decompositions, not protection.
    same = np.abs(synthetic - Y) <= 1e-9 * Y.std(axis=0)
    if clusters is None or not same.any():
        return np.asarray(same)
    number = np.unique(clusters, return_inverse=True)[1]
    low, high = np.full((2, number.max() + 1, Y.shape[1]), [[[np.inf]], [[-np.inf]]])
    np.minimum.at(low, number, Y)
    np.maximum.at(high, number, Y)
    return np.asarray(same & (low < high)[number])


def _weigh_little(evidence: SynthesisEvidence) -> bool:
    root = np.sqrt(evidence.weights)[:, None]
    model = fit(evidence.Y * root, evidence.X * root)
    return not weighs_too_much(model.basis, LEVERAGE).any()


def _same_fits(evidence: SynthesisEvidence) -> bool:
    return _same_products(evidence.X, evidence)


def _same_moments(evidence: SynthesisEvidence) -> bool:
    w = evidence.weights[:, None]
    before, after = ((A * w).T @ A for A in (evidence.Y, evidence.synthetic))
    size = np.sqrt(np.outer(np.diag(before), np.diag(before)))
    return bool((np.abs(after - before) <= EXACT * size).all())


def _sums_within_clusters(evidence: SynthesisEvidence) -> bool:
    indicator = (evidence.clusters[:, None] == np.unique(evidence.clusters)).astype(float)
    return _same_products(indicator, evidence)


def _correlate(wish: Any, evidence: SynthesisEvidence) -> bool:
    before, after = _residuals(evidence)
    lengths = np.linalg.norm(before, axis=0) * np.linalg.norm(after, axis=0)
    found = np.einsum("ij,ij->j", before, after) / lengths
    return bool(np.allclose(found, wish, atol=EXACT))


def _components_correlate(given: Mapping[str, Any], evidence: SynthesisEvidence) -> bool:
    before, after = _residuals(evidence)
    old = scores(before, given.get("how", "qr"))
    if given.get("rotation") is not None:
        old = rotate(old, given["rotation"])
    found = np.einsum("ij,ij->j", old.T, after @ np.linalg.pinv(old.W))
    wishes = _several(given["correlations"])
    wishes = wishes * old.rank if len(wishes) == 1 else wishes
    numbers = [1.0 if each == "keep" else each for each in wishes]
    return all(
        each == "redraw" or abs(r - each) <= EXACT for r, each in zip(found, numbers, strict=True)
    )


def _residuals(evidence: SynthesisEvidence) -> list[Real]:
    root = np.sqrt(evidence.weights)[:, None]
    return [fit(A * root, evidence.X * root).residuals for A in (evidence.Y, evidence.synthetic)]


def _same_products(A: Real, evidence: SynthesisEvidence) -> bool:
    """Whether weighted products with A are the same, on the scale of their columns."""
    A = A * evidence.weights[:, None]
    size = np.outer(np.linalg.norm(A, axis=0), np.linalg.norm(evidence.Y, axis=0))
    return bool((np.abs(A.T @ (evidence.synthetic - evidence.Y)) <= EXACT * size).all())


def _join(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _are(names: Sequence[str]) -> str:
    return "are" if len(names) > 1 else "is"


def _wishes(wish: Any) -> str:
    return ", ".join(each if isinstance(each, str) else f"{each:g}" for each in _several(wish))


def _several(wish: Any) -> list[Any]:
    return list(wish) if isinstance(wish, (list, tuple)) else [wish]
