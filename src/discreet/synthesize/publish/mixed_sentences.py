"""What statements of mixed records say. A predicate takes `MixedEvidence`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Real, Whole
from discreet.protect.sentences import limit, process
from discreet.synthesize.publish.sentences import Said, randomness
from discreet.synthesize.tolerances import EXACT
from discreet.tables.statement import Sentence


@dataclass(frozen=True, eq=False)
class MixedEvidence:
    """**Confidential.** What sentences are checked against.

    Attributes:
      Y: Original amounts.
      X: Columns of the model of the original records, the constant among them.
      cells: The combination of codes of each original record.
      synthetic: Synthetic amounts.
      X_new: Columns of the model of the new records.
      new_cells: The combination of codes of each new record.
    """

    Y: Real
    X: Real
    cells: Whole
    synthetic: Real
    X_new: Real
    new_cells: Whole


def mixed_sentences(said: Said) -> list[Sentence]:
    """Everything that is said of mixed records, beside what is said of their counts."""
    request = said.request
    amounts = ", ".join(request.formula.confidential)
    new = process(
        "mixed-records",
        f"The records are new: codes follow the protected counts, and {amounts} were drawn by "
        f"method {request.method!r} for the model {request.formula.text!r}.",
        "The rows are not people. They were made so that tables and averages are about right.",
    )
    kept = CELLS_KEPT if said.parameters["within"] == "cells" else MODEL_KEPT
    merged = [] if request.merge is None else [MERGED]
    return [new, kept, *merged, DISCLOSED, BEYOND, randomness(said)]


MERGED = process(
    "mixed-merged", "For the amounts, codes of small cells were merged; not for the counts."
)
DISCLOSED = limit(
    "mixed-disclosed",
    "What is preserved is disclosed: coefficients, means of groups that are terms of the model, "
    "and covariances are the true ones. What is said of the counts protects the counts alone; "
    "amounts have no differential privacy.",
)
BEYOND = limit(
    "mixed-beyond",
    "Totals of amounts follow the protected counts and are not those of the original. Relations "
    "that the model does not hold, and the shape of distributions, are not preserved. Synthetic "
    "values have decimals and may be negative or beyond what is possible.",
)


def _model_kept(evidence: MixedEvidence) -> bool:
    return _same(evidence.Y, evidence.X, evidence.synthetic, evidence.X_new)


def _cells_kept(evidence: MixedEvidence) -> bool:
    k = evidence.Y.shape[1]
    for cell in np.unique(evidence.new_cells):
        Y = evidence.Y[evidence.cells == cell]
        made = evidence.synthetic[evidence.new_cells == cell]
        if len(made) > k and not _same(Y, np.ones((len(Y), 1)), made, np.ones((len(made), 1))):
            return False
    return True


def _same(Y: Real, X: Real, made: Real, X_new: Real) -> bool:
    """Whether fitted values of the new rows, and covariances of residuals, are the original's."""
    size = np.abs(Y).max(axis=0) + np.finfo(float).tiny
    before, after = (
        np.linalg.lstsq(A, B / size, rcond=None)[0] for A, B in ((X, Y), (X_new, made))
    )
    covariances = [
        E.T @ E / (len(A) - np.linalg.matrix_rank(A))
        for A, E in ((X, Y / size - X @ before), (X_new, made / size - X_new @ after))
    ]
    gaps = np.abs(X_new @ (before - after)).max(), np.abs(covariances[0] - covariances[1]).max()
    return bool(max(gaps) <= EXACT)


MODEL_KEPT = Sentence(
    "mixed-model-kept",
    "The regression on the codes has exactly the coefficients and the estimated covariance of "
    "residuals of the original records.",
    holds=_model_kept,
)
CELLS_KEPT = Sentence(
    "mixed-cells-kept",
    "Each combination of codes that has more records than amounts has exactly the means and the "
    "estimated covariances of the original; smaller ones have them on average.",
    holds=_cells_kept,
)
