"""`discreet.synthesize`: from confidential records to synthetic ones, the one way out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet import __version__, registry
from discreet.arrays import Real, Whole
from discreet.errors import ConfidentialError, DataError, ParameterError, UnknownNameError
from discreet.frames import open_frame
from discreet.ledger import Ledger
from discreet.protect.sentences import data_step
from discreet.records.secret import Secret
from discreet.synthesize.formula import ModelFormula
from discreet.synthesize.microaggregation import mdav
from discreet.synthesize.mixed import check_cells, check_codes, mixed_records
from discreet.synthesize.model import Factor, Missing, Model, numbers_of, read_columns
from discreet.synthesize.orthonormal import as_matrix
from discreet.synthesize.request import (
    CORRELATION,
    HYBRID,
    MIXED,
    Chance,
    Merge,
    Request,
    check_seed,
    request_of,
)
from discreet.synthesize.result import Records, Synthetic, SyntheticTrial, read_records
from discreet.synthesize.rows import Rows
from discreet.synthesize.safe_model import hybrid_arguments, safe_clusters, safe_model
from discreet.synthesize.safe_sets import UnsafeRowsError, refuse_one_direction
from discreet.synthesize.sentences import Said, sentences_of
from discreet.synthesize.tolerances import UNCHANGED, Synthesis
from discreet.tables.statement import Statement, step_of

Labels = str | Sequence[Any] | np.ndarray


@dataclass(frozen=True)
class TableWise:
    """Randomness is drawn for all records together."""

    source: str = "table"


def synthesize(
    data: Any,
    formula: str,
    method: str = "ipso",
    *,
    clusters: Labels | int | None = None,
    gain: float | None = None,
    outliers: float | None = None,
    groups: Labels | None = None,
    pieces: Labels | None = None,
    other: Any = None,
    missing: Missing = "refuse",
    merge: Merge | None = None,
    keep: Sequence[str] | None = None,
    secret: Secret | str | Path | None = None,
    name: str | None = None,
    edition: str | None = None,
    ledger: Ledger | str | Path | None = None,
    again: bool = False,
    simulate: bool = False,
    seed: int | None = None,
    **parameters: Any,
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
      formula: `"income + tax ~ age + region"`. Factors, `a:b`, `a*b`, `poly(age, 2)`,
        `log(age)`, `C(size_class)` for numbers that are codes, `number(age)` for codes that are
        numbers, `weights(w)` for a column of survey weights. For hybrid data each term is in
        `local(…)`, `shared(…)`, `groups(…)` or `pieces(…)`.
      method: The name of a registered synthesizer: `"ipso"`, `"residual-correlation"`,
        `"score-correlation"`, `"from-residuals"`, `"romm"` or `"hybrid"`; or `"mixed"`, which
        makes new records with protected counts of codes (`counts=`, `within=`).
      clusters: For hybrid data: the name of a column, a label for each record, or a number for
        clusters of at least so many similar records (MDAV).
      gain: Makes the size of clusters by MDAV variable.
      outliers: For hybrid data: records that lie farther out than this share of a normal law,
        0.999 say, are split off and have clusters of their own.
      groups: Groups of clusters, with which terms in `groups(…)` are crossed.
      pieces: Pieces of clusters, with which the constant and terms in `pieces(…)` are crossed.
      other: Data that method `"from-residuals"` corrects: a matrix, or a frame with the
        confidential columns.
      missing: `"refuse"` missing values, or make them a `"category"` on the right side.
      merge: `"pool"` merges cells and clusters with fewer than two residual degrees of freedom;
        by default they are refused.
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
      UnsafeRowsError: Records would come out as they went in, or mirrored.
    """
    check_seed(simulate, seed)
    request = request_of(
        formula,
        method,
        parameters,
        clusters=clusters,
        gain=gain,
        outliers=outliers,
        groups=groups,
        pieces=pieces,
        other=other,
        missing=missing,
        merge=merge,
        keep=keep,
    )
    records = read_records(data, secret=secret, name=name, edition=edition, ledger=ledger)
    rows = read_rows(records, request)
    if method == MIXED:
        check_codes(rows.columns)
    order = rows.canonical_order()
    rows = rows.in_order(order)
    chance = Chance(records, request, rows.contents(), again, seed)
    model, rows = _prepared(request, rows, order)
    if method == MIXED:
        return mixed_records(data, chance, model, rows)
    return _records(chance, model, rows, order)


def _prepared(request: Request, rows: Rows, order: np.ndarray) -> tuple[Model, Rows]:
    """The model's matrices, and the rows with their clusters; unsafe records are refused."""
    try:
        model = safe_model(request.formula, rows, request.merge)
        if request.method == MIXED:
            check_cells(model, request)
        if request.size is not None:
            rows = replace(rows, clusters=mdav(rows.Y, request.size, gain=request.gain))
        if request.outliers is not None:
            rows = rows.with_outliers_apart(request.outliers)
        return model, safe_clusters(model, rows, request.merge)
    except UnsafeRowsError as error:
        raise UnsafeRowsError(str(error), np.sort(order[error.rows])) from None


def _records(
    chance: Chance, model: Model, rows: Rows, order: np.ndarray
) -> Synthetic | SyntheticTrial:
    """The records in their own order with synthetic values, and what is said of them."""
    request, records = chance.request, chance.records
    made = _made(request, model, rows, chance.generator())
    values = np.empty_like(made.Y)
    values[order] = made.Y
    names = request.formula.confidential
    frame = records.with_values(dict(zip(names, values.T, strict=True)), request.keep)
    statement = _statement(request, frame, made, records.secret is not None)
    about = names, request.formula.text, request.method
    if chance.seed is not None:
        return SyntheticTrial(frame, statement, *about, details=made.details)
    number, counted = chance.register(), records.ledger is not None
    first = data_step(records, TableWise(), is_counted=counted, number=number)
    return Synthetic(frame, statement.preceded(first), *about)


def _made(request: Request, model: Model, rows: Rows, rng: np.random.Generator) -> Synthesis:
    """The method's values; a method that changes nothing is refused."""
    run = registry.load("synthesizer", request.method)
    scaled, parameters = model.scaled, dict(request.parameters)
    if request.method == HYBRID:
        made = run(scaled.Y, rng=rng, **parameters, **hybrid_arguments(scaled, rows))
    else:
        if rows.other is not None:
            parameters["other"] = replace(model, Y=rows.other).scaled.Y
        made = run(scaled.Y, scaled.X, rng=rng, **parameters)
    refuse_one_direction(len(rows.Y), made.details)
    values = model.unscaled(made.Y)
    if (np.abs(values - rows.Y) <= UNCHANGED * rows.Y.std(axis=0)).all():
        raise ConfidentialError(
            f"with these parameters method {request.method!r} returns the records as they are. "
            "Choose parameters that draw at least part of the residuals anew."
        )
    return Synthesis(values, made.details)


def _statement(request: Request, frame: Any, made: Synthesis, has_secret: bool) -> Statement:
    """What is said; the multiplier as it was used, which follows from what is preserved."""
    parameters = request.public
    if request.method == CORRELATION:
        parameters["alpha"] = made.details["alpha"]
    others = (c for c in open_frame(frame).columns if c not in request.formula.confidential)
    said = Said(request, parameters, tuple(others), has_secret)
    public = {name.rstrip("_"): value for name, value in parameters.items()}
    step = step_of(f"synthesize:{request.method}", public, sentences_of(said))
    return Statement((step,), version=__version__)


def read_rows(records: Records, request: Request) -> Rows:
    """What a method needs of each record, read from its columns and from what the user gives."""
    Y, columns, weights = read_columns(records, request.formula, request.missing)
    given = {"groups": request.groups, "pieces": request.pieces}
    if request.size is None:
        given["clusters"] = request.clusters
    labels = {
        role: _labels(role, each, records, request.formula)
        for role, each in given.items()
        if each is not None
    }
    other = None
    if request.other is not None:
        other = _other_values(request.other, request.formula, len(Y))
    return Rows(Y, columns, weights, other=other, **labels)


def _labels(role: str, given: Any, records: Records, formula: ModelFormula) -> Whole:
    """Clusters, groups or pieces by number: a column's name, or a label for each row."""
    if isinstance(given, str):
        if given not in records.columns:
            raise UnknownNameError(f"column of {role}", given, records.columns)
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


def _other_values(other: Any, formula: ModelFormula, n: int) -> Real:
    """Data to be corrected: a matrix, or a frame with the confidential columns."""
    if isinstance(other, np.ndarray):
        matrix = as_matrix(other, "the other data")
    else:
        table = open_frame(other).to_arrow()
        for name in formula.confidential:
            if name not in table.column_names:
                raise UnknownNameError("column of the other data", name, table.column_names)
        matrix = np.column_stack(
            [numbers_of(c, table.column(c), "in the other data") for c in formula.confidential]
        )
    if matrix.shape != (n, len(formula.confidential)):
        raise DataError(
            f"the other data have {matrix.shape[0]:,} rows and {matrix.shape[1]} columns; the "
            f"records have {n:,} and the model {len(formula.confidential)}."
        )
    return matrix
