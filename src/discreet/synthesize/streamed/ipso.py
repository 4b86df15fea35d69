r"""IPSO for records that do not fit into memory, in two passes of rows.

The first pass makes triangular factors of :math:`(X, Y, Z)`, block of rows by block of rows, with
standard normal draws Z. All products of columns are in these few rows, so that `ipso` on them is
`ipso` on the records. The second pass writes

.. math:: Y^* = X B + (Z - X B_s)\, W_s^{-1} W

where the draws Z are made again from a counter-based generator. Nothing of the length of the data
is held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import solve_triangular

from discreet.arrays import Real
from discreet.errors import ConfidentialError, DataError, ParameterError
from discreet.files import OWNER_ONLY, PARQUET, ending_of, written_whole
from discreet.microdata.border import attempt
from discreet.microdata.records import UnitRecords
from discreet.synthesize.algebra.decompose import check_room, fit, loadings
from discreet.synthesize.algebra.matrices import cross, product
from discreet.synthesize.algebra.orthonormal import householder, triangle
from discreet.synthesize.streamed.row_draws import RowDraws
from discreet.synthesize.streamed.terms import Term, terms_of
from discreet.synthesize.tolerances import DEPENDENT_X, ONE, SAME_ROWS, STREAMED_ROWS

if TYPE_CHECKING:
    import pyarrow as pa


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
    data: UnitRecords,
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
    Cost: the engine reads means, spreads and levels, and the records are streamed twice; memory
    for blocks of rows alone.

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
    X = terms_of(data, covariates, factors=True)
    records = Stream(data, X, terms_of(data, confidential, factors=False))
    draws = RowDraws(rng, len(confidential))
    plan = _first_pass(records, draws)
    with written_whole(target, OWNER_ONLY) as temporary:
        error = _second_pass(records, draws, plan, temporary)
        if not error < SAME_ROWS:
            raise DataError(
                f"moments of the written rows differ by {error:.2g} of their size, so the records "
                "came in another order, or changed, while they were read. Put them into a file "
                "first."
            )
    return Streamed(target, plan.rows, len(plan.root), plan.rank_residuals, error)


@dataclass(frozen=True)
class Stream:
    """The records with the columns of their model, as often as they are asked for.

    Attributes:
      data: The records.
      X: Terms of the model beside the constant.
      Y: Terms of the confidential variables.
    """

    data: UnitRecords
    X: list[Term]
    Y: list[Term]

    def batches(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The records in order, each batch with the number of its first row."""
        start, data = 0, self.data
        table = data.table.select(*dict.fromkeys(term.name for term in (*self.X, *self.Y)))
        stream = attempt(
            lambda: data.backend.to_pyarrow_batches(table, chunk_size=STREAMED_ROWS), data.origin
        )
        while (batch := attempt(lambda: next(stream, None), data.origin)) is not None:
            yield start, batch
            start += len(batch)

    def design(self, batch: pa.RecordBatch) -> Real:
        """The constant and X for some rows."""
        ones = np.ones(len(batch))
        return np.column_stack([ones, *(term.values(batch) for term in self.X)])

    def confidential(self, batch: pa.RecordBatch) -> Real:
        """Centred and scaled Y for some rows."""
        return np.column_stack([term.values(batch) for term in self.Y])


@dataclass(frozen=True)
class Plan:
    """How rows are made in the second pass: :math:`Y^* = X F + Z C`.

    Attributes:
      F: Coefficients of the constant and X: :math:`B - B_s C`.
      C: :math:`W_s^{-1} W`.
      kept: Columns of X that do not depend on those before them.
      root: Their triangular factor.
      lengths: Lengths of all columns of X.
      rows: Number of rows.
      rank_residuals: Rank of W.
    """

    F: Real
    C: Real
    kept: np.ndarray
    root: Real
    lengths: Real
    rows: int
    rank_residuals: int


def _check_names(confidential: Sequence[str], covariates: Sequence[str]) -> None:
    both = [name for name in confidential if name in covariates]
    if both or not confidential or isinstance(confidential, str) or isinstance(covariates, str):
        raise ParameterError(
            "expected lists of column names, at least one of them confidential and none in both "
            f"lists; got {confidential!r} and {covariates!r}."
        )


def _first_pass(records: Stream, draws: RowDraws) -> Plan:
    """Reduce rows and draws to a small matrix with the same products, and solve on that one."""
    m, k = len(records.X) + 1, len(records.Y)
    small, rows = np.zeros((0, m + 2 * k)), 0
    for start, batch in records.batches():
        rows = start + len(batch)
        parts = records.design(batch), records.confidential(batch), draws.rows(start, rows)
        small = np.vstack([small, householder(np.hstack(parts))])
        small = small if len(small) < STREAMED_ROWS else householder(small)
    X, YZ = small[:, :m], small[:, m:]
    kept = triangle(X, DEPENDENT_X).kept
    check_room(rows, k, len(kept), "X")
    left = fit(YZ, X).residuals
    W = loadings(left[:, :k])
    r = len(W)
    C = np.zeros((k, k))
    C[:r] = solve_triangular(loadings(left[:, k : k + r]), W) if r else 0.0
    Q, root = np.linalg.qr(X[:, kept])
    B = np.zeros((m, 2 * k))
    B[kept] = solve_triangular(root, Q.T @ YZ)
    lengths = np.linalg.norm(X, axis=0)
    return Plan(B[:, :k] - B[:, k:] @ C, C, kept, root, lengths, rows, r)


def _second_pass(records: Stream, draws: RowDraws, plan: Plan, path: Path) -> float:
    """Write the rows, and return the largest deviation of a moment."""
    import pyarrow.parquet as pq

    k, texts = len(plan.C), [term.name for term in records.X if term.level is not None]
    with_X, own = np.zeros((len(plan.F), k)), np.zeros((k, k))
    writer: Any = None
    try:
        for start, batch in records.batches():
            A, Z = records.design(batch), draws.rows(start, start + len(batch))
            _refuse_leverage(A[:, plan.kept], plan.root)
            made = _with_values(batch, records.Y, product(A, plan.F) + product(Z, plan.C))
            old, new = records.confidential(batch), records.confidential(made)
            with_X += cross(A, new - old)
            own += cross(new, new) - cross(old, old)
            writer = writer or pq.ParquetWriter(path, made.schema, use_dictionary=texts)
            writer.write_batch(made)
    finally:
        if writer is not None:
            writer.close()
    length = np.maximum(plan.lengths, np.finfo(np.float64).tiny)
    fits = np.abs(with_X).max(axis=1) / length / np.sqrt(plan.rows)
    return float(max(fits.max(), np.abs(own).max() / plan.rows))


def _refuse_leverage(A: Real, root: Real) -> None:
    Q = product(A, solve_triangular(root, np.eye(len(root))))
    if (np.einsum("ij,ij->i", Q, Q) >= ONE).any():
        raise ConfidentialError(
            "there are records of leverage 1: their values would come out as they went in. Use "
            "coarser codes, or leave out terms."
        )


def _with_values(batch: pa.RecordBatch, terms: list[Term], scaled: Real) -> pa.RecordBatch:
    import pyarrow as pa

    for column, term in zip(scaled.T, terms, strict=True):
        place = batch.schema.get_field_index(term.name)
        field = pa.field(term.name, pa.float64())
        batch = batch.set_column(place, field, pa.array(term.centre + term.scale * column))
    return batch
