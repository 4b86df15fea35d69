"""Tables, code lists and other metadata, as the protocol describes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.release.cube import Cube, CubeAxis, Entry
from discreet.release.formats.json import dimension
from discreet.serve.api.files import TableDescriber
from discreet.serve.data.dataset import Dataset
from discreet.serve.data.source import Detail, DetailedVariable, OfferedVariable
from discreet.serve.refusals import no_such
from discreet.serve.site.site import Site
from discreet.serve.web.panel import unit_label
from discreet.serve.web.texts import Texts

CONTENTS = "ContentsCode"
_CONTENTS_LABEL = {"en": "contents", "nb": "statistikkvariabel"}


def contents_axis(units: Sequence[str], texts: Texts) -> CubeAxis:
    """The variable of units."""
    entries = tuple(Entry(unit, unit_label(unit, texts), 1, is_sum=False) for unit in units)
    return CubeAxis(CONTENTS, _CONTENTS_LABEL.get(texts.code, "contents"), entries)


def with_contents(cubes: Mapping[str, Cube], texts: Texts) -> Cube:
    """Cubes of several units as one, with the units as its last variable."""
    return Cube.stacked(contents_axis(list(cubes), texts), list(cubes.values()))


SEE_METADATA = "See the metadata of the table."


@dataclass(frozen=True, eq=False)
class LevelCodeList(DetailedVariable):
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


def codelists_of(dataset: Dataset, variable: OfferedVariable) -> list[LevelCodeList]:
    """The code lists of a variable: its single levels, where there is a choice."""
    if len(variable.details) == 1:
        return []
    return [
        LevelCodeList(variable, detail, _codelist_id(dataset.name, detail))
        for detail in variable.details
        if detail.name != variable.name
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


def _codelist_named(id: str, known: Sequence[LevelCodeList], status: int) -> LevelCodeList:
    for found in known:
        if found.id == id:
            return found
    names = [found.id for found in known]
    raise no_such(
        "code list", id, names, code="unknown_codelist", allowed=SEE_METADATA, status=status
    )


def _codelist_id(dataset: str, detail: Detail) -> str:
    words = re.sub(r"[^\w-]+", "_", f"{dataset}_{detail.name}").strip("_")
    return f"agg_{words}"


ROOT = "/api/pxweb/v2"
FOLDER = "tables"


def link(rel: str, path: str, teller: TableDescriber) -> dict[str, str]:
    """A link to a path of the interface, with its language."""
    return {"rel": rel, "hreflang": teller.texts.code, "href": f"{teller.base}{ROOT}/{path}"}


def table_json(dataset: Dataset, teller: TableDescriber) -> dict[str, Any]:
    """A table as lists show it."""
    path, title = f"tables/{dataset.name}", teller.site.title
    contents = contents_axis(dataset.source.units, teller.texts)
    return {
        "type": "Table",
        "id": dataset.name,
        "label": dataset.title,
        "description": dataset.about.description,
        "updated": updated_of(dataset),
        "firstPeriod": _period_of(dataset),
        "lastPeriod": _period_of(dataset),
        "category": "public",
        "variableNames": [contents.label, *(v.label for v in dataset.variables)],
        "discontinued": False,
        "source": dataset.about.source or title,
        "timeUnit": "Other",
        "paths": [[{"id": FOLDER, "label": title}]],
        "links": [
            link("self", path, teller),
            link("metadata", f"{path}/metadata", teller),
            link("data", f"{path}/data", teller),
        ],
    }


def metadata_json(
    dataset: Dataset, teller: TableDescriber, codelists: Mapping[str, LevelCodeList]
) -> dict[str, Any]:
    """All variables with their values, as a JSON-stat data set without figures."""
    axes = [_axis(v, codelists.get(v.name)) for v in dataset.variables]
    axes.append(contents_axis(dataset.source.units, teller.texts))
    updated = updated_of(dataset)
    return {
        "version": "2.0",
        "class": "dataset",
        "href": link("self", f"tables/{dataset.name}/metadata", teller)["href"],
        "label": dataset.title,
        "source": dataset.about.source or teller.site.title,
        **({"updated": updated} if updated else {}),
        "note": _notes_of(dataset),
        "role": {"metric": [CONTENTS]},
        "id": [axis.name for axis in axes],
        "size": [len(axis) for axis in axes],
        "dimension": dimensions(axes, dataset, teller),
        "value": None,
        "extension": extension_of(dataset, teller),
    }


def dimensions(axes: list[CubeAxis], dataset: Dataset, teller: TableDescriber) -> dict[str, Any]:
    """Variables and units with what can be done with them."""
    known = {v.name: v for v in dataset.variables}
    found = {axis.name: dimension(axis) for axis in axes}
    for name, variable in known.items():
        if name in found:
            found[name]["extension"] = _dimension_extension(dataset, variable, teller)
    units = axes[-1].codes
    found[CONTENTS]["category"]["unit"] = {
        unit: {"base": unit_label(unit, teller.texts), "decimals": 0} for unit in units
    }
    found[CONTENTS]["extension"] = {
        "elimination": False,
        "refperiod": dict.fromkeys(units, dataset.about.date or dataset.edition),
        "show": "value",
        "codeLists": [],
    }
    return found


def _dimension_extension(
    dataset: Dataset, variable: OfferedVariable, teller: TableDescriber
) -> dict[str, Any]:
    """What can be done with a variable: leave it out, or take another code list."""
    return {
        "elimination": True,
        "eliminationValueCode": variable.axis.total,
        "show": "value",
        "codeLists": [
            {
                "id": found.id,
                "label": _codelist_label(found),
                "type": "Aggregation",
                "links": [link("metadata", f"codelists/{found.id}", teller)],
            }
            for found in codelists_of(dataset, variable)
        ],
    }


def extension_of(dataset: Dataset, teller: TableDescriber) -> dict[str, Any]:
    """What the protocol keeps beside JSON-stat."""
    contact = dataset.about.contact or teller.site.config.contact
    return {
        "px": {
            "tableid": dataset.name,
            "matrix": dataset.name,
            "decimals": 0,
            "official-statistics": False,
            "aggregallowed": False,
            "copyright": False,
            "language": teller.texts.code,
            "contents": dataset.title,
            "heading": [CONTENTS],
            "stub": [v.name for v in dataset.variables],
        },
        "contact": [{"raw": contact}] if contact else [],
        "noteMandatory": {str(k): True for k in range(len(_notes_of(dataset)))},
        "edition": dataset.edition,
        "licence": dataset.about.licence,
        "statement": dataset.statement.to_json(),
    }


def codelist_json(found: LevelCodeList, teller: TableDescriber) -> dict[str, Any]:
    """A code list with what each of its values holds."""
    return {
        "id": found.id,
        "label": _codelist_label(found),
        "language": teller.texts.code,
        "languages": list(teller.site.config.languages),
        "elimination": True,
        "eliminationValueCode": found.variable.axis.total,
        "type": "Aggregation",
        "values": [
            {"code": e.code, "label": e.label, "valueMap": found.leaves_of(e.code)}
            for e in found.categories
        ],
        "links": [link("self", f"codelists/{found.id}", teller)],
    }


def updated_of(dataset: Dataset) -> str | None:
    """The day of the edition as a time, where the data set tells a day."""
    return f"{dataset.about.day}T00:00:00Z" if dataset.about.day else None


def _codelist_label(found: LevelCodeList) -> str:
    return f"{found.variable.label}: {found.detail.label or found.detail.name}"


def _notes_of(dataset: Dataset) -> list[str]:
    """What readers must know, in plain words."""
    plain = dataset.statement.plain
    return [*([plain] if plain else []), *dataset.about.footnotes]


def _period_of(dataset: Dataset) -> str:
    """The year of the figures, or their edition where the data set tells no year."""
    year = re.search(r"\b\d{4}\b", dataset.about.date)
    return year[0] if year else dataset.edition


def _axis(variable: OfferedVariable, codelist: LevelCodeList | None) -> CubeAxis:
    entries = codelist.categories if codelist else widest(variable).entries
    return CubeAxis(variable.name, variable.label, entries)
