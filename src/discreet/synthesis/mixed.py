"""New records with new codes: protected counts first, then amounts by the original's model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

import numpy as np

from discreet.arrays import Real, Whole
from discreet.errors import ConfidentialError, DesignError, ParameterError
from discreet.protect.publish import publish, simulate
from discreet.protect.sentences import adds_up, limit, not_negative, process, whole_numbers
from discreet.randomness import stream
from discreet.records.records import UnitRecords
from discreet.records.secret import Secret
from discreet.records.sources import records_of_frame
from discreet.records.tabulate import tabulate
from discreet.release.fitting import fit_cells, round_cells
from discreet.release.tabulate import to_microdata
from discreet.synthesis.decompose import Synthesis, fit, loadings, random_scores, with_scores
from discreet.synthesis.model import Column, Factor, ModelMatrices, Rows, build, cells_of
from discreet.synthesis.orthonormal import as_matrix
from discreet.synthesis.request import SynthesisDraw, SynthesisRequest
from discreet.synthesis.result import Synthetic, SyntheticTrial
from discreet.synthesis.safety import Unsafe, least_freedom, refuse
from discreet.synthesis.sentences import (
    EXACT,
    StatementFacts,
    about_large_units,
    randomness,
    second_release,
)
from discreet.tables.protected import COUNT, Protected, PublicTable
from discreet.tables.statement import Sentence, step_of


def mixed(Y: Any, X: Any, X_new: Any, *, rng: np.random.Generator) -> Synthesis:
    r"""Values of other records, with exactly the regression of the original ones.

    .. math::

       Y^* = X^* \hat B + \sqrt{\frac{n^* - r^*}{n - r}}\, T^* W

    with the coefficients :math:`\hat B` and the residuals :math:`\hat E = T W` of n original
    records, and scores :math:`T^*` orthogonal to the new records' :math:`X^*` as in `ipso`.

    Promise: the regression of :math:`Y^*` on :math:`X^*` has the coefficients of the original, and
    its estimated covariance of residuals is exactly that of the original.
    """
    Y, X, X_new = as_matrix(Y, "Y"), as_matrix(X, "X"), as_matrix(X_new, "X_new")
    _check_estimable(X, X_new)
    before = fit(Y, X)
    W = loadings(before.residuals)
    coefficients = np.linalg.lstsq(X, Y, rcond=None)[0]
    after = fit(X_new @ coefficients, X_new)
    T = random_scores(rng, len(X_new), len(W), after.basis, what="X of the new records")
    freedom = len(X_new) - after.rank, len(X) - before.rank
    scale = np.sqrt(freedom[0] / freedom[1])
    details = {"rank_X": before.rank, "rank_new": after.rank, "rank_residuals": len(W)}
    return Synthesis(with_scores(after, (T, scale * W)), details)


def mixed_within(Y: Any, cells: Whole, new_cells: Whole, *, rng: np.random.Generator) -> Synthesis:
    """Values of other records, with the means and covariances of each cell.

    Promise: a cell with more new records than variables has exactly the means and the estimated
    covariances of the original cell. In smaller ones values are normal draws with these moments.
    Every new cell must have original records.
    """
    Y = as_matrix(Y, "Y")
    if len(np.setdiff1d(new_cells, cells)):
        raise _no_records()
    values = np.empty((len(new_cells), Y.shape[1]))
    for cell in np.unique(new_cells):
        own, new = Y[cells == cell], np.flatnonzero(new_cells == cell)
        W = loadings(fit(own, np.ones((len(own), 1))).residuals)
        if len(new) > len(W):
            values[new] = mixed(own, np.ones((len(own), 1)), np.ones((len(new), 1)), rng=rng).Y
        else:
            drawn = rng.standard_normal((len(new), len(W))) @ W
            values[new] = own.mean(axis=0) + drawn / np.sqrt(len(own) - 1)
    return Synthesis(values, {"cells": len(np.unique(new_cells))})


# New rows may leave the space of the original ones by this share of their length: columns of codes
# are whole numbers, so that a row leaves it by much or by rounding.
ESTIMABLE = 1e-8


def _check_estimable(X: Real, X_new: Real) -> None:
    """Refuse new rows whose expected values do not follow from the original records."""
    top = np.abs(X).max(axis=0, initial=1.0)
    # Of different rows alone: there are as many as combinations of codes, not as records.
    _, size, Vt = np.linalg.svd(np.unique(X, axis=0) / top, full_matrices=False)
    V = Vt[size > ESTIMABLE * size[0]].T
    rows = np.unique(X_new, axis=0) / top
    rest = np.linalg.norm(rows - rows @ V @ V.T, axis=1)
    if (rest > ESTIMABLE * np.linalg.norm(rows, axis=1)).any():
        raise _no_records()


def _no_records() -> ConfidentialError:
    return ConfidentialError(
        "the protected counts fill cells whose amounts do not follow from the original records, "
        "because there are none. Leave out interactions from the model, or protect counts by a "
        "method that keeps zeros."
    )


def mixed_records(
    data: Any, draw: SynthesisDraw, model: ModelMatrices, rows: Rows
) -> Synthetic | SyntheticTrial:
    """New records with protected counts of codes, and amounts by the model of the original.

    Codes may be merged in the model; the rows are the original ones.
    """
    request, records = draw.request, draw.records
    draw.register()
    rng = draw.generator()
    counts = _protect_counts(data, draw, tuple(rows.columns))
    if counts.y is None or (np.asarray(counts.y) < 0).any():
        counts = fit_cells(counts, "auto")
    if (np.asarray(counts.y) != np.rint(np.asarray(counts.y))).any():
        counts = round_cells(counts, "total", int(rng.integers(2**31)))
    result, labels = _draw_amounts(request, model, rows.columns, counts, rng)
    names = request.formula.confidential
    values = dict(zip(names, result.Y.T, strict=True))
    frame = records.frame_of({**labels, **values})
    repeats = records.secret is not None and request.parameters["counts"].source != "system"
    facts = StatementFacts(request, request.public, (), repeats, records.ledger is not None)
    step = step_of(f"synthesize:{request.method}", request.public, _sentences(facts))
    # A guarantee for counts alone is none: the amounts were not part of it.
    statement = replace(counts.statement.then(step, changes_values=False), privacy=None)
    about = (*labels, *names), request.formula.text, request.method
    if draw.seed is not None:
        return SyntheticTrial(frame, statement, *about, details=result.details)
    return Synthetic(frame, statement, *about)


def check_codes(columns: Mapping[str, Column]) -> None:
    """Refuse a right side that holds anything but codes."""
    numbers = [name for name, column in columns.items() if not isinstance(column, Factor)]
    if numbers:
        raise ParameterError(
            f"column {numbers[0]!r} holds numbers, and a mixed model counts the combinations of "
            "its right side. Make it codes, e.g. with `dc.cut`, or leave it out."
        )
    if not columns:
        raise ParameterError("a mixed model needs columns of codes on its right side.")


def check_cells(model: ModelMatrices, request: SynthesisRequest) -> None:
    """Refuse cells with covariances of their own that are too small."""
    if request.parameters["within"] == "cells":
        cells = cells_of(tuple(model.columns), model.columns)
        small = np.bincount(cells)[cells] - 1 < least_freedom(request)
        where = f"cells of {' × '.join(model.columns)}"
        found = [Unsafe(where, np.flatnonzero(small))] if small.any() else []
        refuse(found, least_freedom(request))


def _protect_counts(data: Any, draw: SynthesisDraw, codes: tuple[str, ...]) -> Protected:
    """The protected table of all combinations of codes."""
    records, counts = draw.records, draw.request.parameters["counts"]
    if not isinstance(data, UnitRecords):
        named, secret = records.data_set, cast("Secret | None", records.secret)
        chosen = records.frame.select(list(codes)).to_native()
        data = records_of_frame(chosen, named, secret)
    data.check_keys()
    table = tabulate(data, "*".join(codes))
    if draw.seed is not None:
        return simulate(table, counts, {}, seed=draw.seed, unit=COUNT)
    # The release of the records is in the ledger already, and the counts are part of it.
    return publish(table, counts, {}, unit=COUNT, ledger=records.ledger, again=True)


def _draw_amounts(
    request: SynthesisRequest,
    model: ModelMatrices,
    original: Mapping[str, Column],
    whole: Protected,
    rng: np.random.Generator,
) -> tuple[Synthesis, dict[str, list[str]]]:
    """Amounts of the new records, and their codes."""
    y = np.rint(np.asarray(whole.y)).astype(np.int64)
    some = np.flatnonzero(y)
    found = whole.design.inner_label_columns(np.repeat(some, y[some]))
    labels = {name: found[name].to_pylist() for name in original}
    # One matrix for both: coefficients apply to new rows only if codes have the same columns.
    both = {name: _stack(original[name], model.columns[name], labels[name]) for name in original}
    n = len(model.Y)
    if request.parameters["within"] == "cells":
        cells = cells_of(tuple(both), both)
        return mixed_within(model.Y, cells[:n], cells[n:], rng=rng), labels
    stacked = build(request.formula, np.zeros((n + int(y.sum()), 1)), both)
    return mixed(model.Y, stacked.X[:n], stacked.X[n:], rng=rng), labels


def _stack(original: Column, used: Column, labels: list[str]) -> Factor:
    """Codes of original and new records, merged where those of the original are."""
    if not isinstance(original, Factor) or not isinstance(used, Factor):
        raise ParameterError("a mixed model needs codes on its right side.")
    place = dict(zip(original.codes.tolist(), used.codes.tolist(), strict=True))
    known = {level: place[code] for code, level in enumerate(original.levels) if code in place}
    if lacking := set(labels) - set(known):
        raise ConfidentialError(
            f"the protected counts fill {len(lacking)} codes that no original record has. Declare "
            "fewer codes, or protect counts by a method that keeps zeros."
        )
    new = np.array([known[label] for label in labels], dtype=np.int64)
    return Factor(used.levels, np.concatenate([used.codes, new]))


@dataclass(frozen=True, eq=False)
class MixedEvidence:
    """**Confidential.** What sentences are checked against."""

    Y: Real  # original amounts
    X: Real  # columns of the model of the original records, the constant among them
    cells: Whole  # the combination of codes of each original record
    synthetic: Real  # synthetic amounts
    X_new: Real  # columns of the model of the new records
    new_cells: Whole  # the combination of codes of each new record


def _sentences(said: StatementFacts) -> list[Sentence]:
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
    large = about_large_units(request)
    second = [] if said.is_counted else [second_release(request)]
    return [new, kept, *merged, large, DISCLOSED, BEYOND, *second, randomness(said)]


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
    return _same_regression(evidence.Y, evidence.X, evidence.synthetic, evidence.X_new)


def _cells_kept(evidence: MixedEvidence) -> bool:
    k = evidence.Y.shape[1]
    for cell in np.unique(evidence.new_cells):
        Y = evidence.Y[evidence.cells == cell]
        made = evidence.synthetic[evidence.new_cells == cell]
        if len(made) > k and not _same_regression(
            Y, np.ones((len(Y), 1)), made, np.ones((len(made), 1))
        ):
            return False
    return True


def _same_regression(Y: Real, X: Real, made: Real, X_new: Real) -> bool:
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
Draw = Literal["multinomial", "unbiased", "total", "margins", "cube"]
METHOD = "from-tables"
LARGEST_DRAW = 500_000_000  # records that are drawn at most; a frame of them fills a large server


def records_from(
    release: PublicTable, draw: Draw = "total", *, seed: int, n: int | None = None
) -> Synthetic:
    """Made-up people whose tables are those of a release.

    Everything is made from what is public already, so that the draw needs no secret.

    Args:
      release: A release of counts with inner cells, none negative; fit it first.
      draw: `"multinomial"` draws each record by itself, with the shares of the inner cells. The
        others round inner cells down or up: `"unbiased"` independently, `"total"` with the total
        kept, `"cube"` with published sums kept as far as possible, all without bias; `"margins"`
        with every published cell rounded down or up wherever that is possible.
      seed: Seed of the draw.
      n: Number of records of a multinomial draw; by default the total, rounded.
    """
    if not isinstance(release, PublicTable):
        raise ConfidentialError("records are drawn from a release; protect the table first.")
    if draw not in get_args(Draw):
        known = ", ".join(map(repr, get_args(Draw)))
        raise ParameterError(f"draw must be one of {known}, got {draw!r}.")
    if n is not None and draw != "multinomial":
        raise ParameterError("n= goes with draw='multinomial'; other draws keep the total.")
    if release.unit != COUNT:
        raise DesignError(f"records are drawn from counts; this is a release of {release.unit}s.")
    if draw == "multinomial":
        drawn = _multinomial(release, n, stream(seed, "records:multinomial"))
    else:
        drawn = round_cells(release, draw, seed)
    names = tuple(axis.name for axis in release.design.axes)
    said = process(
        "records",
        "Each record was drawn from released counts; nothing else was used to make it.",
        "The rows are not people. They were made up so that they give the published tables.",
    )
    step = step_of("records", {"draw": draw, "n": n}, [said])
    return Synthetic(
        frame=to_microdata(drawn),
        statement=drawn.statement.then(step, changes_values=False),
        confidential=names,
        model=" * ".join(names),
        method=METHOD,
    )


def _multinomial(release: PublicTable, n: int | None, rng: np.random.Generator) -> PublicTable:
    if release.y is None:
        raise DesignError("inner cells are not part of this release; fit them first.")
    y = np.asarray(release.y, dtype=np.float64)
    if (y < 0).any():
        raise DesignError("inner cells are negative; fit them without negative values first.")
    total = float(y.sum())
    size = round(total) if n is None else n
    if not total > 0 or not 0 <= size <= LARGEST_DRAW:
        raise ParameterError(
            f"a draw needs a positive total and at most {LARGEST_DRAW:,} records, got {total:g} "
            f"and {size:,}."
        )
    counts = rng.multinomial(size, y / total).astype(np.int64)
    text = (
        "Records were drawn independently of each other, with the shares of released inner cells."
    )
    said = [process("drawn", text, "The figures were drawn at random from published shares.")]
    said += [adds_up(), whole_numbers(), not_negative()]
    return release.with_parts(
        z=release.design.aggregate(counts),
        y=counts,
        precision=None,
        fit_result=None,
        statement=release.statement.then(step_of("draw:multinomial", {"n": n}, said)),
    )
