"""From what a program selects to a query, and from its answer to the cells that were selected."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from discreet.release.cube import Cube, CubeAxis
from discreet.serve.answer import Answer
from discreet.serve.api.pxweb.codelists import METADATA, codelist_for, widest
from discreet.serve.api.pxweb.contents import CONTENTS, with_contents
from discreet.serve.api.pxweb.expressions import chosen
from discreet.serve.data.dataset import Dataset
from discreet.serve.data.source import DetailedVariable, OfferedVariable, by_detail, coarsest
from discreet.serve.query import Query
from discreet.serve.refusals import unknown
from discreet.serve.web.texts import Texts


@dataclass(frozen=True)
class Wish:
    """What a program selects of one variable, as it says it.

    Attributes:
      codes: Codes or expressions; none eliminate the variable.
      codelist: A code list to take the codes from; the variable's own if empty.
    """

    codes: tuple[str, ...] = ()
    codelist: str = ""


@dataclass(frozen=True, eq=False)
class Selected(DetailedVariable):
    """What is selected of one variable: codes of the smallest detail that has them, in order."""

    codes: tuple[str, ...]

    @property
    def is_total(self) -> bool:
        """Whether nothing but the total is selected, which needs no place in the crossing."""
        return self.codes == (self.variable.axis.total,)


@dataclass(frozen=True, eq=False)
class Selection:
    """What a program selects of a table.

    Attributes:
      dataset: The table.
      variables: The variables that are shown.
      units: What is published.
      heading: The variables in columns.
    """

    dataset: Dataset
    variables: tuple[Selected, ...]
    units: tuple[str, ...]
    heading: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, dataset: Dataset, wishes: Mapping[str, Wish], heading: Sequence[str] = ()
    ) -> Selection:
        """The selection that wishes mean; without any it is the default one."""
        named = wishes or default_wishes(dataset)
        known = {v.name: v for v in dataset.variables}
        for name in (*named, *heading):
            if name not in known and name != CONTENTS:
                raise unknown("variable", name, [*known, CONTENTS], allowed=METADATA)
        shown = [
            _selected(dataset, variable, named[variable.name])
            for variable in dataset.variables
            if variable.name in named and named[variable.name].codes
        ]
        units = dataset.source.units
        wish = named.get(CONTENTS, Wish())
        kept = chosen(CONTENTS, units, wish.codes) if wish.codes else list(units[:1])
        return cls(dataset, tuple(shown), tuple(kept), tuple(heading))

    @property
    def in_columns(self) -> list[str]:
        """The variables that are shown in columns."""
        return [s.name for s in self.variables if s.name in self.heading]

    @property
    def cells(self) -> int:
        """The cells that are selected."""
        return math.prod(len(s.codes) for s in self.variables) * len(self.units)

    def query(self, unit: str) -> Query:
        """The question whose answer holds the cells; variables at their total are left out."""
        crossed = [s for s in self.variables if not s.is_total]
        if not crossed:  # a table needs a variable, even if its total alone is shown
            return Query(rows=(self.dataset.variables[0].smallest.name,), unit=unit)
        picked = {s.name: tuple(sorted(s.codes)) for s in crossed}
        columns = [s for s in crossed if s.name in self.heading]
        return Query(
            rows=tuple(s.detail.name for s in crossed if s not in columns),
            columns=tuple(s.detail.name for s in columns),
            picked=picked,
            unit=unit,
        )

    def answered(self) -> dict[str, Answer]:
        """The answers, by unit."""
        return {unit: self.dataset.answer(self.query(unit)) for unit in self.units}

    def cube(self, answers: Mapping[str, Answer], texts: Texts) -> Cube:
        """The selected cells: the variables in public order, then the units."""
        return with_contents({u: self._cells(a.cube) for u, a in answers.items()}, texts)

    def _cells(self, cube: Cube) -> Cube:
        shown = {s.name: s for s in self.variables}
        for axis in cube.axes:
            if axis.name not in shown or shown[axis.name].is_total:
                cube = cube.at(axis.name, axis.codes[axis.total or 0])
            else:
                cube = cube.picked(axis.name, shown[axis.name].codes)
        for selected in self.variables:
            if selected.is_total:
                total = CubeAxis(selected.name, selected.variable.label, selected.entries[:1])
                cube = Cube.stacked(total, [cube])
        placed = cube.arranged([s.name for s in self.variables])
        return placed.with_labels([s.variable.label for s in self.variables])


def default_wishes(dataset: Dataset) -> dict[str, Wish]:
    """What is shown when nothing is selected: the data set's first table."""
    found = {CONTENTS: Wish(dataset.source.units[:1])}
    for name, asked in by_detail(dataset.variables).items():
        if name in dataset.first.variables:
            found[asked.name] = Wish(tuple(entry.code for entry in asked.entries))
    return found


def _selected(dataset: Dataset, variable: OfferedVariable, wish: Wish) -> Selected:
    """The codes of a wish in the smallest detail that has them all."""
    if wish.codelist:
        found = codelist_for(dataset, variable, wish.codelist)
        codes = chosen(variable.name, [e.code for e in found.categories], wish.codes)
        return Selected(variable, found.detail, tuple(codes))
    codes = chosen(variable.name, [e.code for e in widest(variable).entries], wish.codes)
    return Selected(variable, coarsest(variable, codes).detail, tuple(codes))
