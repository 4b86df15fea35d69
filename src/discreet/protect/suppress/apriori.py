"""What is known of single cells before any rule: listed cells, exempt cells, an a-priori file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Mask, Real
from discreet.design.formats.argus import APriori, AprioriCells, read_apriori
from discreet.errors import DataError, UnknownNameError
from discreet.noise.checks import positive
from discreet.protect.suppress.pattern import published_values
from discreet.protect.suppress.rules import Needs, Rule
from discreet.tables.truth import TrueTable


@dataclass(frozen=True)
class Listed:
    """Cells that a file calls sensitive, such as those of a respondent who asked for protection.

    Attributes:
      apriori: The file.
      range: Percentage of its value that the interval of a listed cell must reach below and above,
        where the file does not say.
    """

    apriori: APriori
    range: float = 10.0

    def __post_init__(self) -> None:
        positive("range", self.range)

    @property
    def name(self) -> str:
        """The rule in a word."""
        return "listed"

    @property
    def why(self) -> str:
        """Why a cell is sensitive."""
        return "listed as sensitive"

    def primaries(self, table: TrueTable) -> Mask:
        """The cells that the file calls unsafe."""
        return self.apriori.cells(table.design).unsafe

    def needs(self, table: TrueTable) -> Needs:
        """What the file asks for, or a share of the value."""
        said = self.apriori.cells(table.design)
        share = self.range / 100.0 * np.abs(published_values(table))
        usual = np.where(said.unsafe, share, 0.0)
        return _or_said(usual, said.lower, said.unsafe), _or_said(usual, said.upper, said.unsafe)


@dataclass(frozen=True)
class Exempt:
    """A rule with exceptions: cells that it never calls sensitive.

    Attributes:
      rule: The rule.
      codes: Codes by variable, such as those for missing values; cells with one of them are exempt.
      apriori: A file; the cells that it calls safe or not to be suppressed are exempt, and its
        protection levels hold instead of the rule's.
    """

    rule: Rule
    codes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    apriori: APriori | None = None

    @property
    def name(self) -> str:
        """The rule in a word."""
        return self.rule.name

    @property
    def why(self) -> str:
        """Why a cell is sensitive."""
        return self.rule.why

    def primaries(self, table: TrueTable) -> Mask:
        """The rule's cells without those that are exempt."""
        exempt = self._has_code(table)
        if self.apriori is not None:
            said = self.apriori.cells(table.design)
            exempt = exempt | said.safe | said.protected
        return self.rule.primaries(table) & ~exempt

    def needs(self, table: TrueTable) -> Needs:
        """What the rule asks for, or the file where it says."""
        found, (lower, upper) = self.primaries(table), self.rule.needs(table)
        lower, upper = np.where(found, lower, 0.0), np.where(found, upper, 0.0)
        if self.apriori is None:
            return lower, upper
        said = self.apriori.cells(table.design)
        return _or_said(lower, said.lower, found), _or_said(upper, said.upper, found)

    def _has_code(self, table: TrueTable) -> Mask:
        names = [axis.name for axis in table.design.axes]
        columns = table.design.published_codes()
        found = np.zeros(table.design.n_published, dtype=bool)
        for name, codes in self.codes.items():
            if name not in names:
                raise UnknownNameError("variable", name, names)
            index, known = columns[names.index(name)]
            several = [codes] if isinstance(codes, str) else [*codes]
            found |= np.isin(np.array(known, dtype=object)[index], several)
        return found


def with_apriori(
    table: TrueTable, rules: Sequence[Rule] | Rule, apriori: APriori | str | Path
) -> dict[str, Any]:
    """Arguments of `Suppress` that follow an a-priori file.

    Unsafe cells are sensitive, safe ones are not, cells not to be suppressed are frozen, and costs
    become factors on the cells' values.

    Args:
      table: The table; codes of the file stand in the order of its variables.
      rules: The rules that hold beside the file.
      apriori: The file, or what was read from it.
    """
    read = apriori if isinstance(apriori, APriori) else read_apriori(apriori)
    names = tuple(axis.name for axis in table.design.axes)
    known = replace(read, variables=read.variables or names)
    said = known.cells(table.design)
    several = list(rules) if isinstance(rules, Sequence) else [rules]
    wrapped: list[Rule] = [Exempt(rule, apriori=known) for rule in several]
    if said.unsafe.any():
        wrapped.append(Listed(known))
    cells = [table.design.cell(int(k)) for k in np.flatnonzero(said.protected)]
    return {"rules": wrapped, "frozen": cells, "priorities": _factors(table, said)}


def _factors(table: TrueTable, said: AprioriCells) -> list[tuple[dict[str, str], float]]:
    """What the costs of the file are of the cells' values; empty cells have no value to compare."""
    for k in np.flatnonzero(said.cost == 0):
        raise DataError(
            f"the a-priori file gives cell {table.design.cell(int(k))} a cost of 0, and costs must "
            "be positive. Give a small cost to a cell that is rather suppressed than others."
        )
    values = np.abs(published_values(table)).astype(np.float64)
    priced = np.flatnonzero((said.cost > 0) & (values > 0))
    return [(table.design.cell(int(k)), float(said.cost[k] / values[k])) for k in priced]


def _or_said(usual: Real, said: Real, where: Mask) -> Real:
    """What a file says of some cells, and what is usual elsewhere."""
    return np.where(where & np.isfinite(said), said, usual)
