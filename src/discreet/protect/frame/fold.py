r"""Look-up tables drawn in advance, as in Thompson, Broadfoot & Elazar (2013).

The table has 256 rows and a column for each count; the row of a cell is the exclusive or of the
four bytes of its key,

.. math:: r = k_0 \oplus k_1 \oplus k_2 \oplus k_3,\qquad k = k_0 + 2^8k_1 + 2^{16}k_2 + 2^{24}k_3,

so neighbouring keys get unrelated noise. Counts beyond the table take turns in its last columns.
A pre-drawn table is a transition matrix whose intervals are 256 slots, looked up by `r`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError
from discreet.noise.matrix import TransitionMatrix
from discreet.protect.cells import Cells
from discreet.protect.frame.zeros import keys_of, keys_with_zeros
from discreet.randomness import stream
from discreet.tables.values import Whole

SLOTS = 256


def fold(keys: npt.ArrayLike) -> Whole:
    """The exclusive or of the four bytes of keys below 2³²."""
    k = np.asarray(keys, dtype=np.int64)
    k = k ^ (k >> 16)
    return (k ^ (k >> 8)) & (SLOTS - 1)


def folded_noise(cells: Cells, matrix: TransitionMatrix) -> Whole:
    """The noise that count and folded key look up; structural zeros have none."""
    keys = keys_of(cells) if matrix.keeps_zeros else keys_with_zeros(cells)
    noise = matrix.noise(cells.count, fold(keys), SLOTS)
    return np.where(cells.impossible, 0, noise) if cells.impossible.any() else noise


def predrawn(matrix: TransitionMatrix, *, seed: int) -> TransitionMatrix:
    """The matrix with its probabilities rounded to 256 slots, which are shuffled in every row.

    A deviation of probability `p` gets `256 p` slots, rounded; what is missing or left over falls
    to the most probable ones. Mean and variance hold to about 1/256 only.
    """
    rng = stream(seed, "protect.predrawn")
    slots = [rng.permutation(_slots(row, matrix.deviations)) for row in matrix.law]
    parameters = {**matrix.parameters, "slots": SLOTS}
    return TransitionMatrix(
        matrix.name, matrix.starts, *_intervals(slots), matrix.period, matrix.blocked, parameters
    )


def from_predrawn(table: npt.ArrayLike, repeated: int) -> TransitionMatrix:
    """A matrix from a table of noise values, 256 rows by counts 1, 2, … in columns.

    Args:
      table: The noise of each row and count.
      repeated: How many of the last columns serve larger counts: with `n` columns in all, count
        `N > n - repeated` uses column `n - repeated + N mod repeated + 1`.
    """
    noise = np.asarray(table)
    if noise.ndim != 2 or len(noise) != SLOTS or noise.dtype.kind not in "iu":
        raise ParameterError(
            f"a pre-drawn table has {SLOTS} rows of whole numbers, got shape {noise.shape} of "
            f"{noise.dtype}."
        )
    size = noise.shape[1]
    if not 1 <= repeated <= size:
        raise ParameterError(f"repeated must lie in 1..{size}, got {repeated}.")
    single = size - repeated
    turns = [single + count % repeated for count in range(single + 1, size + 1)]
    columns = [*range(single), *turns]
    slots = [np.zeros(SLOTS, dtype=np.int64), *noise[:, columns].T.astype(np.int64)]
    return TransitionMatrix(
        "table drawn in advance", np.arange(size + 1), *_intervals(slots), repeated
    )


def _slots(law: npt.NDArray[np.float64], deviations: Whole) -> Whole:
    """The deviations of one row, each as often as its probability asks for."""
    often = np.rint(SLOTS * law).astype(np.int64)
    order = np.argsort(-law, kind="stable")
    missing = SLOTS - int(often.sum())
    for step in range(abs(missing)):
        often[order[step % np.count_nonzero(law)]] += np.sign(missing)
    return np.repeat(deviations, often)


def _intervals(slots: list[Whole]) -> tuple[Whole, npt.NDArray[np.float64]]:
    moves = np.array(slots)
    return moves, np.full(moves.shape, 1 / SLOTS)
