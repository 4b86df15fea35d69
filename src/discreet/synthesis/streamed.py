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
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from discreet.arrays import Real
from discreet.errors import ConfidentialError, DataError, ParameterError, check_known
from discreet.files import OWNER_ONLY, PARQUET, ending_of, written_whole
from discreet.frames import Frame
from discreet.parquet import write_parquet
from discreet.records.backend import fetch
from discreet.records.connection import attempt
from discreet.records.records import UnitRecords
from discreet.synthesis.decompose import DEPENDENT_X, check_room, fit, loadings
from discreet.synthesis.large import weighs_too_much
from discreet.synthesis.orthonormal import cross, householder, product, triangle
from discreet.synthesis.safety import LEAST_FREEDOM

# Rows read from an engine at a time: some megabytes for a dozen columns, whatever the table's size.
STREAMED_ROWS = 65_536


# Rows that are drawn together. It is part of what a key draws, so it never changes.
DRAWN_ROWS = 4096


@dataclass(frozen=True)
class Streamed:
    """What was reached."""

    path: Path  # the file with the synthetic records
    rows: int
    rank_X: int  # of the model with the constant
    rank_residuals: int
    # Largest deviation of a preserved moment, between centred and scaled columns, as a share of
    # their lengths; measured on the rows that were written.
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
    Records of leverage above 1/3 are refused; sums and squares are held against no rule of
    suppression, as `discreet.synthesize` does.
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
    both = [name for name in confidential if name in covariates]
    if both or not confidential or isinstance(confidential, str) or isinstance(covariates, str):
        raise ParameterError(
            "expected lists of column names, at least one of them confidential and none in both "
            f"lists; got {confidential!r} and {covariates!r}."
        )
    X = _terms(data, covariates, factors=True)
    records = RecordStream(data, X, _terms(data, confidential, factors=False))
    draws = RowDraws(rng, len(confidential))
    plan = _first_pass(records, draws)
    with written_whole(target, OWNER_ONLY) as temporary:
        error = _second_pass(records, draws, plan, temporary)
        # Draws that meet other rows in the second pass than in the first miss the moments by far
        # more than rounding does. NaN is no error below the limit either.
        if not error < 1e-6:
            raise DataError(
                f"moments of the written rows differ by {error:.2g} of their size, so the records "
                "came in another order, or changed, while they were read. Put them into a file "
                "first."
            )
    return Streamed(target, plan.rows, len(plan.root), plan.rank_residuals, error)


@dataclass(frozen=True)
class StreamedTerm:
    """A column of a model: a number, centred and scaled, or the indicator of a level."""

    name: str  # column of the records
    level: Any = None  # the level, for an indicator
    centre: float = 0.0  # subtracted from the numbers
    scale: float = 1.0  # the numbers are divided by it

    def values(self, batch: Frame) -> np.ndarray:
        """The column of some rows in memory."""
        column = batch.column(self.name)
        if self.level is not None:
            return column.equal(self.level).astype(np.float64)
        return (column.cast("float64").to_numpy() - self.centre) / self.scale


@dataclass(frozen=True)
class RecordStream:
    """The records with the columns of their model, as often as they are asked for."""

    data: UnitRecords
    X: list[StreamedTerm]  # terms of the model beside the constant
    Y: list[StreamedTerm]  # terms of the confidential variables

    def batches(self) -> Iterator[tuple[int, Frame]]:
        """The records in order, each batch with the number of its first row."""
        start, data = 0, self.data
        table = data.table.select(*dict.fromkeys(term.name for term in (*self.X, *self.Y)))
        stream = attempt(lambda: data.backend.to_batches(table, rows=STREAMED_ROWS), data.origin)
        while (batch := attempt(lambda: next(stream, None), data.origin)) is not None:
            yield start, batch
            start += len(batch)

    def design(self, batch: Frame) -> Real:
        """The constant and X for some rows."""
        ones = np.ones(len(batch))
        return np.column_stack([ones, *(term.values(batch) for term in self.X)])

    def confidential(self, batch: Frame) -> Real:
        """Centred and scaled Y for some rows."""
        return np.column_stack([term.values(batch) for term in self.Y])


@dataclass(frozen=True)
class TwoPassPlan:
    """How rows are made in the second pass: :math:`Y^* = X F + Z C`."""

    F: Real  # coefficients of the constant and X: B - B_s C
    C: Real  # W_s^{-1} W
    kept: np.ndarray  # columns of X that do not depend on those before them
    root: Real  # their triangular factor
    lengths: Real  # lengths of all columns of X
    rows: int
    rank_residuals: int  # rank of W


def _first_pass(records: RecordStream, draws: RowDraws) -> TwoPassPlan:
    """Reduce rows and draws to a small matrix with the same products, and solve on that one."""
    m, k = len(records.X) + 1, len(records.Y)
    small, rows = np.zeros((0, m + 2 * k)), 0
    for start, batch in records.batches():
        rows = start + len(batch)
        parts = records.design(batch), records.confidential(batch), draws.rows(start, rows)
        # Reflections keep all products of columns to full precision; adding up the products
        # themselves would square the condition number.
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
    # Coefficients from an orthonormal factor: those by normal equations lose the digits that make
    # fits exact when columns are nearly dependent.
    Q, root = np.linalg.qr(X[:, kept])
    B = np.zeros((m, 2 * k))
    B[kept] = solve_triangular(root, Q.T @ YZ)
    lengths = np.linalg.norm(X, axis=0)
    return TwoPassPlan(B[:, :k] - B[:, k:] @ C, C, kept, root, lengths, rows, r)


def _second_pass(records: RecordStream, draws: RowDraws, plan: TwoPassPlan, path: Path) -> float:
    """Write the rows, and return the largest deviation of a moment."""
    k = len(plan.C)
    with_X, own = np.zeros((len(plan.F), k)), np.zeros((k, k))

    def drawn() -> Iterator[Frame]:
        nonlocal with_X, own
        for start, batch in records.batches():
            A, Z = records.design(batch), draws.rows(start, start + len(batch))
            Q = product(A[:, plan.kept], solve_triangular(plan.root, np.eye(len(plan.root))))
            if weighs_too_much(Q).any():
                raise ConfidentialError(
                    "there are records of leverage above 1/3: their values could be read from "
                    "their fits. Use coarser codes, or leave out terms."
                )
            values, made = product(A, plan.F) + product(Z, plan.C), batch
            for column, term in zip(values.T, records.Y, strict=True):
                made = made.with_column(term.name, term.centre + term.scale * column)
            # Measured on what is written, so that the promise is checked and not assumed.
            old, new = records.confidential(batch), records.confidential(made)
            with_X += cross(A, new - old)
            own += cross(new, new) - cross(old, old)
            yield made

    write_parquet(path, drawn(), rows_per_group=STREAMED_ROWS)
    length = np.maximum(plan.lengths, np.finfo(np.float64).tiny)
    fits = np.abs(with_X).max(axis=1) / length / np.sqrt(plan.rows)
    return float(max(fits.max(), np.abs(own).max() / plan.rows))


class RowDraws:
    """An n×k matrix of standard normal draws of which nothing is held but a key.

    Rows come from a counter-based generator (Philox, 128 bits of key): those of one unit of rows
    have a counter of their own, so that any rows can be drawn in any order, and again.
    """

    def __init__(self, rng: np.random.Generator, columns: int) -> None:
        self.columns = columns
        self._key = rng.integers(0, 2**64, size=2, dtype=np.uint64)
        self._last: tuple[int, Real] | None = None

    def rows(self, start: int, stop: int) -> Real:
        """The draws of the rows from `start` up to, and without, `stop`."""
        out = np.empty((stop - start, self.columns))
        for unit in range(start // DRAWN_ROWS, -(-stop // DRAWN_ROWS)):
            first = unit * DRAWN_ROWS
            low, high = max(start, first), min(stop, first + DRAWN_ROWS)
            if self._last is None or self._last[0] != unit:
                bits = np.random.Philox(key=self._key, counter=[0, 0, 0, unit])
                drawn = np.random.Generator(bits).standard_normal((DRAWN_ROWS, self.columns))
                self._last = unit, drawn
            out[low - start : high - start] = self._last[1][low - first : high - first]
        return out


def _terms(data: UnitRecords, names: Sequence[str], *, factors: bool) -> list[StreamedTerm]:
    """The terms of some columns: numbers, or all levels but one of `factors`, columns of text."""
    check_known("column", names, data.columns)
    schema = data.table.schema()
    numbers = [name for name in names if schema[name].is_numeric() or schema[name].is_boolean()]
    for name in names:
        if name not in numbers and not (factors and schema[name].is_string()):
            expected = "numbers or text" if factors else "numbers"
            raise ParameterError(f"column {name!r} holds {schema[name]}, expected {expected}.")
    # Centred and scaled by the engine's means and spreads: any numbers near them would do, since
    # what is preserved does not depend on them, but products of raw columns lose digits.
    found = _centred_numbers(data, numbers) if numbers else {}
    each = ([found[name]] if name in found else _levels(data, name) for name in names)
    return [term for terms in each for term in terms]


def _centred_numbers(data: UnitRecords, names: Sequence[str]) -> dict[str, StreamedTerm]:
    asked: dict[str, Any] = {}
    for i, name in enumerate(names):
        column = data.table[name].cast("float64")
        asked |= {f"n{i}": column.count(), f"mean{i}": column.mean()}
        asked[f"sd{i}"] = column.std(how="pop")
    wanted = data.table.aggregate(rows=data.table.count(), **asked)
    answer = fetch(data.backend, wanted, data.origin).to_pylist()[0]
    terms = {}
    for i, name in enumerate(names):
        mean, spread = answer[f"mean{i}"], answer[f"sd{i}"]
        if not answer["rows"] or answer[f"n{i}"] < answer["rows"] or not np.isfinite(mean):
            raise DataError(
                f"column {name!r} holds missing or infinite values, or no rows. Leave such rows "
                "out first; streamed records are not filled in."
            )
        terms[name] = StreamedTerm(name, centre=mean, scale=spread if spread > 0 else 1.0)
    return terms


def _levels(data: UnitRecords, name: str) -> list[StreamedTerm]:
    counted = data.table.group_by(name).aggregate(rows=data.table.count())
    found = fetch(data.backend, counted.order_by(name), data.origin).to_pylist()
    if any(row[name] is None for row in found):
        raise DataError(
            f"column {name!r} holds missing values. Make them a level of their own first."
        )
    fewest = 1 + LEAST_FREEDOM
    if min(row["rows"] for row in found) < fewest:
        raise ConfidentialError(
            f"levels of {name!r} with fewer than {fewest} rows would come out as they went in, or "
            "mirrored. Use coarser codes."
        )
    return [StreamedTerm(name, level=row[name]) for row in found[1:]]
