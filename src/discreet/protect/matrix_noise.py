"""Noise from a transition matrix, by cell key or by fresh draws, and what it promises."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.design.keys import Edge
from discreet.design.values import Real, Whole
from discreet.noise.matrix import TransitionMatrix
from discreet.protect.cells import Cells
from discreet.protect.claims import Claims
from discreet.protect.fold import SLOTS, fold
from discreet.protect.publication import Publication
from discreet.protect.zeros import keys_of, keys_with_zeros

FRESH_KEYS = 2**32
LARGE_COUNT = 40
"""From here on a count is large: a claimed variance holds for all counts of this size or more."""

_SAME = 1e-9


def noise_by_key(
    cells: Cells, matrix: TransitionMatrix, edge: Edge, *, folded: bool = False
) -> Whole:
    """The noise that count and cell key look up; structural zeros have none.

    Args:
      cells: The cells with their keys.
      matrix: The law of the noise.
      edge: Which interval a key on a border belongs to.
      folded: Whether keys are folded to a byte first.
    """
    keys = keys_of(cells) if matrix.keeps_zeros else keys_with_zeros(cells)
    modulus = cells.table.convention.modulus
    if folded:
        keys, modulus, edge = fold(keys), SLOTS, "right"
    noise = matrix.noise(cells.count, keys, modulus, edge=edge)
    return np.where(cells.impossible, 0, noise) if cells.impossible.any() else noise


def noise_by_draw(cells: Cells, matrix: TransitionMatrix, rng: np.random.Generator) -> Whole:
    """Noise drawn with a generator, once for cells that are the same."""

    def draw(chosen: Whole) -> Whole:
        keys = rng.integers(FRESH_KEYS, size=len(chosen))
        return matrix.noise(cells.count[chosen], keys, FRESH_KEYS)

    return cells.once(draw)


def moments(matrix: TransitionMatrix) -> tuple[Real, Real]:
    """Mean and variance of the noise in every row."""
    mean = matrix.law @ matrix.deviations
    return mean, matrix.law @ matrix.deviations**2 - mean**2


def claims_of(matrix: TransitionMatrix, publication: Publication, *, consistent: bool) -> Claims:
    """What noise from the matrix promises for the published cells."""
    plain, counts = publication.is_plain, publication.weighting is None
    shown_as_drawn = publication.threshold is None
    mean, variance = moments(matrix)
    large = variance[min(int(matrix.row_of(LARGE_COUNT)), len(variance) - matrix.period) :]
    fixed = plain and shown_as_drawn and np.ptp(large) < _SAME
    return Claims(
        additive=publication.margins != "own",
        unbiased=publication.margins != "adjusted"
        and counts
        and shown_as_drawn
        and bool(np.abs(mean).max() < _SAME),
        keeps_zeros=matrix.keeps_zeros,
        max_move=matrix.max_move if plain else math.inf,
        blocked=tuple(range(1, matrix.blocked + 1)) if counts else (),
        variance=float(large[0]) if fixed else None,
        consistent=consistent and publication.margins == "own",
    )


def precision_of(matrix: TransitionMatrix, published: Whole) -> Real | None:
    """Relative precision of published counts from the public matrix, where it differs among them.

    The variance is read at the published count; an empty cell counts as one.
    """
    _, variance = moments(matrix)
    used = variance[1:]
    if np.ptp(used) < _SAME or used.min() <= 0:
        return None
    return np.asarray(1 / variance[matrix.row_of(np.maximum(published, 1))])


def matrix_sentences(matrix: TransitionMatrix) -> list[str]:
    """What the matrix promises for one cell, one plain sentence each."""
    mean, variance = moments(matrix)
    lines = [f"No count moves by more than {matrix.max_move}."]
    if np.abs(mean).max() < _SAME:
        lines.append("On average the noise is zero at every count.")
    if np.ptp(variance[1:]) < 1e-6:
        lines.append(f"Its variance is {variance[1]:.4g} at every count above zero.")
    if matrix.keeps_zeros:
        lines.append("Zeros stay zero.")
    if matrix.blocked:
        values = "1" if matrix.blocked == 1 else f"1 to {matrix.blocked}"
        lines.append(f"Values of {values} are never published.")
    return lines


def matrix_parameters(matrix: TransitionMatrix) -> dict[str, Any]:
    """How the matrix was made, as plain public data."""
    return {"matrix": matrix.name, **dict(matrix.parameters)}
