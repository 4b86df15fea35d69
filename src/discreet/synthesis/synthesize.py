"""`discreet.synthesis`: from confidential records to synthetic ones, the one way out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from discreet import __version__, registry
from discreet.arrays import Real, Whole
from discreet.display.bars import shows_progress
from discreet.errors import ConfidentialError, DataError, ParameterError, check_known
from discreet.frames import read_frame
from discreet.ledger import Ledger
from discreet.protect.sentences import data_step
from discreet.records.secret import Secret
from discreet.signatures import takes_options
from discreet.synthesis.decompose import Synthesis
from discreet.synthesis.formula import ModelFormula
from discreet.synthesis.hybrid_safety import hybrid_arguments, safe_clusters
from discreet.synthesis.large import RULES, Large, read_rules
from discreet.synthesis.microaggregation import mdav, split_off
from discreet.synthesis.microaggregation import outlying as outlying_rows
from discreet.synthesis.mixed import check_cells, check_codes, mixed_records
from discreet.synthesis.model import Factor, Missing, ModelMatrices, Rows, numbers_of, read_columns
from discreet.synthesis.orthonormal import as_matrix
from discreet.synthesis.request import (
    CORRELATION,
    HYBRID,
    MIXED,
    Merge,
    Outlying,
    SynthesisDraw,
    SynthesisRequest,
    check_listed,
    check_seed,
    request_of,
)
from discreet.synthesis.result import (
    SourceRecords,
    Synthetic,
    SyntheticTrial,
    column_names_of,
    read_records,
)
from discreet.synthesis.safety import UnsafeRowsError, safe_model, safe_values, with_cells
from discreet.synthesis.sentences import StatementFacts, keeps_components, sentences_of, unchanged
from discreet.tables.statement import Statement, step_of

Labels = str | Sequence[Any] | np.ndarray


class SynthesisOptions:
    """What `synthesize` is told beside the records.

    Args:
      formula: `"income + tax ~ age + region"`. Factors, `a:b`, `a*b`, `poly(age, 2)`,
        `log(age)`, `C(size_class)` for numbers that are codes, `number(age)` for codes that are
        numbers, `weights(w)` for a column of survey weights, `cells(region*size)` for the sums of a
        table that the rules allow to be published. For hybrid data each term is in
        `local(…)`, `shared(…)`, `groups(…)` or `pieces(…)`.
      method: The name of a registered synthesizer: `"ipso"`, `"residual-correlation"`,
        `"score-correlation"`, `"from-residuals"`, `"romm"` or `"hybrid"`; or `"mixed"`, which
        makes new records with protected counts of codes (`counts=`, `within=`).
      clusters: For hybrid data: the name of a column, a label for each record, or a number for
        clusters of at least so many similar records (MDAV).
      gain: Makes the size of clusters by MDAV variable.
      outliers: Records that lie farther out than this share of a normal law, 0.999 say, are
        treated apart; in hybrid data they have clusters of their own.
      outlying: What happens to them: `"synthetic"`, by themselves, or `"public"`: they keep their
        values, which must be known to everybody, as the accounts of listed companies are.
      groups: Groups of clusters, with which terms in `groups(…)` are crossed.
      pieces: Pieces of clusters, with which the constant and terms in `pieces(…)` are crossed.
      other: Data that method `"from-residuals"` corrects: a matrix, or a frame with the
        confidential columns.
      missing: `"refuse"` missing values, or make them a `"category"` on the right side.
      merge: `"pool"` merges cells and clusters with too few residual degrees of freedom, or in
        which a record weighs too much; by default they are refused.
      large: What happens to large units: `"refuse"` records that weigh more than a third in their
        own fit, and whatever breaks a rule among the sums, squares and covariances that are
        preserved; or `"top-code"`: cut such values back to the next smaller ones first.
      rules: The rules of suppression for all that is preserved, as for `Suppress`.
      keep: Which of the other columns are published; by default all of them.
      secret: The custodian's secret or its file, for a plain frame.
      name: Name of the data set, for a plain frame.
      edition: Changes whenever the records do, for a plain frame.
      ledger: The custodian's ledger, in which the release is entered before it is drawn.
      again: Allow a second, different release of this edition.
      simulate: Make a `SyntheticTrial`, which can be measured but not published.
      seed: Seed of a trial.
      **parameters: Parameters of the method, such as `correlations=0.9` or `lambda_=0.5`.

    Raises:
      UnsafeRowsError: Records would come out as they went in, mirrored, or near enough to be told.
    """

    def __init__(
        self,
        formula: str,
        method: str = "ipso",
        *,
        clusters: Labels | int | None = None,
        gain: float | None = None,
        outliers: float | None = None,
        outlying: Outlying = "synthetic",
        groups: Labels | None = None,
        pieces: Labels | None = None,
        other: Any = None,
        missing: Missing = "refuse",
        merge: Merge | None = None,
        large: Large = "refuse",
        rules: Any = RULES,
        keep: Sequence[str] | None = None,
        secret: Secret | str | Path | None = None,
        name: str | None = None,
        edition: str | None = None,
        ledger: Ledger | str | Path | None = None,
        again: bool = False,
        simulate: bool = False,
        seed: int | None = None,
        **parameters: Any,
    ) -> None:
        check_seed(simulate, seed)
        self.request = request_of(
            formula,
            method,
            parameters,
            clusters=clusters,
            gain=gain,
            outliers=outliers,
            outlying=outlying,
            groups=groups,
            pieces=pieces,
            other=other,
            missing=missing,
            merge=merge,
            large=large,
            rules=read_rules(rules),
            keep=keep,
        )
        if not simulate:
            check_listed(self.request)
        self.custody: dict[str, Any] = {"secret": secret, "ledger": ledger}
        self.custody |= {"name": name, "edition": edition}
        self.again, self.seed = again, seed


@shows_progress("making synthetic records")
@takes_options(SynthesisOptions)
def synthesize(  # noqa: D417  see its class
    data: Any, options: SynthesisOptions
) -> Synthetic | SyntheticTrial:
    """Synthetic values in the place of confidential ones, with the regressions of the original.

    The columns on the left of the formula become synthetic; their regression on the right side and
    their covariances stay exactly what they were. All other columns are published as they are,
    except record keys, ids and persons of `Microdata`.

    Randomness is a keyed hash of secret, data set, edition, method, parameters, model and records:
    the same request has the same result. A plain frame without a secret draws from the operating
    system, and the statement says what that means.

    Args:
      data: `Microdata`, or a pandas, polars or Arrow frame.
    """
    request = options.request
    records = read_records(data, **options.custody)
    rows = _read_rows(records, request)
    if request.method == MIXED:
        check_codes(rows.columns)
    # Randomness is drawn row by row: in canonical order the same records in another order have the
    # same values, and draws for two orders cannot be averaged.
    order = rows.canonical_order()
    rows = rows.in_order(order)
    parts = [_prepare_part(request, rows, order, chosen) for chosen in _apart(request, rows)]
    # As they are treated: an option that changes no row and no cluster draws nothing anew.
    contents = [part.rows.contents() for part in parts]
    treated = contents if contents[1:] else contents[0]
    draw = SynthesisDraw(records, request, treated, options.again, options.seed)
    if request.method == MIXED:
        return mixed_records(data, draw, parts[0].model, rows)
    return _draw_records(draw, parts, rows, order)


class _Part(NamedTuple):
    """Records that are made synthetic together."""

    chosen: Whole  # their places among all rows
    model: ModelMatrices
    rows: Rows


def _apart(request: SynthesisRequest, rows: Rows) -> list[Whole]:
    """Places of the rows that are made synthetic together; outlying ones that are public in none.

    Hybrid methods have clusters for outlying rows, and need no part for them.
    """
    everybody = np.arange(len(rows.Y))
    if request.outliers is None or (request.method == HYBRID and request.outlying != "public"):
        return [everybody]
    apart = outlying_rows(rows.Y, quantile=request.outliers)
    parts = [everybody[~apart], everybody[apart]]
    return parts if request.outlying == "synthetic" and apart.any() else parts[:1]


def _prepare_part(request: SynthesisRequest, rows: Rows, order: Whole, chosen: Whole) -> _Part:
    try:
        return _Part(chosen, *_prepare(request, rows.in_order(chosen)))
    except UnsafeRowsError as error:
        raise UnsafeRowsError(str(error), np.sort(order[chosen[error.rows]])) from None


def _draw_records(
    draw: SynthesisDraw, parts: Sequence[_Part], rows: Rows, order: Whole
) -> Synthetic | SyntheticTrial:
    """The records in their own order with synthetic values, and what is said of them."""
    request, records = draw.request, draw.records
    rng, new = draw.generator(), rows.Y.copy()
    for part in parts:
        result = _run(request, part.model, part.rows, rng)
        new[part.chosen] = result.Y
    values = np.empty_like(new)
    values[order] = new
    names = request.formula.confidential
    frame = records.with_values(dict(zip(names, values.T, strict=True)), request.keep)
    parameters = request.public
    if request.method == CORRELATION:
        # As it was used: "largest" follows from what is preserved, so the number is public.
        parameters["alpha"] = result.details["alpha"]
    others = tuple(c for c in column_names_of(frame) if c not in names)
    counted = records.ledger is not None
    facts = StatementFacts(request, parameters, others, records.secret is not None, counted)
    public = {name.rstrip("_"): value for name, value in parameters.items()}
    step = step_of(f"synthesize:{request.method}", public, sentences_of(facts))
    statement = Statement((step,), version=__version__)
    about = names, request.formula.text, request.method
    if draw.seed is not None:
        return SyntheticTrial(frame, statement, *about, details=result.details)
    # Entered before anybody gets it: a program that dies here has counted too much, not too little.
    number = draw.register()
    first = data_step(records, request, is_counted=counted, number=number)
    return Synthetic(frame, statement.with_first_step(first), *about)


def _prepare(request: SynthesisRequest, rows: Rows) -> tuple[ModelMatrices, Rows]:
    """The model's matrices, and the rows with their clusters; unsafe records are refused."""
    rows = with_cells(request, rows)
    model = safe_model(request, rows)
    if request.method == MIXED:
        check_cells(model, request)
    if request.size is not None:
        rows = replace(rows, clusters=mdav(rows.Y, request.size, gain=request.gain))
    if request.outliers is not None and rows.clusters is not None and request.outlying != "public":
        far_out = outlying_rows(rows.Y, quantile=request.outliers)
        clusters, apart = split_off(rows.clusters, far_out)
        groups = apart if rows.groups is None else 2 * rows.groups + apart
        rows = replace(rows, clusters=clusters, groups=groups)
    rows = safe_clusters(request, model, rows)
    model = safe_values(request, model, rows)
    return model, replace(rows, Y=model.Y, columns=model.columns)


def _run(
    request: SynthesisRequest, model: ModelMatrices, rows: Rows, rng: np.random.Generator
) -> Synthesis:
    """The method's values; a method that changes nothing is refused."""
    run = registry.load("synthesizer", request.method)
    plain, parameters = model.without_weights, dict(request.parameters)
    if request.method == HYBRID:
        result = run(plain.Y, rng=rng, **parameters, **hybrid_arguments(plain, rows))
    else:
        if rows.other is not None:
            parameters["other"] = replace(model, Y=rows.other).without_weights.Y
        result = run(plain.Y, plain.X, rng=rng, **parameters)
    values = model.to_original_scale(result.Y)
    same = unchanged(rows.Y, values, rows.clusters)
    if same.all() or (same.any() and not keeps_components(request.parameters)):
        raise ConfidentialError(
            f"with these parameters method {request.method!r} returns values as they are. Choose "
            "parameters that draw at least part of the residuals anew."
        )
    return Synthesis(values, result.details)


def _read_rows(records: SourceRecords, request: SynthesisRequest) -> Rows:
    """What a method needs of each record, read from its columns and from what the user gives."""
    Y, columns, weights = read_columns(records, request.formula, request.missing)
    given = {"groups": request.groups, "pieces": request.pieces}
    if request.size is None:
        given["clusters"] = request.clusters
    labels = {
        role: _read_labels(role, each, records, request.formula)
        for role, each in given.items()
        if each is not None
    }
    other = None
    if request.other is not None:
        other = _read_other(request.other, request.formula, len(Y))
    return Rows(Y, columns, weights, other=other, **labels)


def _read_labels(role: str, given: Any, records: SourceRecords, formula: ModelFormula) -> Whole:
    """Clusters, groups or pieces by number: a column's name, or a label for each row."""
    if isinstance(given, str):
        check_known(f"column of {role}", [given], records.columns)
        if given in formula.confidential:
            raise ParameterError(
                f"{role}= names the confidential column {given!r}. Use a column that may be "
                "published, or clusters of a size: clusters=5."
            )
        given = records.table.column(given)
    labels, n = Factor.of(given).codes, len(records.table)
    if len(labels) != n:
        raise DataError(f"there are {len(labels):,} labels for {role}, but {n:,} records.")
    return labels


def _read_other(other: Any, formula: ModelFormula, n: int) -> Real:
    """Data to be corrected: a matrix, or a frame with the confidential columns."""
    if isinstance(other, np.ndarray):
        matrix = as_matrix(other, "the other data")
    else:
        table = read_frame(other)
        check_known("column of the other data", formula.confidential, table.column_names)
        matrix = np.column_stack(
            [numbers_of(c, table.column(c), "in the other data") for c in formula.confidential]
        )
    if matrix.shape != (n, len(formula.confidential)):
        raise DataError(
            f"the other data have {matrix.shape[0]:,} rows and {matrix.shape[1]} columns; the "
            f"records have {n:,} and the model {len(formula.confidential)}."
        )
    return matrix
