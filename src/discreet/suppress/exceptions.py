"""Rules about single cells: lists of sensitive ones, and rules with exceptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from discreet.arrays import Mask, Real
from discreet.errors import ParameterError, check_known, positive
from discreet.rules.counts import Needs, PrimaryRule, rule_named
from discreet.suppress.argus import APriori, AprioriCells
from discreet.suppress.pattern import published_values
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
    name: ClassVar[str] = "listed"
    why: ClassVar[str] = "listed as sensitive"

    def __post_init__(self) -> None:
        positive("range", self.range)

    def primaries(self, table: TrueTable) -> Mask:
        """The cells that the file calls unsafe."""
        return self.apriori.cells(table.design).unsafe

    def needs(self, table: TrueTable) -> Needs:
        """What the file asks for, or a share of the value."""
        said = self.apriori.cells(table.design)
        share = self.range / 100.0 * np.abs(published_values(table))
        return _levels(said, said.unsafe, share, share)


@dataclass(frozen=True)
class Exempt:
    """A rule with exceptions: cells that it never calls sensitive.

    Attributes:
      rule: The rule.
      codes: Codes by variable, such as those for missing values; cells with one of them are exempt.
      apriori: A file; the cells that it calls safe or not to be suppressed are exempt, and its
        protection levels hold instead of the rule's.
    """

    rule: PrimaryRule
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

    def __getattr__(self, name: str) -> Any:
        # What a rule may also say of itself holds with exceptions too: that its percentages are
        # not told, that empty cells are sensitive, that it is for sums.
        if name in ("told", "units", "zeros", "needs_zeros", "differences"):
            return getattr(self.rule, name)
        raise AttributeError(name)

    def primaries(self, table: TrueTable) -> Mask:
        """The rule's cells without those that are exempt."""
        return self.rule.primaries(table) & ~self.exempt(table)

    def exempt(self, table: TrueTable) -> Mask:
        """Cells that are never sensitive by the rule."""
        exempt = self._has_code(table)
        if self.apriori is not None:
            said = self.apriori.cells(table.design)
            exempt = exempt | said.safe | said.protected
        return exempt

    def needs(self, table: TrueTable) -> Needs:
        """What the rule asks for, or the file where it says."""
        said = None if self.apriori is None else self.apriori.cells(table.design)
        return _levels(said, self.primaries(table), *self.rule.needs(table))

    def _has_code(self, table: TrueTable) -> Mask:
        names = [axis.name for axis in table.design.axes]
        columns = table.design.published_codes()
        found = np.zeros(table.design.n_published, dtype=bool)
        for name, codes in self.codes.items():
            check_known("variable", [name], names)
            index, known = columns[names.index(name)]
            several = [codes] if isinstance(codes, str) else [*codes]
            found |= np.isin(np.array(known, dtype=object)[index], several)
        return found


def rule_of_text(text: str) -> PrimaryRule:
    """A rule by its name, with exceptions: `p%(10) except act=00, region=99`."""
    name, is_except, listed = text.partition(" except ")
    rule = rule_named(name)
    codes: dict[str, list[str]] = {}
    for part in listed.split(",") if is_except else ():
        variable, equals, code = (each.strip() for each in part.partition("="))
        if not (variable and equals and code):
            raise ParameterError(
                f"rule {text!r} cannot be read; exceptions are written as 'p%(10) except act=00'."
            )
        codes.setdefault(variable, []).append(code)
    return Exempt(rule, codes=codes) if codes else rule


def _levels(said: AprioriCells | None, sensitive: Mask, lower: Real, upper: Real) -> Needs:
    """Protection levels of sensitive cells: those of a file where it says, or else the usual."""
    lower, upper = np.where(sensitive, lower, 0.0), np.where(sensitive, upper, 0.0)
    if said is None:
        return lower, upper
    return (
        np.where(sensitive & np.isfinite(said.lower), said.lower, lower),
        np.where(sensitive & np.isfinite(said.upper), said.upper, upper),
    )
