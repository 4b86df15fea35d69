"""From keys to noise: exact borders in whole keys, and the order of the intervals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.arrays import Real, Whole
from discreet.errors import DataError, KeysError, ParameterError, within
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
