"""Measures beside counts: sums such as turnover, protected once in tables of their own, and means.

A sum is shown as its release has it, hidden cells included: a table is one of the protected tables,
or a part of one. A mean is a protected sum divided by a protected count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from discreet.errors import ConfidentialError, ParameterError
from discreet.facade.release import Release
from discreet.release.cube import Cube
from discreet.release.formats.columns import decimals_of
from discreet.serve.data.price import Price, price_of
from discreet.serve.data.source import DetailedVariable, OfferedVariable, at_detail
from discreet.serve.refusals import Refusal
from discreet.tables.statement import Sentence, Step

MEAN = "mean-"
"""Begins the code of a mean; codes of sums have no hyphen."""


@dataclass(frozen=True, eq=False)
class Measure:
    """**Public.** A sum that is published beside counts, or its mean.

    Attributes:
      name: Its code, by which programs and addresses ask for it.
      title: Its name for readers, as it stands inside a sentence.
      tables: The protected tables of the sum.
    """

    name: str
    title: str
    tables: tuple[Cube, ...]

    @property
    def is_mean(self) -> bool:
        """Whether the sum is divided by counts."""
        return self.name.startswith(MEAN)

    @property
    def sum(self) -> str:
        """The code of the sum."""
        return self.name.removeprefix(MEAN)

    @property
    def label(self) -> str:
        """Its name where it begins a sentence."""
        return self.title[:1].upper() + self.title[1:]

    @property
    def decimals(self) -> int:
        """As many decimals as its figures are shown with."""
        return 2 if self.is_mean else max(decimals_of(table.values) for table in self.tables)

    @property
    def crossings(self) -> list[tuple[str, ...]]:
        """The variables of each table."""
        return [table.names for table in self.tables]

    def price(self, asked: Sequence[DetailedVariable]) -> Price:
        """What a crossing costs: it is cut from a table at hand.

        Raises:
          Refusal: No table holds it.
        """
        return price_of(asked, "protected", self._covering(asked).values.size)

    def cube(self, asked: Sequence[DetailedVariable]) -> Cube:
        """The crossing as it was protected, hidden cells included.

        Raises:
          Refusal: No table holds it.
        """
        cube, wanted = self._covering(asked), {one.name: one for one in asked}
        for axis in cube.axes:
            if axis.name in wanted:
                cube = at_detail(cube, wanted[axis.name])
            else:
                cube = cube.at(axis.name, axis.codes[axis.total or 0])
        return replace(cube.reorder([one.name for one in asked]), unit=self.name)

    def mean(self, sums: Cube, counts: Cube) -> Cube:
        """Protected sums divided by protected counts of the same cells; neither is changed."""
        text = "Means are protected sums divided by protected counts; both are published as well."
        said = (Sentence("mean", text, text, "process"),)
        step = Step("mean", {"of": self.sum, "by": counts.unit}, said)
        divided = sums.per(counts)
        return replace(divided, statement=sums.statement.then(step), unit=self.name)

    def _covering(self, asked: Sequence[DetailedVariable]) -> Cube:
        """The smallest table that holds a crossing with its totals."""
        holding = [table for table in self.tables if _holds(table, asked)]
        if holding:
            return min(holding, key=lambda table: table.values.size)
        listed = "; ".join(" by ".join(axis.label for axis in t.axes) for t in self.tables)
        message = f"No table of {self.title} has these variables together, in this detail."
        allowed = f"Tables: {listed}; and parts of them."
        raise Refusal("not_planned", message, allowed)


def measures_of(
    named: Mapping[str, tuple[str, str]],
    sums: Mapping[str, tuple[Cube, ...]],
    variables: Sequence[OfferedVariable],
) -> dict[str, Measure]:
    """The measures of a data set: each sum, and its mean where it has a title.

    Args:
      named: For each sum its title and that of its mean, empty where none is offered.
      sums: The protected tables of each sum.
      variables: What is on offer; tables of a sum have these variables alone.
    """
    found, known = dict[str, Measure](), [v.name for v in variables]
    for name, (title, mean) in named.items():
        for table in sums[name]:
            if unknown := [n for n in table.names if n not in known]:
                raise ParameterError(
                    f"measure {name!r} has tables by {unknown[0]!r}, which is not on offer among "
                    f"the counts: {', '.join(known)}."
                )
        found[name] = Measure(name, title or name, sums[name])
        if mean:
            found[MEAN + name] = Measure(MEAN + name, mean, sums[name])
    return found


def tables_of(release: Release) -> tuple[Cube, ...]:
    """The tables of a release of sums, each with its totals."""
    if not isinstance(release, Release):
        raise ConfidentialError("only a release may be served; protect the table first.")
    return tuple(Cube.of(release[name]) for name in release.tables)


def _holds(table: Cube, asked: Sequence[DetailedVariable]) -> bool:
    """Whether a table has all codes of a crossing, and totals of what the crossing leaves out."""
    named = {one.name for one in asked}
    return (
        named <= {*table.names}
        and all({e.code for e in one.entries} <= {*table.axis(one.name).codes} for one in asked)
        and all(axis.total is not None for axis in table.axes if axis.name not in named)
    )
