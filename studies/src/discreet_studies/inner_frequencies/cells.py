"""Cells that show what a release does: those whose counts are nearest to printed ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.design.base import Cell
from discreet_studies.inner_frequencies import printed
from discreet_studies.inner_frequencies.schemes import Data, Real, Released


@dataclass(frozen=True)
class Example:
    """One cell before and after.

    Attributes:
      cell: Its codes, totals left out.
      original: Its true count.
      perturbed: The count with noise, where the part has noise of its own.
      fitted: What is released.
    """

    cell: Cell
    original: float
    perturbed: float | None
    fitted: float


def example_cells(
    data: Data, noisy: Released, fitted: Released, rng: np.random.Generator
) -> dict[str, list[Example]]:
    """Cells of each part with the printed counts, or the nearest there are.

    Args:
      data: The table.
      noisy: Counts with noise, by part.
      fitted: What is released, by part.
      rng: Chooses among cells that are equally near.
    """
    found: dict[str, list[Example]] = {}
    for part, rows in printed.EXAMPLES.items():
        wanted = [float(original) for original, _, _ in rows]
        found[part] = [
            Example(
                _cell(data, part, place),
                float(data.true[part][place]),
                float(noisy[part][place]) if part in noisy else None,
                float(fitted[part][place]),
            )
            for place in _nearest(data.true[part], wanted, rng)
        ]
    return found


def _nearest(counts: Real, wanted: list[float], rng: np.random.Generator) -> list[int]:
    """A cell for each wanted count, none of them twice."""
    places: list[int] = []
    for count in wanted:
        gap = np.abs(counts - count)
        gap[places] = np.inf
        places.append(int(rng.choice(np.flatnonzero(gap == gap.min()))))
    return places


def _cell(data: Data, part: str, place: int) -> Cell:
    if part == "inner":
        return data.three.inner_cell(place)
    return (data.two if part == "2-way" else data.three).cell(place)
