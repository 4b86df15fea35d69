"""The frame of differentially private methods: a budget, its shares, and noise from the system."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic

import numpy as np

from discreet.arrays import Whole
from discreet.design.formula import Margin, single_margins, term_of
from discreet.design.support import LARGEST_DENSE
from discreet.errors import DesignError, ParameterError, positive, whole
from discreet.protect.budget import AnyShare, Budget, Unit, noise_of, precision_by_share
from discreet.protect.cells import NoiseCells
from discreet.protect.options import Grid, RecordSteps, step_of_grid, with_declared_grid
from discreet.protect.privacy import given_known, guarantee, require_declared, spent, unit_of
from discreet.protect.publication import CellPublication, Margins, Noise, spread_of_weights
from discreet.protect.sentences import claim_sentences, known_rounded, process, statement_of
from discreet.protect.small_count import SmallCountRounding
from discreet.solve.integer.rounding import round_controlled
from discreet.solve.likelihood.log_linear import LogLinear
from discreet.tables.canonical import canonical_order, canonical_table
from discreet.tables.protected import COUNT, WEIGHT, Claims, Draws, Protected
from discreet.tables.statement import PrivacyStatement, Sentence, Statement
from discreet.tables.truth import CellValues, TrueTable

_LETTERS = {"epsilon": "ε", "rho": "ρ"}


@dataclass(frozen=True, kw_only=True)
class PrivateNoise(Noise, Generic[AnyShare]):
    r"""What differentially private methods share.

    A method gives the name of its budget (`spends`), the kind of its shares, their noise and
    variance, the guarantee, and the sentence `done`. Where it has a field `nonnegative`, negative
    results are set to zero. Bounds of weights and of records for each person come with the data.

    Attributes:
      split: Shares of the budget by margin, such as ``{"region:age": 0.7, "1": 0.3}``.
      known: Margins that are public knowledge and published without noise, such as ``["region",
        "1"]``; ``"1"`` is the total. The guarantee then holds for replacing a unit by another that
        leaves them as they are.
      known_base: Small counts of known margins are rounded to this number or to zero before they
        are published and held. The rounding follows from the known margins and the secret alone, so
        the guarantee stays.
      margins: ``"own"`` or ``"summed"``; inner cells alone have sensitivity 1.
      grid: Publish weighted counts, in whole steps of this public weight: one record of weight `b`
        changes a value by :math:`\lceil b/g \rceil` steps, so the noise is drawn for that. With
        ``"mean-weight"`` the step is the declared mean weight and the noise is drawn for one step:
        the budget is that of sample counts, and the stated cost is :math:`\lceil b/g \rceil` times
        it, ρ its square.
      population: Size of the population, a public figure; δ must not exceed 1/(10 · population).
      accept_delta: The largest δ that is accepted instead.
    """

    split: Mapping[Margin, float] | None = None
    known: Margin | Sequence[Margin] = ()
    known_base: int | None = None
    margins: Margins = "own"
    grid: Grid = None
    population: int | None = None
    accept_delta: float | None = None

    plain: ClassVar[str] = ""
    spends: ClassVar[str] = "epsilon"
    share_kind: ClassVar[Any]
    source: ClassVar[str] = "system"

    def __post_init__(self) -> None:
        positive(self.spends, self.budget.total)
        if self.margins == "adjusted":
            raise ParameterError(
                "margins='adjusted' keeps true zeros, as Adjust does, and that would undo the "
                "guarantee. Use margins='own' and a fitter (`release.fit(...)`)."
            )
        if self.known_base is not None:
            whole("known_base", self.known_base, 2)
            if not self.known:
                raise ParameterError("known_base is for known margins: name them with known=.")
        if self.grid == "cell-weight":
            raise ParameterError(
                "grid='cell-weight' moves a weighted count by the mean weight of its own records, "
                "so no budget bounds what it tells. Use grid='mean-weight'."
            )
        _ = self.publication

    @property
    def budget(self) -> Budget:
        """How the budget is spent."""
        return Budget(getattr(self, self.spends), self.split, self.known)

    @property
    def publication(self) -> CellPublication:
        """What is published of the cells."""
        # sums of weights get the noise themselves: with their sample counts they would tell more
        is_declared = isinstance(self.grid, RecordSteps)
        return CellPublication(self.margins, step_of_grid(self.grid) if is_declared else self.grid)

    @property
    def units(self) -> tuple[str, ...]:
        """What the method publishes: weighted counts alone where it has a grid."""
        return (COUNT, WEIGHT) if self.grid is None else (WEIGHT,)

    @property
    def claims(self) -> Claims:
        """What the method promises for every table."""
        unbiased = not self.is_cut and self.known_base is None
        return Claims(additive=self.margins == "summed", unbiased=unbiased, keeps_zeros=False)

    def __call__(self, table: TrueTable, *, draws: Draws) -> Protected:
        """Protect a table."""
        if isinstance(self.grid, str):
            return with_declared_grid(self, table.data_set.bounds)(table, draws=draws)
        cells, shares, unit = self.spent(table)
        privacy = self.privacy(shares, unit)
        if self.known:
            privacy = given_known(privacy, self.budget.parameters()["known"])
        noise = noise_of(cells, shares, lambda share: self.draw(share, draws))
        if self.is_cut:  # negative results become zero
            noise = np.maximum(noise, -cells.count)
        if self.known_base is not None:
            known = single_margins(self.known)
            noise = noise + change_of_known(cells, known, self.known_base, draws)
        precision = None
        if not (cells.are_inner and self.is_cut):  # sums of cells that were cut are biased
            steps = [self.variance(s) * (cells.grid or 1.0) ** 2 for s in shares]
            precision = precision_by_share(cells, shares, steps)
        statement = self._statement(table, shares, privacy, unit)
        return self.publication.protect(cells, noise, statement, precision)

    def spent(self, table: TrueTable) -> tuple[NoiseCells, list[AnyShare], Unit]:
        """The cells that get noise, their shares of the budget, and what one unit can change."""
        require_declared(table)
        cells = self.publication.cells(table, touches_zeros=True)
        unit = unit_of(table, cells.grid)
        budget = replace(self.budget, total=self.budget.total * self._cost_factor(unit))
        return cells, budget.shares(cells, unit, self.share_kind), unit

    def _cost_factor(self, unit: Unit) -> int:
        """How often the published figures cost what sample counts with the same noise would."""
        if not isinstance(self.grid, RecordSteps):
            return 1
        return unit.change**2 if self.spends == "rho" else unit.change

    @abstractmethod
    def draw(self, share: AnyShare, draws: Draws) -> Any:
        """The noise of one share."""

    @abstractmethod
    def variance(self, share: AnyShare) -> float:
        """The variance of its noise."""

    @abstractmethod
    def privacy(self, shares: Sequence[AnyShare], unit: Unit) -> PrivacyStatement:
        """The guarantee, or an error where it would mean nothing."""

    @property
    def is_cut(self) -> bool:
        """Whether negative results are set to zero."""
        return getattr(self, "nonnegative", False)

    def what_was_done(self) -> list[Sentence]:
        """The sentences of the method itself, and what setting negative results to zero does."""
        clipped = process(
            "clipped",
            "Negative results were set to zero, which lifts small values on average.",
            "Very small figures are a little too high on average.",
        )
        return [*super().what_was_done(), *([clipped] if self.is_cut else [])]

    def on_the_grid(self) -> list[Sentence]:
        """What margins and grid mean for the reader."""
        return self.publication.sentences()

    def _statement(
        self, table: TrueTable, shares: Sequence[AnyShare], privacy: PrivacyStatement, unit: Unit
    ) -> Statement:
        claims = self.claims
        if table.unit == WEIGHT:  # weighted counts are rounded before they get noise
            claims = replace(claims, unbiased=False, max_move=math.inf)
        done, *followed = self.what_was_done()
        said = [
            done,
            *guarantee(privacy, self.budget, unit),
            *followed,
            *([] if self.known_base is None else [known_rounded(self.known_base)]),
            *spent(shares, _LETTERS[self.spends]),
            *self.on_the_grid(),
            *self._by_mean_weight(table, unit),
            *claim_sentences(claims, table.unit or COUNT),
        ]
        steps = self.grid.by if isinstance(self.grid, RecordSteps) else None
        chosen = {"population": self.population, "known_base": self.known_base, "steps": steps}
        shared = {**self.budget.parameters(), **self.publication.parameters()}
        parameters = {**self.parameters(), **shared, **chosen}
        return statement_of(self.name, parameters, said, privacy)

    def _by_mean_weight(self, table: TrueTable, unit: Unit) -> list[Sentence]:
        """What noise of sample counts costs where weighted counts are published."""
        if not isinstance(self.grid, RecordSteps):
            return []
        letter, factor = _LETTERS[self.spends], self._cost_factor(unit)
        text = (
            f"The noise is that of sample counts with {letter} = {self.budget.total:.6g}: one step "
            f"is {self.grid.size:g}, the declared mean weight. Since one record moves a weighted "
            f"count by up to {unit.change:,} steps, the figures cost {factor:,} times as much, and "
            "that is what is stated."
        )
        return [process("drawn-for-mean-weight", text), spread_of_weights(table.data_set.bounds)]


def change_of_known(cells: NoiseCells, known: Sequence[Margin], base: int, draws: Draws) -> Whole:
    """By how much rounding small counts moves each cell; zero for cells that are not known.

    Promise: a function of the known margins and of the custodian's secret, the same in every
    release of the same margins; known margins have no count in 1..base-1, and add up.
    """
    if cells.table.unit == WEIGHT:
        raise ParameterError(
            "known_base rounds small counts, but weighted counts are published here. Leave it out."
        )
    table, places = _known_table(cells, known)
    # in canonical order, so that the rounding does not depend on how the table was asked for
    order = canonical_order(table.design)
    ordered = canonical_table(table, order)
    rounded = np.empty(len(places), dtype=np.int64)
    rounded[slice(None) if order is None else order.published] = _round_known(ordered, base, draws)
    change = np.zeros(len(cells.count), dtype=np.int64)
    change[cells.representative[places]] = rounded - table.z
    return change[cells.representative]


def _known_table(cells: NoiseCells, known: Sequence[Margin]) -> tuple[TrueTable, Whole]:
    """The known margins as a table over their own variables, and where its cells are."""
    design = cells.table.design.over_variables
    if design is None:
        raise ParameterError("a design made from a matrix has no margins to name.")
    part = design.part([term_of(margin) for margin in known])
    if math.prod(part.design.shape) > LARGEST_DENSE:
        raise DesignError("the variables of the known margins have too many combinations.")
    published = CellValues(cells.table.published.count[part.cells])
    own = replace(cells.table, design=part.design, published=published, inner=None)
    return own, part.cells


def _round_known(table: TrueTable, base: int, draws: Draws) -> Whole:
    """Known margins without small counts, from a whole table that has these margins."""
    method = SmallCountRounding(base)
    rng = draws.generator(method, table)
    # the true inner cells must not be used: any inner table with these margins will do instead
    fitted = LogLinear()(table.design, table.z.astype(np.float64)).require()
    whole = round_controlled(table.design, fitted.y, rng=rng)
    inner = method.inner(TrueTable.from_inner(table.design, whole.y), rng=rng)
    rounded: Whole = table.design.aggregate(inner)
    return rounded
