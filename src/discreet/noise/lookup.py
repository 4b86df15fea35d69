"""From keys to noise: exact borders in whole keys, and look-up tables of other programs."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.arrays import Real, Whole
from discreet.errors import DataError, KeysError, ParameterError, within
from discreet.frames import Frame, read_frame
from discreet.randomness import stream

if TYPE_CHECKING:
    from discreet.noise.matrix import TransitionMatrix

MAX_MODULUS = 2**44
"""Beyond this, borders stored as float64 no longer fix a whole key."""
# Cumulated probabilities carry a rounding of some 2^-50; a border of 0.3 must be the key
# 0.3 * modulus whatever the last bits of its sum are.
_SNAP = 2.0**-46


def noise(
    matrix: TransitionMatrix, counts: npt.ArrayLike, keys: npt.ArrayLike, modulus: int, edge: str
) -> Whole:
    """See `TransitionMatrix.noise`."""
    n, k = whole_counts(counts), _keys(keys)
    if n.shape != k.shape:
        raise KeysError(f"there are {n.shape} counts but {k.shape} keys; every cell needs one.")
    cuts, moves = borders(matrix, modulus, edge)
    out = np.empty(n.size, dtype=np.int64)

    flat_n, flat_k = np.ascontiguousarray(n).ravel(), np.ascontiguousarray(k).ravel()
    from discreet.noise.kernels import look_up  # start-up time: Numba

    # the loop checks as it goes: tests on whole arrays beforehand would read them twice
    bad = look_up(flat_n, flat_k, modulus, matrix.starts, matrix.period, cuts, moves, out)
    if bad >= 0 and flat_n[bad] < 0:
        raise DataError(f"counts must be at least 0, but cell {bad} holds {flat_n[bad]}.")
    if bad >= 0:
        raise KeysError(
            f"keys must lie in 0..{modulus - 1}, but the key of cell {bad} does not. "
            "Reduce cell keys modulo the size of their range first."
        )
    return out.reshape(n.shape)


def borders(matrix: TransitionMatrix, modulus: int, edge: str) -> tuple[Whole, Whole]:
    """Whole-number borders and deviations of the intervals, padded to a power of two.

    Interval `k` of a row holds the keys below border `k` that no earlier interval holds; the
    last one ends at the modulus. With upper end `u` the border is `⌈u·modulus⌉` for
    ``edge="right"`` and `⌊u·modulus⌋ + 1` for ``edge="left"``, where a product within the
    rounding of float64 of a whole number counts as that number.
    """
    if edge not in ("right", "left"):
        raise ParameterError(f'edge must be "right" or "left", got {edge!r}.')
    if not 1 <= modulus <= MAX_MODULUS:
        raise ParameterError(f"modulus must lie in 1..2**44, got {modulus}.")
    moves, widths, sizes = _pack_intervals(matrix)
    upper = np.cumsum(widths, axis=1) * modulus
    whole = np.rint(upper)
    near = np.abs(upper - whole) <= _SNAP * modulus
    up, down = (np.where(near, whole, f(upper)) for f in (np.ceil, np.floor))
    cuts = (up if edge == "right" else down + 1).astype(np.int64)
    # the last interval takes what rounding leaves beyond it, and padding must never be reached
    last = np.arange(cuts.shape[1])[None, :] >= sizes[:, None] - 1
    return np.where(last, modulus, np.minimum(cuts, modulus)), moves


def shuffle_intervals(matrix: TransitionMatrix, threshold: float, seed: int) -> TransitionMatrix:
    """See `TransitionMatrix.modified`."""
    within("threshold", threshold, 1)
    rng = stream(seed, "noise.modified")
    rows = []
    for moves, widths in zip(matrix.moves, matrix.widths, strict=True):
        pieces = []
        for v, p in zip(moves, widths, strict=True):
            pieces += _cut_interval(v, p, threshold)
        rows.append([pieces[k] for k in rng.permutation(len(pieces))])
    moves, widths = pad(rows)
    parameters = {**matrix.parameters, "modified": threshold}
    return replace(matrix, moves=moves, widths=widths, parameters=parameters)


def pad(rows: list[list[tuple[int, float]]]) -> tuple[Whole, Real]:
    """Intervals (deviation, width) of every row as two arrays, filled up with width 0."""
    longest = max((len(row) for row in rows), default=0)
    moves = np.zeros((len(rows), longest), dtype=np.int64)
    widths = np.zeros((len(rows), longest))
    for r, row in enumerate(rows):
        for k, (move, width) in enumerate(row):
            moves[r, k], widths[r, k] = move, width
    return moves, widths


def _cut_interval(move: int, width: float, threshold: float) -> list[tuple[int, float]]:
    """Pieces of the threshold and a remainder; a certain move stays whole."""
    if width < threshold or width == 1:
        return [(int(move), float(width))] if width > 0 else []
    full = int(width / threshold + 1e-12)  # 0.6 / 0.2 is 2.9999999999999996
    rest = width - full * threshold
    pieces = [(int(move), threshold)] * full
    return [*pieces, (int(move), float(rest))] if rest > 1e-12 else pieces


def _pack_intervals(matrix: TransitionMatrix) -> tuple[Whole, Real, Whole]:
    """Moves and widths without empty intervals in front, and the number left in each row."""
    # stable: the order of the intervals decides which key gets which noise
    order = np.argsort(matrix.widths == 0, axis=1, kind="stable")
    moves = np.take_along_axis(matrix.moves, order, axis=1)
    widths = np.take_along_axis(matrix.widths, order, axis=1)
    sizes: Whole = np.count_nonzero(widths, axis=1)
    columns = 1 << int(sizes.max() - 1).bit_length()  # the search halves, see `look_up`
    fit = max(columns - moves.shape[1], 0)
    room = ((0, 0), (0, fit))
    moves, widths = np.pad(moves, room)[:, :columns], np.pad(widths, room)[:, :columns]
    return np.ascontiguousarray(moves), widths, sizes


def whole_counts(counts: npt.ArrayLike) -> Whole:
    """The counts as int64; anything but an integer type is refused."""
    array = np.asarray(counts)
    if array.dtype.kind not in "iu":
        raise DataError(f"counts must be whole numbers of an integer type, got {array.dtype}.")
    return array.astype(np.int64, copy=False)


def _keys(keys: npt.ArrayLike | None) -> Whole:
    if keys is None:
        raise KeysError("there are no keys; give every cell one.")
    array = np.asarray(keys)
    missing = int(np.count_nonzero(np.ma.getmaskarray(keys))) if np.ma.isMaskedArray(keys) else 0
    if array.dtype.kind in "fO":
        missing += sum(key is None or key != key for key in array.ravel().tolist())
    if missing:
        raise KeysError(f"{missing} of {array.size} keys are missing; every cell needs one.")
    if array.dtype.kind not in "iu":
        raise KeysError(
            f"keys must be whole numbers of an integer type, got {array.dtype}. Fractional keys "
            "are scaled first: 8 decimals become whole keys with modulus 10**8."
        )
    return array.astype(np.int64, copy=False)


Make = Callable[..., "TransitionMatrix"]
"""The class of matrices, which lies above this file."""
PTABLE_COLUMNS = ("i", "j", "p", "v", "p_int_lb", "p_int_ub", "type")
# a column of our own: what the layout has no place for, on the first line
_ABOUT = "about"
_PEER_NAME = "table in the ptable layout"
# beyond it the printed ends decide: keys are compared with ends, not with p
_SAME_END = 1e-12
# the layout has pcv up to here; larger counts n use the row 501 + (n - 501) % 250
ONS_LAST = 750
ONS_PERIOD = 250
_MAX_EXPANDED = 10_000


def write_ptable(matrix: TransitionMatrix, path: Path) -> None:
    """See `TransitionMatrix.to_ptable_csv`."""
    last, about = int(matrix.starts[-1]), _about(matrix)
    if matrix.period > 1:
        raise ParameterError(
            f"the last {matrix.period} rows of this matrix take turns; the ptable layout has one "
            "last row for all larger counts. Use to_json instead."
        )
    if last > _MAX_EXPANDED:
        raise ParameterError(f"the ptable layout would need {last} rows. Use to_json instead.")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow((*PTABLE_COLUMNS, *([_ABOUT] if about else [])))
        for count in range(last + 1):  # the layout has one row for each count
            for line in _ptable_lines(matrix, count):
                writer.writerow((*line, *about))
                about = [""] if about else []


def _about(matrix: TransitionMatrix) -> list[str]:
    """What the layout has no place for; nothing for a matrix that was read without it."""
    if matrix.name == _PEER_NAME and matrix == replace(matrix, **_peer_facts(matrix)):
        return []
    facts = {key: getattr(matrix, key) for key in ("name", "blocked")}
    lists = {"parameters": dict(matrix.parameters), "starts": matrix.starts.tolist()}
    return [json.dumps({**facts, **lists})]


def _peer_facts(matrix: TransitionMatrix) -> dict[str, Any]:
    """What is known of a matrix whose file has no column of our own."""
    return {"name": _PEER_NAME, "blocked": never_reached(matrix), "parameters": {}}


def read_ptable(path: Path, make: Make) -> TransitionMatrix:
    """See `TransitionMatrix.from_ptable_csv`."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if absent := set(PTABLE_COLUMNS) - set(reader.fieldnames or ()):
            raise ParameterError(
                f"{path.name} lacks the columns {', '.join(sorted(absent))} of a perturbation "
                "table; `discreet ptable --out` writes one."
            )
        texts = list(reader)
    lines = [_parse_line(line, path) for line in texts]
    rows = {i: _widths(list(group)) for i, group in groupby(lines, lambda line: line[0])}
    if list(rows) != list(range(len(rows))):
        raise ParameterError(f"{path.name} must hold rows for the counts 0, 1, 2, … in order.")
    facts = _facts(texts[0].get(_ABOUT) or "{}", path) if texts else {}
    starts = np.array(facts.pop("starts", range(len(rows))))
    moves, widths = pad([rows[i] for i in starts.tolist()])
    read = make(_PEER_NAME, starts, moves, widths)
    return replace(read, **{**_peer_facts(read), **facts})


def _facts(text: str, path: Path) -> dict[str, Any]:
    """What our own column says: name, blocked values, parameters, first counts of the rows."""
    try:
        facts = json.loads(text)
        known = {"name", "blocked", "parameters", "starts"} & set(facts)
        return {key: facts[key] for key in known}
    except (TypeError, ValueError):
        raise ParameterError(f"the column {_ABOUT!r} of {path.name} cannot be read.") from None


def never_reached(matrix: TransitionMatrix) -> int:
    """The largest `b` such that no count is published as a value in `1..b`."""
    least = int(matrix.starts[-1]) + 2 * matrix.max_move + 1
    for count in range(least):
        target = count + matrix.deviations[matrix.probabilities(count) > 0]
        least = min(least, int(target[target > 0].min(initial=least)))
    return least - 1


def to_ons(matrix: TransitionMatrix, keys: int) -> Frame:
    """See `TransitionMatrix.to_ons`."""
    if keys not in (256, 4096):
        raise ParameterError(f"the ONS layout has 256 or 4096 keys, got {keys}.")
    head = int(matrix.starts[len(matrix.starts) - matrix.period])
    # counts above 750 must share the law of the row that the ONS rule gives them
    if head > ONS_LAST - ONS_PERIOD + 1 or ONS_PERIOD % matrix.period:
        raise ParameterError(
            f"the ONS layout reuses the rows {ONS_LAST - ONS_PERIOD + 1} to {ONS_LAST} for larger "
            f"counts; this matrix changes at count {head} with period {matrix.period}."
        )
    pcv, ckey = (a.ravel() for a in np.mgrid[0 : ONS_LAST + 1, 0:keys])
    return Frame({"pcv": pcv, "ckey": ckey, "pvalue": matrix.noise(pcv, ckey, keys)})


def from_ons(frame: Any, make: Make) -> TransitionMatrix:
    """See `TransitionMatrix.from_ons`."""
    pcv, ckey, pvalue = _ons_columns(frame)
    keys = int(ckey.max()) + 1
    if keys not in (256, 4096):
        raise ParameterError(f"the largest ckey must be 255 or 4095, got {keys - 1}.")
    if pcv.max() > ONS_LAST or min(pcv.min(), ckey.min()) < 0:
        raise ParameterError(f"pcv must lie in 0..{ONS_LAST} and ckey at 0 or above.")
    table = np.zeros((ONS_LAST + 1, keys), dtype=np.int64)
    table[pcv, ckey] = pvalue
    # equal neighbours make one interval (deviation, width)
    runs = [[(v, sum(1 for _ in run) / keys) for v, run in groupby(row)] for row in table.tolist()]
    moves, widths = pad(runs)
    starts = np.arange(ONS_LAST + 1)
    read = make("table in the ONS layout", starts, moves, widths, ONS_PERIOD)
    return replace(read, blocked=never_reached(read))


def _ptable_lines(matrix: TransitionMatrix, count: int) -> Iterable[tuple[str, ...]]:
    """The intervals of one count, in digits that give back the same numbers."""
    row = int(matrix.row_of(count))
    widths = matrix.widths[row]
    begin = 0.0
    for v, p, end in zip(matrix.moves[row].tolist(), widths, np.cumsum(widths), strict=True):
        if p > 0:
            numbers = (repr(float(x)) for x in (begin, end))
            yield str(count), str(count + v), repr(float(p)), str(v), *numbers, "all"
        begin = end


def _parse_line(line: dict[str, str], path: Path) -> tuple[int, int, float, float, float]:
    try:
        p, low, high = (float(line[key]) for key in ("p", "p_int_lb", "p_int_ub"))
        return int(line["i"]), int(line["v"]), p, low, high
    except (TypeError, ValueError):
        raise ParameterError(f"{path.name} holds a line that is not a number: {line}.") from None


def _widths(lines: list[tuple[int, int, float, float, float]]) -> list[tuple[int, float]]:
    """Intervals of one row: by their probabilities, or by their ends where these differ."""
    p, high = np.array([line[2] for line in lines]), np.array([line[4] for line in lines])
    if np.abs(np.cumsum(p) - high).max() > _SAME_END:
        p = high - np.array([line[3] for line in lines])
    return [(line[1], float(width)) for line, width in zip(lines, p, strict=True)]


def _ons_columns(frame: Any) -> tuple[Whole, Whole, Whole]:
    data = read_frame(frame)
    if absent := {"pcv", "ckey", "pvalue"} - set(data.column_names):
        raise ParameterError(f"the frame lacks the columns {sorted(absent)} of the ONS layout.")
    columns = []
    for name in ("pcv", "ckey", "pvalue"):
        # readers make floats of whole numbers where a column has gaps
        column = np.asarray(data[name].to_numpy(), dtype=np.float64)
        if not np.all(np.isfinite(column)) or np.any(column != np.rint(column)):
            raise ParameterError(f"the column {name} must hold whole numbers.")
        columns.append(column.astype(np.int64))
    pcv, ckey, pvalue = columns
    if not len(pcv):
        raise ParameterError("the frame in the ONS layout has no lines.")
    return pcv, ckey, pvalue
