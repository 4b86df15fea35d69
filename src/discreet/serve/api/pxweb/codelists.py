"""Levels of a hierarchy as code lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from discreet.release.cube import Entry
from discreet.serve.data.dataset import Dataset
from discreet.serve.data.source import Detail, DetailedVariable, OfferedVariable
from discreet.serve.refusals import unknown
from discreet.serve.site.site import Site

METADATA = "See the metadata of the table."


@dataclass(frozen=True, eq=False)
class CodeList(DetailedVariable):
    """A level of a variable, by the name that programs use."""

    id: str

    @property
    def categories(self) -> tuple[Entry, ...]:
        """The categories of the level, without the total."""
        return tuple(entry for entry in self.entries if not entry.is_total)

    def leaves_of(self, code: str) -> list[str]:
        """The codes of the finest level that a category holds."""
        return [self.variable.axis.leaves[k] for k in sorted(self.leaves([code]))]


def widest(variable: OfferedVariable) -> DetailedVariable:
    """The detail with the most categories: what a program sees when it names no code list."""
    return DetailedVariable(variable, max(variable.details, key=lambda detail: detail.cells))


def codelists_of(dataset: Dataset, variable: OfferedVariable) -> list[CodeList]:
    """The code lists of a variable: its single levels, where there is a choice."""
    if len(variable.details) == 1:
        return []
    return [
        CodeList(variable, detail, _id(dataset.name, detail))
        for detail in variable.details
        if detail.name != variable.name
    ]


def codelist(site: Site, id: str) -> CodeList:
    """The code list of this name."""
    known = [
        found
        for dataset in site.datasets.values()
        for variable in dataset.variables
        for found in codelists_of(dataset, variable)
    ]
    return _named(id, known, 404)


def codelist_for(dataset: Dataset, variable: OfferedVariable, id: str) -> CodeList:
    """The code list of this name, if it is one of the variable."""
    return _named(id, codelists_of(dataset, variable), 400)


def _named(id: str, known: Sequence[CodeList], status: int) -> CodeList:
    for found in known:
        if found.id == id:
            return found
    names = [found.id for found in known]
    raise unknown("code list", id, names, code="unknown_codelist", allowed=METADATA, status=status)


def _id(dataset: str, detail: Detail) -> str:
    words = re.sub(r"[^\w-]+", "_", f"{dataset}_{detail.name}").strip("_")
    return f"agg_{words}"
