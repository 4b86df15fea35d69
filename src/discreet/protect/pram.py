"""Post-randomisation of counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from discreet.arrays import Real, Whole
from discreet.errors import ParameterError, positive, whole, within
from discreet.noise.invariant import (
    RESIDUES,
    SINGLE,
    allocate,
    controlled_flows,
    invariant_matrix,
    two_stage,
    without_small_cells,
)
from discreet.noise.matrix import TransitionMatrix
from discreet.noise.pram import invariant_pram, large_table, pram, small_table
from discreet.protect.cells import NoiseCells
from discreet.protect.keyed_noise import KeyedNoise, matrix_parameters, noise_by_draw
from discreet.protect.options import REACHES, SCALES, SHARES, OptionLists
from discreet.protect.sentences import limit, process
from discreet.tables.protected import Claims, Draws
from discreet.tables.statement import Sentence
from discreet.tables.truth import TrueTable


@dataclass(frozen=True)
class Pram(KeyedNoise):
    r"""Counts exchanged by a transition matrix.

    Small counts (below `cap`) change by one matrix, larger ones by another on their residue modulo
    :math:`2c+1`; both are the discrete Laplace law folded to a square. With frequencies `t` of the
    table at hand the invariant form :math:`R^* = \alpha PQ + (1-\alpha)I` has :math:`tR^* = t`.

    Promise: zeros stay; no count moves by more than `cap`, or twice that when invariant; when
    invariant, the expected number of cells at each small count and at each residue is kept, with
    `realised` the number itself. Single counts are biased near the ends of the tables. With the
    fixed matrix the same cell has the same value in every table, by a keyed hash of its key. The
    invariant matrix depends on the table at hand, so it draws for the whole table, and the same
    cell may change otherwise in another.
    Cost: half a microsecond per cell; `realised` adds a sort and a small transport problem.

    Args:
      invariant: Whether the matrix is made invariant for the table at hand.
      alpha: Strength of the invariant form, in (0, 1].
      epsilon: Parameter of the folded law.
      cap: Largest move of the folded law.
      matrix: A designed matrix to use instead of the folded law.
      realised: Whether frequencies are kept in the table itself, not only in expectation; needs
        `invariant`.
      small_cells: Whether ones and twos may be published. If not, the matrix is that of Giessing &
        Höhne without small cells, which needs `invariant` and no `matrix`; `alpha=0.4` is theirs.
      margins: ``"own"``, ``"summed"`` or ``"adjusted"``.
      grid: Publish weighted counts, in whole steps of this public weight.

    See Shlomo & Young (2008), Shlomo, Krenzke & Li (2019), Giessing & Höhne (2011).
    """

    name: ClassVar[str] = "pram"
    option_lists: ClassVar[OptionLists] = {
        **KeyedNoise.option_lists,
        "alpha": tuple(sorted({*SHARES, 0.4})),
        "epsilon": SCALES,
        "cap": REACHES,
    }
    done: ClassVar[str] = "Values were exchanged at random by post-randomisation."

    invariant: bool = False
    alpha: float = 0.8
    epsilon: float = 2.0
    cap: int = 7
    matrix: TransitionMatrix | None = None
    realised: bool = False
    small_cells: bool = True

    def __post_init__(self) -> None:
        if not self.small_cells and (not self.invariant or self.matrix is not None):
            raise ParameterError(
                "small_cells=False has a matrix of its own: it needs invariant=True and no matrix=."
            )
        if not self.small_cells and self.margins != "own":
            raise ParameterError("small_cells=False is for margins='own'; sums have noise apart.")
        within("alpha", self.alpha, 1)
        if self.realised and not self.invariant:
            raise ParameterError("realised=True keeps frequencies, so it needs invariant=True.")
        positive("epsilon", self.epsilon)
        whole("cap", self.cap, 3)
        super().__post_init__()

    @cached_property
    def law(self) -> TransitionMatrix:
        """The public matrix that everything starts from."""
        return pram(self.epsilon, self.cap) if self.matrix is None else self.matrix

    @property
    def source(self) -> str:
        """A fixed matrix is looked up by key; an invariant one draws for the whole table."""
        return "table" if self.invariant else super().source

    @property
    def claims(self) -> Claims:
        """What the method promises for every table."""
        claims = super().claims
        if not self.invariant:
            return claims
        if not self.small_cells:
            return Claims(
                additive=False, unbiased=False, keeps_zeros=True, max_move=3.0, blocked=(1, 2)
            )
        return replace(
            claims,
            unbiased=False,
            keeps_positive=claims.keeps_zeros and self.grid is None,  # zeros keep their number
            max_move=2 * claims.max_move,
            blocked=(),
            variance=None,
            consistent=False,
        )

    def noise(self, cells: NoiseCells, draws: Draws) -> Whole:
        """The change of every cell."""
        if not self.invariant:
            return super().noise(cells, draws)
        rng = draws.generator(self, cells.table)
        counts = cells.count[cells.distinct]
        if not self.realised:
            return noise_by_draw(cells, self.matrix_for(counts), rng)
        if not self.small_cells:
            return cells.spread(self._exchange_without_small(counts, rng) - counts)
        if self.matrix is None:
            return cells.spread(self._exchange_in_parts(counts, rng) - counts)
        R = self.matrix_for(counts).dense(int(counts.max(initial=0)) + 1)
        return cells.spread(_exchange(counts, R, rng) - counts)

    def matrix_for(self, counts: Whole) -> TransitionMatrix:
        """The matrix used for a table with these counts. Confidential when invariant."""
        if not self.invariant:
            return self.law
        if not self.small_cells:
            return without_small_cells(counts, alpha=self.alpha)
        if self.matrix is not None:
            return invariant_matrix(self.matrix, counts, self.alpha)
        return invariant_pram(counts, self.epsilon, self.cap, self.alpha)

    def cell_law(self, table: TrueTable, position: int) -> tuple[Whole, Real] | None:
        """Deviations of one published cell and their probabilities; `None` where not fixed."""
        if not self.invariant:
            return super().cell_law(table, position)
        if self.realised or not self.publication.is_plain:
            return None
        cells = self.publication.cells(table, touches_zeros=True)
        matrix = self.matrix_for(cells.count[cells.distinct])
        return matrix.deviations, matrix.probabilities(int(table.z[position]))

    def _exchange_in_parts(self, counts: Whole, rng: np.random.Generator) -> Whole:
        """Small positive counts among themselves, larger ones by their residue; zeros stay."""
        new, small, large = counts.copy(), (counts > 0) & (counts < self.cap), counts >= self.cap
        P = small_table(self.epsilon, self.cap)  # zeros do not occur among them, so they stay
        new[small] = _exchange(counts[small], _invariant(P, counts[small], self.alpha), rng)
        residue = counts[large] % (2 * self.cap + 1)
        P = large_table(self.epsilon, self.cap)
        new[large] += _exchange(residue, _invariant(P, residue, self.alpha), rng) - residue
        return new

    def _exchange_without_small(self, counts: Whole, rng: np.random.Generator) -> Whole:
        """Counts below a hundred by their own rows, larger ones by their residue."""
        matrix, new = self.matrix_for(counts), counts.copy()
        small = counts < SINGLE
        new[small] = _exchange(counts[small], matrix.dense(SINGLE), rng)
        block = (counts[~small] - SINGLE) % RESIDUES
        R = matrix.dense(SINGLE + RESIDUES)[SINGLE:, SINGLE:]
        new[~small] += _exchange(block, R, rng) - block
        return new

    def parameters(self) -> dict[str, Any]:
        """The method's own parameters as plain public data."""
        if not self.small_cells:
            return {
                "matrix": "invariant matrix without small cells",
                "invariant": True,
                "alpha": self.alpha,
                "realised": self.realised,
                "small_cells": False,
            }
        chosen = {"invariant": True, "alpha": self.alpha, "realised": self.realised}
        return {**matrix_parameters(self.law), **(chosen if self.invariant else {})}

    def what_was_done(self) -> list[Sentence]:
        """The sentences of the method itself."""
        if not self.invariant:
            return super().what_was_done()
        kept = "is kept" if self.realised else "is kept on average"
        which = "each value occurs" if self.small_cells else "each value from 4 to 99 occurs"
        return [
            *super().what_was_done(),
            process(
                "frequencies",
                f"The matrix was made from the table itself, so that how often {which} {kept}.",
            ),
            limit(
                "differs-between-tables",
                "The same cell may be changed otherwise in another table; such tables can be "
                "averaged.",
            ),
        ]


def _invariant(P: Real, states: Whole, alpha: float) -> Real:
    return two_stage(P, np.bincount(states, minlength=len(P)), alpha)


def _exchange(states: Whole, R: Real, rng: np.random.Generator) -> Whole:
    """New states in which every frequency is what `R` leads to, rounded down or up."""
    flows = controlled_flows(R, np.bincount(states, minlength=len(R)))
    return allocate(states, flows, rng=rng)
