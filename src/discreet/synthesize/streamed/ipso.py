r"""IPSO for records that do not fit into memory: moments in the engine, and two passes of rows.

The engine makes the sums of products of centred and scaled columns, from which follow the
coefficients B. The first pass corrects B by the residuals it leaves and sums the products of
residuals and draws. The second pass writes

.. math:: Y^* = X B + (Z - X B_s)\, W_s^{-1} W

where the draws Z are made again from a counter-based generator, block by block. Nothing of the
length of the data is held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import ConfidentialError, DataError, ParameterError
from discreet.files import OWNER_ONLY, PARQUET, ending_of, written_whole
from discreet.microdata.backend import attempt
from discreet.microdata.microdata import Microdata
from discreet.synthesize.algebra.matrices import Matrix, cross, product
from discreet.synthesize.streamed.model import Model, model_of
from discreet.synthesize.streamed.row_draws import RowDraws

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 65_536
"""Rows handled at a time."""

SAME_ROWS = 1e-6
"""Error from which the rows of the two passes cannot have been the same."""


@dataclass(frozen=True)
class Streamed:
    """What was reached.

    Attributes:
      path: The file with the synthetic records.
      rows: Number of rows.
      rank_X: Rank of the model with the constant.
      rank_residuals: Rank of the residuals.
      error: Largest deviation of a preserved moment, between centred and scaled columns, as a
        share of their lengths; measured on the rows that were written.
    """

    path: Path
    rows: int
    rank_X: int
    rank_residuals: int
    error: float


def streamed_ipso(
    data: Microdata,
    target: str | Path,
    confidential: Sequence[str],
    covariates: Sequence[str] = (),
    *,
    rng: np.random.Generator,
) -> Streamed:
    """Write synthetic records to a Parquet file, without holding them.

    The file has the covariates as they are and the confidential variables with new values. Only
    its owner can read it, since no statement goes with it. The records must come from the engine
    in the same order each time, as from files; if they do not, nothing is written.

    Promise: that of `ipso`, with the constant and the covariates as X, up to the reported error.
    Cost: the engine reads the records twice, and they are streamed twice; memory for blocks of
    rows alone.

    Args:
      data: The records, as `discreet.open` gives them.
      target: The new Parquet file.
      confidential: Numeric columns that get new values.
      covariates: Columns whose fits are preserved; columns of text are factors.
      rng: Gives the key of the draws.
    """
    target = Path(target)
    ending_of(target, PARQUET)
    _check_names(confidential, covariates)
    model = model_of(data, confidential, covariates)
    draws = RowDraws(rng, len(confidential))
    plan = _first_pass(data, model, draws)
    with written_whole(target, OWNER_ONLY) as temporary:
        error = _second_pass(data, model, draws, plan, temporary)
        if not error < SAME_ROWS:
            msg = (
                f"moments of the written rows differ by {error:.2g} of their size, so the records "
                "came in another order, or changed, while they were read. Put them into a file "
                "first."
            )
            raise DataError(msg)
    rows = int(model.gram[0, 0])
    return Streamed(target, rows, model.rank, plan.rank_residuals, error)


@dataclass(frozen=True)
class Plan:
    """How rows are made in the second pass: :math:`Y^* = X F + Z C`.

    Attributes:
      F: Coefficients of the constant and X: :math:`B - B_s C`.
      C: :math:`W_s^{-1} W`.
      rank_residuals: Rank of W.
    """

    F: Matrix
    C: Matrix
    rank_residuals: int


def _check_names(confidential: Sequence[str], covariates: Sequence[str]) -> None:
    both = [name for name in confidential if name in covariates]
    if both or not confidential or isinstance(confidential, str) or isinstance(covariates, str):
        msg = (
            "expected lists of column names, at least one of them confidential and none in both "
            f"lists; got {confidential!r} and {covariates!r}."
        )
        raise ParameterError(msg)


def _batches(data: Microdata, names: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The records in order, each batch with the number of its first row."""
    start = 0
    table = data.table.select(*names)
    stream = attempt(lambda: data.backend.to_pyarrow_batches(table, chunk_size=BATCH), data.origin)
    while (batch := attempt(lambda: next(stream, None), data.origin)) is not None:
        yield start, batch
        start += len(batch)


def _names(model: Model) -> list[str]:
    return list(dict.fromkeys(term.name for term in (*model.X, *model.Y)))


def _first_pass(data: Microdata, model: Model, draws: RowDraws) -> Plan:
    """Correct the coefficients, and make ready what turns draws into residuals."""
    m, k = len(model.gram), len(model.Y)
    with_X, own = np.zeros((m, 2 * k)), np.zeros((2, k, k))
    for start, batch in _batches(data, _names(model)):
        A, Z = model.design(batch), draws.rows(start, start + len(batch))
        _refuse_leverage(A, model.inverse)
        E = model.confidential(batch) - product(A, model.B)
        with_X += cross(A, np.hstack([E, Z]))
        own += np.stack([cross(E, E), cross(Z, Z)])
    coefficients = model.inverse @ with_X
    taken = coefficients.T @ with_X
    residual = own - np.stack([taken[:k, :k], taken[k:, k:]])
    W = _root(residual[0], model.gram[0, 0])
    r = len(W)
    C = np.zeros((k, k))
    C[:r] = np.linalg.solve(np.linalg.cholesky(residual[1][:r, :r]).T, W) if r else 0.0
    B = model.B + coefficients[:, :k]
    return Plan(B - coefficients[:, k:] @ C, C, r)


def _refuse_leverage(A: Matrix, inverse: Matrix) -> None:
    if (np.einsum("ij,ij->i", product(A, inverse), A) > 1 - 1e-9).any():
        msg = (
            "there are records of leverage 1: their values would come out as they went in. Use "
            "coarser codes, or leave out terms."
        )
        raise ConfidentialError(msg)


def _root(S: Matrix, n: float) -> Matrix:
    r"""A matrix W with :math:`W^\top W = S`; variables without residuals have zeros."""
    length = np.sqrt(np.where(np.diag(S) > 1e-20 * n, np.diag(S), np.inf))
    sizes, axes = np.linalg.eigh(S / np.outer(length, length))
    kept = sizes > 1e-13
    shown = np.where(np.isinf(length), 0.0, length)
    return np.asarray(np.sqrt(sizes[kept])[:, None] * axes[:, kept].T * shown)


def _second_pass(data: Microdata, model: Model, draws: RowDraws, plan: Plan, path: Path) -> float:
    """Write the rows, and return the largest deviation of a moment."""
    import pyarrow.parquet as pq

    m, k = len(model.gram), len(model.Y)
    with_X, own = np.zeros((m, k)), np.zeros((k, k))
    writer: Any = None
    try:
        for start, batch in _batches(data, _names(model)):
            A, Z = model.design(batch), draws.rows(start, start + len(batch))
            made = _with_values(batch, model, product(A, plan.F) + product(Z, plan.C))
            old, new = model.confidential(batch), model.confidential(made)
            with_X += cross(A, new - old)
            own += cross(new, new) - cross(old, old)
            writer = writer or pq.ParquetWriter(path, made.schema, use_dictionary=_texts(model))
            writer.write_batch(made)
    finally:
        if writer is not None:
            writer.close()
    n = model.gram[0, 0]
    length = np.sqrt(np.maximum(np.diag(model.gram), np.finfo(np.float64).tiny))
    fits = np.abs(with_X).max(axis=1) / length / np.sqrt(n)
    return float(max(fits.max(), np.abs(own).max() / n))


def _with_values(batch: pa.RecordBatch, model: Model, scaled: Matrix) -> pa.RecordBatch:
    import pyarrow as pa

    for column, term in zip(scaled.T, model.Y, strict=True):
        place = batch.schema.get_field_index(term.name)
        field = pa.field(term.name, pa.float64())
        batch = batch.set_column(place, field, pa.array(term.centre + term.scale * column))
    return batch


def _texts(model: Model) -> list[str]:
    return list(dict.fromkeys(term.name for term in model.X if term.level is not None))
