"""The party table, its releases with their expected frequencies, and how they vary when redrawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet import registry
from discreet.arrays import Array, Real, Whole
from discreet.assessment.risk.disclosure import ExactDisclosure
from discreet.assessment.utility.association import HellingerUtility
from discreet.design.base import Design
from discreet.facade.release import Trial
from discreet.facade.table import Table
from discreet.noise import perturbation_table
from discreet.progress import report
from discreet.protect.cell_key import CellKey
from discreet.protect.publish import simulate
from discreet.protect.small_count import SmallCountRounding
from discreet.randomness import stream
from discreet.solve.fit import Prepared
from discreet.tables.protected import Protected
from discreet.tables.statement import Statement
from discreet_studies.fair_comparison import printed
from discreet_studies.model import by_row

SENSITIVE = "party"
AXES = {"party": ["A", "B", "C"], "age": ["young", "middle", "old"], "sex": ["male", "female"]}
MARGINS = "party*age + party*sex + age + sex"
VARIANCE = 3
CELL_KEY_DRAWS = 1_500
ROUNDING_DRAWS = 300


def design() -> Design:
    """The three variables with the published margins."""
    return Design.product(AXES, MARGINS)


def cell_key() -> CellKey:
    """The paper's cell key method: D = 5, V = 3, no ones and twos."""
    return CellKey(perturbation_table(D=5, V=VARIANCE, js=2))


def rounding() -> SmallCountRounding:
    """The paper's small count rounding, base 3."""
    return SmallCountRounding(base=3)


@dataclass(frozen=True, eq=False)
class PartyTable:
    """The true table with everything the paper makes of it."""

    table: Table

    @classmethod
    def of_the_paper(cls) -> PartyTable:
        """Table 1."""
        table = Table.from_inner(design(), inner_values(printed.TABLE_1))
        return cls(table.rekeyed(stream(1, "fair comparison, keys")))

    @property
    def design(self) -> Design:
        """The published margins."""
        return self.table.design

    @cached_property
    def _additive(self) -> Prepared:
        fit: Prepared = registry.build("fitter", "additive", {}).prepare(self.design)
        return fit

    @cached_property
    def _log_linear(self) -> Prepared:
        fit: Prepared = registry.build("fitter", "log-linear", {"tolerance": 1e-9}).prepare(
            self.design
        )
        return fit

    def restore(self, z: Array) -> Trial:
        """Published values made additive."""
        return self.release(self._additive(z).require().z)

    def expect(self, released: Protected) -> Trial:
        """Additive values with their expected inner frequencies."""
        y = self._log_linear(released.z).require().y
        return self.release(self.design.aggregate(y), y)

    def release(self, z: Array, y: Array | None = None) -> Trial:
        """Values as if they had been published."""
        return Trial(self.design, z, Statement(), y=y)

    def read_published(self, text: str) -> Real:
        """The published values of a printed table."""
        z = np.full(self.design.n_published, np.nan)
        for row, words in by_row(text).items():
            for column, word in zip(printed.COLUMNS, words, strict=True):
                z[self.position(row, column)] = float(word)
        return z

    def position(self, row: str, column: str) -> int:
        """Where a cell of the printed layout stands among the published ones."""
        cell = {} if row == "Total" else {"party": row}
        for variable in ("age", "sex"):
            if column in AXES[variable]:
                cell[variable] = column
        return self.design.position(cell)

    def by_layout(self, z: Array) -> Callable[[str, str], float]:
        """Published values by row and column of the printed layout."""
        return lambda row, column: float(z[self.position(row, column)])


def inner_values(text: str) -> Whole:
    """Inner frequencies of a printed table."""
    rows = by_row(text).values()
    return np.array([[int(word) for word in row] for row in rows]).ravel()


def inner(y: Array) -> Callable[[str, str], float]:
    """Inner frequencies by row and column of the printed layout."""
    cells = np.asarray(y).reshape(len(AXES["party"]), -1)
    return lambda row, column: float(
        cells[AXES["party"].index(row), printed.INNER_COLUMNS.index(column)]
    )


@dataclass(frozen=True)
class Draw:
    """Utility and risk of one release, and the mean square of its noise."""

    published: float
    restored: float
    risk: float
    risk_own: float
    square: float = 0.0


@dataclass(frozen=True, eq=False)
class RedrawnFigures:
    """All draws of one method, one array for each figure."""

    published: Real
    restored: Real
    risk: Real
    risk_own: Real
    square: Real

    @classmethod
    def of(cls, drawn: Iterator[Draw]) -> RedrawnFigures:
        """Gather single draws."""
        listed = list(drawn)
        names = Draw.__dataclass_fields__
        return cls(**{name: np.array([getattr(d, name) for d in listed]) for name in names})

    def risks(self, table: str) -> Real:
        """The risk by the probabilities of Table 9 or Table 10."""
        return self.risk if table == "Table 9" else self.risk_own


def redraw_keys(example: PartyTable, replicates: int, seed: int) -> RedrawnFigures:
    """The cell key method with new record keys, over and over."""
    return RedrawnFigures.of(_cell_key_draws(example, replicates, seed))


def _cell_key_draws(example: PartyTable, replicates: int, seed: int) -> Iterator[Draw]:
    for done in range(replicates):
        name = f"fair comparison, keys {done}"
        z = simulate(example.table, cell_key(), {}, seed=seed, name=name).z
        restored = example.restore(z)
        yield Draw(
            utility(example.table, example.release(z)),
            utility(example.table, restored),
            *_risks(example, restored),
            square=float(np.mean((z - example.table.z)[example.table.z > 0] ** 2)),
        )
        report("redrawing keys", (done + 1) / replicates)


def redraw_roundings(example: PartyTable, replicates: int, seed: int) -> RedrawnFigures:
    """Small count rounding with new random choices, over and over."""
    return RedrawnFigures.of(_rounding_draws(example, replicates, seed))


def _rounding_draws(example: PartyTable, replicates: int, seed: int) -> Iterator[Draw]:
    for done in range(replicates):
        name = f"fair comparison, rounding {done}"
        release = simulate(example.table, rounding(), {}, seed=seed, name=name)
        value = utility(example.table, release)
        yield Draw(value, value, *_risks(example, release))
        report("redrawing roundings", (done + 1) / replicates)


def utility(table: Table, release: Protected) -> float:
    """Hellinger utility of the published cells."""
    return HellingerUtility()(table, release).value


def _risks(example: PartyTable, release: Protected) -> tuple[float, float]:
    fitted = example.expect(release)
    outsider, insider = (
        ExactDisclosure(sensitive=SENSITIVE),
        ExactDisclosure(sensitive=SENSITIVE, intruder="own"),
    )
    return outsider(example.table, fitted).value, insider(example.table, fitted).value
