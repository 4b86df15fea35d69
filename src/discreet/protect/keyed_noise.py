"""The frame of methods that look noise up: a law for every count, and the key of each cell."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from discreet.arrays import Real, Whole
from discreet.digests import digest
from discreet.errors import ParameterError
from discreet.noise.matrix import TransitionMatrix
from discreet.protect.adjust import with_adjusted_margins
from discreet.protect.cells import NoiseCells, keys_of, keys_with_zeros
from discreet.protect.draws import MIXED_KEYS
from discreet.protect.options import GRIDS, Grid, OptionLists, RecordSteps, with_declared_grid
from discreet.protect.publication import CellPublication, Margins, Noise, spread_of_weights
from discreet.protect.sentences import (
    LARGE_COUNT,
    claim_sentences,
    groups_not_hidden,
    limit,
    nested_crossings,
    process,
    statement_of,
)
from discreet.tables.keys import Edge
from discreet.tables.protected import COUNT, WEIGHT, Claims, Draws, Protected
from discreet.tables.statement import Sentence, Statement
from discreet.tables.truth import Bounds, TrueTable

_SAME = 1e-9


@dataclass(frozen=True, kw_only=True)
class KeyedNoise(Noise):
    """What methods share that look noise up by count and cell key.

    A method gives the `law` and the sentence `done`; it may read keys in its own way (`noise`).

    Attributes:
      margins: ``"own"``, ``"summed"`` or ``"adjusted"``.
      grid: Publish weighted counts, in whole steps of this public weight, at least `least_grid`;
        a usual choice is the population over the sample size. With ``"mean-weight"`` the step is
        the declared mean weight, and noise is looked up by the number `n` of sampled records:
        a weighted count moves by as many steps as `n` does. With ``"cell-weight"`` it becomes
        :math:`(n + v)W/n`, in steps of the declared mean weight.
    """

    option_lists: ClassVar[OptionLists] = {"grid": (None, *GRIDS)}

    margins: Margins = "own"
    grid: Grid = None

    def __post_init__(self) -> None:
        _ = self.publication, self.law

    @property
    @abstractmethod
    def law(self) -> TransitionMatrix:
        """The public law of the noise."""

    @property
    def source(self) -> str:
        """Cells are looked up by key; adjusted margins draw for the whole table."""
        return "table" if self.margins == "adjusted" else "keys"

    @property
    def units(self) -> tuple[str, ...]:
        """What the method publishes."""
        return (COUNT,) if self.grid is None else (WEIGHT,)

    @property
    def publication(self) -> CellPublication:
        """What is published of the cells."""
        return CellPublication(self.margins, self.grid, getattr(self, "threshold", None))

    @property
    def claims(self) -> Claims:
        """What the method promises for every table."""
        return claims_of(self.law, self.publication)

    def __call__(self, table: TrueTable, *, draws: Draws) -> Protected:
        """Protect a table by its cell keys."""
        if isinstance(self.grid, str):
            return with_declared_grid(self, table.data_set.bounds)(table, draws=draws)
        if self.margins == "adjusted":
            return with_adjusted_margins(self, table, draws)
        cells = self.publication.cells(table, touches_zeros=not self.law.keeps_zeros)
        statement = self.statement(table.data_set.bounds)
        return self.publication.protect(cells, self.noise(cells, draws), statement)

    def noise(self, cells: NoiseCells, draws: Draws) -> Whole:
        """The noise of every cell, by a keyed hash of its key, or by the key where it has none."""
        return noise_by_key(cells, self.law, purpose=self.purpose)

    @property
    def purpose(self) -> str:
        """What keyed hashes are for: every law and every grid has its own.

        With the same number drawn for a cell, values under two laws, or on two grids, would differ
        by something that tells the noise.
        """
        law, grid = self.law, self.grid
        which = digest(law.starts, law.moves, law.widths, law.period, grid)
        return f"{self.name} {which.hex()}"

    def check_for(self, table: TrueTable) -> None:
        """Refuse a grid whose noise hides less than records."""
        step = with_declared_grid(self, table.data_set.bounds).publication.step
        if step is None:
            return
        least, why = least_grid(table.data_set.bounds, self.law.max_move)
        if step < least:
            raise ParameterError(
                f"grid={step:g} is below {least:g}, {why}: the noise of {self.law.max_move} "
                "steps would hide less than it hides of counts, and numbers of sampled records "
                "could be guessed. Choose a grid that is at least as large."
            )

    def cell_law(self, table: TrueTable, position: int) -> tuple[Whole, Real] | None:
        """Deviations of one published cell and their probabilities; `None` where others show."""
        if not self.publication.is_plain or self.publication.threshold is not None:
            return None
        return self.law.deviations, self.law.probabilities(int(table.z[position]))

    def statement(self, bounds: Bounds | None = None) -> Statement:
        """What is said of the release."""
        unit, is_by_records = self.units[0], isinstance(self.grid, RecordSteps)
        said = [
            *self.what_was_done(),
            *self.publication.sentences(),
            *([spread_of_weights(bounds or Bounds())] if is_by_records else []),
            *claim_sentences(self.claims, unit),
            groups_not_hidden(),
        ]
        if self.source == "keys" and self.margins == "own":
            said.append(nested_crossings())
        parameters = {**self.parameters(), **self.publication.parameters()}
        return statement_of(self.name, parameters, said)


_TELL_THE_LAW = ("moves-at-most", "variance", "never-published")
"""Kinds of sentences from which parameters of a law can be read."""
_FOLLOW_FROM_THE_LAW = ("max_move", "min_count")
"""Parameters of an adjustment that are those of the law unless they are given."""


def check_law_to_keep(method: Any) -> None:
    """Refuse to keep parameters back of a method without noise that is looked up by keys."""
    inside = (method, getattr(method, "method", None))
    if not any(f"protect:{getattr(each, 'name', '')}" in _KEYED for each in inside):
        raise ParameterError(
            "parameters can be kept back of noise that is looked up by keys (cell-key, drop-add, "
            "pram). A private release states its guarantee, and other methods have no law to keep."
        )


def without_parameters(statement: Statement) -> Statement:
    """The statement without the parameters of its noise, nor sentences that tell them."""
    steps = []
    for step in statement.steps:
        kept = [s for s in step.sentences if s.kind not in _TELL_THE_LAW]
        shown = {k: v for k, v in step.parameters.items() if k not in _FOLLOW_FROM_THE_LAW}
        if step.name in _KEYED:
            name = step.name.removeprefix("protect:")
            shown = {key: step.parameters[key] for key in _CHOICES if key in step.parameters}
            kept = [_changed_by(name), *(s for s in kept if s.kind != name), _KEPT_BACK]
        steps.append(replace(step, parameters=shown, sentences=tuple(kept)))
    return replace(statement, steps=tuple(steps))


_KEYED = ("protect:cell-key", "protect:drop-add", "protect:pram")
_CHOICES = ("margins", "grid", "steps", "threshold", "invariant", "realised")
_KEPT_BACK = limit(
    "parameters-kept-back",
    "The parameters of the noise are not published here. The protection does not rest on that: it "
    "was judged as if everybody knew them.",
)


def _changed_by(name: str) -> Sentence:
    """What was done, without a figure."""
    return process(
        "changed-by-keys",
        f"Values were changed at random ({name}); how far is looked up by the keys of the records "
        "in a cell.",
        Noise.plain,
    )


def least_grid(bounds: Bounds, max_move: int) -> tuple[float, str]:
    r"""The smallest step of weighted counts, from declared figures alone, and what it is.

    A record of weight `w` moves a cell by :math:`w/g` steps of the grid `g`. With
    :math:`g \ge \bar w`, the declared mean weight, noise hides records on average as it hides them
    in a count; with :math:`g \ge B/D` no record, whatever its weight up to the declared bound `B`,
    moves a cell further than the largest move `D` does. Where the mean is not declared it can be as
    large as `B`.

    Raises:
      ParameterError: Neither figure is declared.
    """
    if bounds.mean_weight is None and bounds.weight is None:
        raise ParameterError(
            "steps of weighted counts are judged by declared figures, and these records have none. "
            "Declare what a record stands for on average, population over sample size: "
            "`people.with_roles(mean_weight=45)`."
        )
    if bounds.mean_weight is None:
        return float(bounds.weight or 0), "the declared bound of weights (declare mean_weight=)"
    reach = (bounds.weight or 0) / max(max_move, 1)
    if reach > bounds.mean_weight:
        return reach, f"the declared bound of weights over the largest move ({max_move} steps)"
    return bounds.mean_weight, "the declared mean weight"


def noise_by_key(
    cells: NoiseCells,
    matrix: TransitionMatrix,
    *,
    purpose: str | None = None,
    edge: Edge | None = None,
) -> Whole:
    """The noise that count and cell key look up; structural zeros have none.

    With a purpose, and where the table has a secret, a keyed hash is looked up instead of the key.
    """
    table = cells.table
    keys = keys_of(cells) if matrix.keeps_zeros else keys_with_zeros(cells)
    if purpose is None or table.secret is None:
        rule = table.convention
        noise = matrix.noise(cells.count, keys, rule.modulus, edge=edge or rule.edge)
    else:
        noise = matrix.noise(cells.count, table.secret.mix_keys(keys, purpose), MIXED_KEYS)
    return np.where(cells.impossible, 0, noise) if cells.impossible.any() else noise


def noise_by_draw(cells: NoiseCells, matrix: TransitionMatrix, rng: np.random.Generator) -> Whole:
    """Noise drawn with a generator, once for cells that are the same."""
    keys = rng.integers(MIXED_KEYS, size=len(cells.distinct))
    return cells.spread(matrix.noise(cells.count[cells.distinct], keys, MIXED_KEYS))


def claims_of(matrix: TransitionMatrix, publication: CellPublication) -> Claims:
    """What noise from the matrix promises for the published cells."""
    counts, shown_as_drawn = publication.grid is None, publication.threshold is None
    # noise by records publishes 0 where it left none, whatever these weighed
    is_by_records = isinstance(publication.grid, (str, RecordSteps))
    own, step = publication.margins == "own", math.inf if is_by_records else publication.step or 1.0
    mean, variance = moments(matrix)
    # rows of large counts, and all that take turns for ever
    large = variance[min(int(matrix.row_of(LARGE_COUNT)), len(variance) - matrix.period) :]
    fixed = own and counts and shown_as_drawn and np.ptp(large) < _SAME
    kept = publication.margins != "adjusted" and counts and shown_as_drawn
    return Claims(
        additive=not own,
        unbiased=kept and bool(np.abs(mean).max() < _SAME),
        keeps_zeros=matrix.keeps_zeros,
        keeps_positive=matrix.keeps_zeros and counts and _never_reaches_zero(matrix),
        max_move=matrix.max_move * step + (0 if counts else step / 2) if own else math.inf,
        blocked=tuple(range(1, matrix.blocked + 1)) if counts else (),
        variance=float(large[0]) if fixed else None,
        consistent=own,
    )


def _never_reaches_zero(matrix: TransitionMatrix) -> bool:
    """Whether no positive count becomes zero."""
    counts = np.arange(1, int(matrix.max_move) + 1)
    laws = [matrix.probabilities(int(count)) for count in counts]
    return not any(
        law[matrix.deviations == -count].any() for count, law in zip(counts, laws, strict=True)
    )


def moments(matrix: TransitionMatrix) -> tuple[Real, Real]:
    """Mean and variance of the noise in every row."""
    mean = matrix.law @ matrix.deviations
    return mean, matrix.law @ matrix.deviations**2 - mean**2


def matrix_parameters(matrix: TransitionMatrix) -> dict[str, Any]:
    """How the matrix was made, as plain public data."""
    return {"matrix": matrix.name, **dict(matrix.parameters)}
