"""Tables, code lists and other metadata, as the protocol describes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from discreet.release.cube import Cube, CubeAxis, CubeEntry
from discreet.release.formats.json import dimension
from discreet.release.formats.px import time_scale
from discreet.serve.api.pxweb.models import CONTENTS, FOLDER, ROOT
from discreet.serve.api.reply import TableDescriber
from discreet.serve.data.dataset import Dataset
from discreet.serve.data.source import DetailedVariable, OfferedVariable
from discreet.serve.refusals import no_such
from discreet.serve.site.site import Site
from discreet.serve.web.texts import Texts
from discreet.serve.web.wording import unit_label
from discreet.tables.statement import Statement


@dataclass(frozen=True)
class Placement:
    """Which variables stand in columns (`heading`) and which in rows (`stub`)."""

    heading: tuple[str, ...] = ()
    stub: tuple[str, ...] = ()


_CONTENTS_LABEL = {"en": "contents", "nb": "statistikkvariabel"}
_PERIOD_NAMES = ("Tid", "Time", "Period", "PeriodCode")  # the first that no variable has
_TIME_UNITS = {"A1": "Annual", "Q1": "Quarterly", "M1": "Monthly", "W1": "Weekly"}
SEE_METADATA = "See the metadata of the table."


def contents_axis(dataset: Dataset, units: Sequence[str], texts: Texts) -> CubeAxis:
    """The variable of units."""
    named = {unit: unit_label(dataset, unit, texts) for unit in units}
    entries = tuple(CubeEntry(unit, label, 1, is_sum=False) for unit, label in named.items())
    return CubeAxis(CONTENTS, _CONTENTS_LABEL.get(texts.code, "contents"), entries)


def with_contents(dataset: Dataset, cubes: Mapping[str, Cube], texts: Texts) -> Cube:
    """Cubes of several units as one, with the units as its last variable."""
    stacked = Cube.stack(contents_axis(dataset, list(cubes), texts), list(cubes.values()))
    statements = [cube.statement for cube in cubes.values()]
    if len({*map(id, statements)}) == 1 or dataset.measures.keys().isdisjoint(cubes):
        return stacked
    # What holds for the values of one need not hold for those of another.
    steps = tuple(step for one in statements for step in one.without_values.steps)
    return replace(stacked, statement=Statement(steps, None, statements[0].version))


def period_axis(dataset: Dataset) -> CubeAxis | None:
    """The variable of the one period that figures are about, where none of time is on offer."""
    if dataset.time:
        return None
    taken, period = {v.name.casefold() for v in dataset.variables}, dataset.periods[0]
    name = next(name for name in _PERIOD_NAMES if name.casefold() not in taken)
    return CubeAxis(name, "Period", (CubeEntry(period, period, 1, is_sum=False),))


def roles_of(dataset: Dataset, names: Sequence[str]) -> dict[str, list[str]]:
    """The roles of the variables of these names."""
    period = period_axis(dataset)
    time = period.name if period else dataset.time
    return {**({"time": [time]} if time in names else {}), "metric": [CONTENTS]}


@dataclass(frozen=True, eq=False)
class LevelCodeList(DetailedVariable):
    """A level of a variable, by the name that programs use."""

    id: str

    @property
    def categories(self) -> tuple[CubeEntry, ...]:
        """The categories of the level, without the total."""
        return tuple(entry for entry in self.entries if not entry.is_total)

    def members_of(self, code: str) -> list[str]:
        """The finest codes on offer that a category holds; others are nobody's to see."""
        held = self.leaves([code])
        others = (name for name, leaves in self._finest.items() if leaves <= held and name != code)
        return [*others] or [code]

    @cached_property
    def _finest(self) -> dict[str, frozenset[int]]:
        """The smallest code on offer for each of the finest categories, with all that it holds."""
        details = (DetailedVariable(self.variable, detail) for detail in self.variable.details)
        plain = [(d, e.code) for d in details for e in d.entries if not e.is_total]
        held = {code: detail.leaves([code]) for detail, code in plain}
        smallest: dict[int, str] = {}
        for code in sorted(held, key=lambda code: -len(held[code])):  # lower levels come last
            smallest |= dict.fromkeys(held[code], code)
        return {code: held[code] for _, code in sorted(smallest.items())}


def widest(variable: OfferedVariable) -> DetailedVariable:
    """The detail with the most categories: what a program sees when it names no code list."""
    return DetailedVariable(variable, max(variable.details, key=lambda detail: detail.cells))


def codelists_of(dataset: Dataset, variable: OfferedVariable) -> list[LevelCodeList]:
    """The code lists of a variable: its single levels, where there is a choice."""
    if len(variable.details) == 1:
        return []
    levels = [detail for detail in variable.details if detail.name != variable.name]
    ids = [re.sub(r"[^\w-]+", "_", f"{dataset.name}_{level.name}") for level in levels]
    return [
        LevelCodeList(variable, level, f"agg_{id.strip('_')}")
        for level, id in zip(levels, ids, strict=True)
    ]


def codelist(site: Site, id: str) -> LevelCodeList:
    """The code list of this name."""
    known = [
        found
        for dataset in site.datasets.values()
        for variable in dataset.variables
        for found in codelists_of(dataset, variable)
    ]
    return _codelist_named(id, known, 404)


def codelist_for(dataset: Dataset, variable: OfferedVariable, id: str) -> LevelCodeList:
    """The code list of this name, if it is one of the variable."""
    return _codelist_named(id, codelists_of(dataset, variable), 400)


def link(rel: str, path: str, describer: TableDescriber) -> dict[str, str]:
    """A link to a path of the interface, with its language."""
    return {"rel": rel, "hreflang": describer.texts.code, "href": f"{describer.base}{ROOT}/{path}"}


def table_json(dataset: Dataset, describer: TableDescriber) -> dict[str, Any]:
    """A table as lists show it."""
    path, title = f"tables/{dataset.name}", describer.site.title
    period = period_axis(dataset)
    contents = contents_axis(dataset, dataset.units, describer.texts)
    return {
        "type": "Table",
        "id": dataset.name,
        "label": dataset.title,
        "description": dataset.about.description,
        "updated": updated_of(dataset),
        "firstPeriod": dataset.periods[0],
        "lastPeriod": dataset.periods[-1],
        "category": "public",
        "variableNames": [
            contents.label,
            *(v.label for v in dataset.variables),
            *([period.label] if period else []),
        ],
        "discontinued": False,
        "source": dataset.about.source or title,
        "timeUnit": _time_unit(dataset.periods),
        "subjectCode": dataset.about.topic,
        "paths": [[{"id": FOLDER, "label": title}]],
        "links": [
            link("self", path, describer),
            link("metadata", f"{path}/metadata", describer),
            link("data", f"{path}/data", describer),
        ],
    }


def metadata_json(
    dataset: Dataset, describer: TableDescriber, codelists: Mapping[str, LevelCodeList]
) -> dict[str, Any]:
    """All variables with their values, as a JSON-stat data set without figures."""
    return metadata_of(dataset, describer, axes_of(dataset, describer, codelists))


def axes_of(
    dataset: Dataset, describer: TableDescriber, codelists: Mapping[str, LevelCodeList]
) -> list[CubeAxis]:
    """All variables with their values, or with those of a code list; what is published last."""
    period = period_axis(dataset)
    axes = [_axis(v, codelists.get(v.name)) for v in dataset.variables]
    axes += [period] if period else []
    return [*axes, contents_axis(dataset, dataset.units, describer.texts)]


def metadata_of(
    dataset: Dataset,
    describer: TableDescriber,
    axes: list[CubeAxis],
    placement: Placement | None = None,
) -> dict[str, Any]:
    """These variables of a data set, as JSON-stat without figures."""
    day, extension = dataset.updated, extension_of(dataset, describer)
    names = [axis.name for axis in axes]
    stub = [name for name in names if name != CONTENTS]
    placed = placement or Placement((CONTENTS,), tuple(stub))
    extension["px"] |= {"heading": list(placed.heading), "stub": list(placed.stub)}
    return {
        "version": "2.0",
        "class": "dataset",
        "href": link("self", f"tables/{dataset.name}/metadata", describer)["href"],
        "label": dataset.title,
        "source": dataset.about.source or describer.site.title,
        **({"updated": day} if day else {}),
        "note": _notes_of(dataset, describer.texts),
        "role": roles_of(dataset, names),
        "id": names,
        "size": [len(axis) for axis in axes],
        "dimension": dimensions(axes, dataset, describer),
        "value": None,
        "extension": extension,
    }


def dimensions(axes: list[CubeAxis], dataset: Dataset, describer: TableDescriber) -> dict[str, Any]:
    """Variables and units with what can be done with them."""
    known = {v.name: v for v in dataset.variables}
    found = {axis.name: dimension(axis) for axis in axes}
    for name, variable in known.items():
        if name in found:
            found[name]["extension"] = _dimension_extension(dataset, variable, describer)
    units = next(axis.codes for axis in axes if axis.name == CONTENTS)
    found[CONTENTS]["category"]["unit"] = {
        unit: {
            "base": unit_label(dataset, unit, describer.texts),
            "decimals": dataset.measures[unit].decimals if unit in dataset.measures else 0,
        }
        for unit in units
    }
    found[CONTENTS]["extension"] = {
        "elimination": False,
        "refperiod": dict.fromkeys(units, dataset.about.date or dataset.edition),
        "show": "value",
        **_both_spellings([]),
    }
    period = period_axis(dataset)
    if period is not None and period.name in found:
        code = period.codes[0]
        found[period.name]["extension"] = {
            "elimination": True,
            "eliminationValueCode": code,
            "show": "value",
            **_both_spellings([]),
        }
    return found


def _both_spellings(lists: list[dict[str, Any]]) -> dict[str, Any]:
    """Code lists as the description spells them, and as its examples and older clients do."""
    return {"codelists": lists, "codeLists": lists}


def extension_of(dataset: Dataset, describer: TableDescriber) -> dict[str, Any]:
    """What the protocol keeps beside JSON-stat."""
    contact = dataset.about.contact or describer.site.config.contact
    return {
        "px": {
            "tableid": dataset.name,
            "matrix": dataset.name,
            "decimals": 0,
            "official-statistics": False,
            "aggregallowed": False,
            "copyright": False,
            "language": describer.texts.code,
            "contents": dataset.title,
        },
        "contact": [{"raw": contact}] if contact else [],
        "noteMandatory": {str(k): True for k in range(len(_notes_of(dataset, describer.texts)))},
        "edition": dataset.edition,
        "licence": dataset.about.licence,
        "statement": dataset.statement.to_json(),
    }


def codelist_json(found: LevelCodeList, describer: TableDescriber) -> dict[str, Any]:
    """A code list with what each of its values holds."""
    return {
        "id": found.id,
        "label": _codelist_label(found),
        "language": describer.texts.code,
        "languages": list(describer.site.config.languages),
        "elimination": True,
        "eliminationValueCode": found.variable.axis.total,
        "type": "Aggregation",
        "values": [
            {"code": e.code, "label": e.label, "valueMap": found.members_of(e.code)}
            for e in found.categories
        ],
        "links": [link("self", f"codelists/{found.id}", describer)],
    }


def updated_of(dataset: Dataset) -> str | None:
    """The day of the figures as a time, where it is known."""
    return f"{dataset.updated}T00:00:00Z" if dataset.updated else None


def _codelist_named(id: str, known: Sequence[LevelCodeList], status: int) -> LevelCodeList:
    for found in known:
        if found.id.casefold() == id.casefold():
            return found
    names, code = [found.id for found in known], "unknown_codelist"
    raise no_such("code list", id, names, code=code, allowed=SEE_METADATA, status=status)


def _dimension_extension(
    dataset: Dataset, variable: OfferedVariable, describer: TableDescriber
) -> dict[str, Any]:
    """What can be done with a variable: leave it out, or take another code list."""
    lists = [
        {
            "id": found.id,
            "label": _codelist_label(found),
            "type": "Aggregation",
            "links": [link("metadata", f"codelists/{found.id}", describer)],
        }
        for found in codelists_of(dataset, variable)
    ]
    left_out = {"elimination": True, "eliminationValueCode": variable.axis.total}
    if variable.is_time:
        left_out = {"elimination": False}  # it would be a sum over periods
    return {**left_out, "show": "value", **_both_spellings(lists)}


def _codelist_label(found: LevelCodeList) -> str:
    return f"{found.variable.label}: {found.detail.label or found.detail.name}"


def _notes_of(dataset: Dataset, texts: Texts) -> list[str]:
    """What readers must know, in plain words; of each measure what holds for its own figures."""
    said = {dataset.units[0]: dataset.statement, **dataset.statements_of_sums}
    told = {unit: statement.plain for unit, statement in said.items() if statement.plain}
    if dataset.measures:
        told = {u: f"{unit_label(dataset, u, texts)}: {plain}" for u, plain in told.items()}
    return [*told.values(), *dataset.about.footnotes]


def _time_unit(periods: Sequence[str]) -> str:
    return _TIME_UNITS.get(time_scale(periods), "Other")


def _axis(variable: OfferedVariable, codelist: LevelCodeList | None) -> CubeAxis:
    entries = codelist.categories if codelist else widest(variable).entries
    return CubeAxis(variable.name, variable.label, entries)
