"""Transition matrices in the layouts of other programs."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import ParameterError
from discreet.noise.checks import FloatArray, IntArray
from discreet.noise.lookup import pad

if TYPE_CHECKING:
    import pyarrow

    from discreet.noise.matrix import TransitionMatrix

PTABLE_COLUMNS = ("i", "j", "p", "v", "p_int_lb", "p_int_ub", "type")
_DECIMALS = 8

ONS_LAST = 750
ONS_PERIOD = 250
_MAX_EXPANDED = 10_000


def to_frame(matrix: TransitionMatrix) -> pyarrow.Table:
    """See `TransitionMatrix.to_frame`."""
    import pyarrow as pa

    row, piece = np.nonzero(matrix.widths)
    i, v, p = matrix.starts[row], matrix.moves[row, piece], matrix.widths[row, piece]
    ub = np.cumsum(matrix.widths, axis=1)[row, piece]
    kind = np.full(len(i), "all")
    return pa.table({"i": i, "j": i + v, "p": p, "v": v, "lb": ub - p, "ub": ub, "type": kind})


def write_ptable(matrix: TransitionMatrix, path: Path) -> None:
    """See `TransitionMatrix.to_ptable_csv`."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(PTABLE_COLUMNS)
        for count in _own_rows(matrix):
            writer.writerows(_ptable_lines(matrix, count))


def read_ptable(path: Path) -> TransitionMatrix:
    """See `TransitionMatrix.from_ptable_csv`."""
    from discreet.noise.matrix import TransitionMatrix

    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if absent := set(PTABLE_COLUMNS) - set(reader.fieldnames or ()):
            raise ParameterError(f"{path.name} lacks the columns {sorted(absent)} of a ptable.")
        lines = [_parsed(line, path) for line in reader]
    rows = {i: [(v, p) for _, v, p in group] for i, group in groupby(lines, lambda line: line[0])}
    if list(rows) != list(range(len(rows))):
        raise ParameterError(f"{path.name} must hold rows for the counts 0, 1, 2, … in order.")
    moves, widths = pad(list(rows.values()))
    starts = np.arange(len(rows))
    return TransitionMatrix(f"table read from {path.name}", starts, moves, widths)


def to_ons(matrix: TransitionMatrix, keys: int) -> pyarrow.Table:
    """See `TransitionMatrix.to_ons`."""
    import pyarrow as pa

    if keys not in (256, 4096):
        raise ParameterError(f"the ONS layout has 256 or 4096 keys, got {keys}.")
    _check_pcv(matrix)
    pcv, ckey = (a.ravel() for a in np.mgrid[0 : ONS_LAST + 1, 0:keys])
    return pa.table({"pcv": pcv, "ckey": ckey, "pvalue": matrix.noise(pcv, ckey, keys)})


def from_ons(frame: Any) -> TransitionMatrix:
    """See `TransitionMatrix.from_ons`."""
    from discreet.noise.matrix import TransitionMatrix

    pcv, ckey, pvalue = _ons_columns(frame)
    keys = int(ckey.max()) + 1
    if keys not in (256, 4096):
        raise ParameterError(f"the largest ckey must be 255 or 4095, got {keys - 1}.")
    if pcv.max() > ONS_LAST or min(pcv.min(), ckey.min()) < 0:
        raise ParameterError(f"pcv must lie in 0..{ONS_LAST} and ckey at 0 or above.")
    table = np.zeros((ONS_LAST + 1, keys), dtype=np.int64)
    table[pcv, ckey] = pvalue
    moves, widths = pad([_runs(row) for row in table])
    starts = np.arange(ONS_LAST + 1)
    return TransitionMatrix("table in the ONS layout", starts, moves, widths, ONS_PERIOD)


def _own_rows(matrix: TransitionMatrix) -> range:
    """Every count up to the first of the last row, for layouts that have one row per count."""
    last = int(matrix.starts[-1])
    if matrix.period > 1:
        raise ParameterError(
            f"the last {matrix.period} rows of this matrix take turns; the ptable layout has one "
            "last row for all larger counts. Use to_json instead."
        )
    if last > _MAX_EXPANDED:
        raise ParameterError(f"the ptable layout would need {last} rows. Use to_json instead.")
    return range(last + 1)


def _ptable_lines(matrix: TransitionMatrix, count: int) -> Iterable[tuple[str, ...]]:
    """The intervals of one count, their ends rounded to 8 decimals."""
    row = int(matrix.row_of(count))
    ends = np.round(np.cumsum(matrix.widths[row]), _DECIMALS)
    begins = np.concatenate([[0.0], ends[:-1]])
    for v, lb, ub in zip(matrix.moves[row].tolist(), begins, ends, strict=True):
        if ub > lb:
            p, low, high = (f"{x:.{_DECIMALS}f}" for x in (ub - lb, lb, ub))
            yield str(count), str(count + v), p, str(v), low, high, "all"


def _parsed(line: dict[str, str], path: Path) -> tuple[int, int, float]:
    try:
        low, high = float(line["p_int_lb"]), float(line["p_int_ub"])
        return int(line["i"]), int(line["v"]), high - low
    except (TypeError, ValueError):
        raise ParameterError(f"{path.name} holds a line that is not a number: {line}.") from None


def _check_pcv(matrix: TransitionMatrix) -> None:
    """Counts above 750 must share the law of the row that the ONS rule gives them."""
    head = int(matrix.starts[len(matrix.starts) - matrix.period])
    if head > ONS_LAST - ONS_PERIOD + 1 or ONS_PERIOD % matrix.period:
        raise ParameterError(
            f"the ONS layout reuses the rows {ONS_LAST - ONS_PERIOD + 1} to {ONS_LAST} for larger "
            f"counts; this matrix changes at count {head} with period {matrix.period}."
        )


def _ons_columns(frame: Any) -> tuple[IntArray, IntArray, IntArray]:
    import narwhals as nw

    data = nw.from_native(frame, eager_only=True)
    if absent := {"pcv", "ckey", "pvalue"} - set(data.columns):
        raise ParameterError(f"the frame lacks the columns {sorted(absent)} of the ONS layout.")
    pcv, ckey, pvalue = (_whole(data[c].to_numpy(), c) for c in ("pcv", "ckey", "pvalue"))
    if not len(pcv):
        raise ParameterError("the frame in the ONS layout has no lines.")
    return pcv, ckey, pvalue


def _whole(column: FloatArray, name: str) -> IntArray:
    """Integers, also where a reader made floats of them."""
    whole = np.asarray(column, dtype=np.float64)
    if not np.all(np.isfinite(whole)) or np.any(whole != np.rint(whole)):
        raise ParameterError(f"the column {name} must hold whole numbers.")
    return whole.astype(np.int64)


def _runs(values: IntArray) -> list[tuple[int, float]]:
    """Equal neighbours as one interval (deviation, width)."""
    return [(int(v), sum(1 for _ in run) / len(values)) for v, run in groupby(values.tolist())]
