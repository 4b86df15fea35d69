"""The cell key method."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.arrays import Real, Whole
from discreet.errors import KeysError, ParameterError
from discreet.noise.entropy import perturbation_table
from discreet.noise.matrix import TransitionMatrix
from discreet.protect.cells import NoiseCells, keys_of, keys_with_zeros
from discreet.protect.keyed_noise import KeyedNoise, matrix_parameters, noise_by_key
from discreet.randomness import stream
from discreet.tables.keys import KeyConvention, convention
from discreet.tables.protected import Draws


@dataclass(frozen=True)
class CellKey(KeyedNoise):
    r"""Noise looked up by the count and the key of each cell.

    A cell with true count :math:`i` and key :math:`k` in :math:`0,\dots,m-1` is published as
    :math:`i + v`, where :math:`v` is the deviation whose interval of the matrix's row :math:`i`
    holds :math:`k/m`.

    Promise: a pure function of count, key and matrix, so the same cell has the same value in every
    table; mean, variance, largest move and blocked values as the matrix has them. Empty cells that
    the matrix perturbs take a keyed hash of their definition as key; structural zeros stay.
    Not differential privacy: two cells that differ by one record have unrelated keys.
    Cost: about 10 ns per cell.

    Args:
      matrix: The law of the noise, for instance `perturbation_table(D=4, V=2.5, js=2)`. When
        absent, D = 5, V = 3, js = 2, the preset of `perturbation_table()`: no ones and twos.
      convention: What the keys mean; the table's own when absent, otherwise one with the same
        range of keys.
      threshold: Published counts below it are hidden (10 in the rule of the ONS).
      folded: Whether keys are folded to a byte first, for tables drawn in advance.
      margins: ``"own"``, ``"summed"`` or ``"adjusted"``.
      grid: Publish weighted counts, in whole steps of this public weight.

    See Fraser & Wooton (2005), Thompson, Broadfoot & Elazar (2013), Giessing & Höhne (2011).
    """

    name: ClassVar[str] = "cell-key"
    done: ClassVar[str] = (
        "Values were changed by the cell key method: within an edition, the change of a value "
        "depends on the records in its cell and on nothing else that a table shows."
    )

    matrix: TransitionMatrix = field(default_factory=perturbation_table)
    convention: str | KeyConvention | None = None
    threshold: int | None = None
    folded: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.matrix, TransitionMatrix):
            raise ParameterError(
                f"the cell key method needs a TransitionMatrix, got {type(self.matrix).__name__}. "
                "Make one with `perturbation_table(D=5, V=3, js=2)`."
            )
        super().__post_init__()
        if self.folded and self.grid is not None:
            raise ParameterError(
                "folded keys are for tables drawn in advance, which are about counts; leave out "
                "grid= or folded=."
            )
        if self.convention is not None:
            convention(self.convention)

    @property
    def law(self) -> TransitionMatrix:
        """The public law of the noise."""
        return self.matrix

    def noise(self, cells: NoiseCells, draws: Draws) -> Whole:
        """The deviation of every cell, by its key as it is; on a grid by a keyed hash of it."""
        own = cells.table.convention
        chosen = own if self.convention is None else convention(self.convention)
        if chosen.modulus != own.modulus:
            raise KeysError(
                f"the keys of this table follow the {own.name!r} convention with range "
                f"0..{own.modulus - 1}, but the method was given {chosen.name!r} with range "
                f"0..{chosen.modulus - 1}. Tabulate with that convention, or leave it out."
            )
        if self.folded:
            return folded_noise(cells, self.matrix)
        purpose = None if self.grid is None else self.purpose
        return noise_by_key(cells, self.matrix, purpose=purpose, edge=chosen.edge)

    def parameters(self) -> dict[str, Any]:
        """The method's own parameters as plain public data."""
        return {**matrix_parameters(self.law), "folded": self.folded or None}


# a byte: tables drawn in advance have one row for each value of the folded key
SLOTS = 256


def fold(keys: npt.ArrayLike) -> Whole:
    """The exclusive or of the four bytes of keys below 2³²."""
    k = np.asarray(keys, dtype=np.int64)
    k = k ^ (k >> 16)
    return (k ^ (k >> 8)) & (SLOTS - 1)


def folded_noise(cells: NoiseCells, matrix: TransitionMatrix) -> Whole:
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


def _slots(law: Real, deviations: Whole) -> Whole:
    """The deviations of one row, each as often as its probability asks for."""
    often = np.rint(SLOTS * law).astype(np.int64)
    order = np.argsort(-law, kind="stable")
    missing = SLOTS - int(often.sum())
    for step in range(abs(missing)):
        often[order[step % np.count_nonzero(law)]] += np.sign(missing)
    return np.repeat(deviations, often)


def _intervals(slots: list[Whole]) -> tuple[Whole, Real]:
    moves = np.array(slots)
    return moves, np.full(moves.shape, 1 / SLOTS)
