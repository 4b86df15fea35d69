"""Tables, code lists and other metadata, as the protocol describes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.release.cube import Cube, CubeAxis, CubeEntry
from discreet.release.formats.json import dimension
from discreet.serve.api.pxweb.models import CONTENTS, FOLDER, ROOT
from discreet.serve.api.reply import TableDescriber
from discreet.serve.data.dataset import Dataset
from discreet.serve.data.source import DetailedVariable, OfferedVariable
from discreet.serve.refusals import no_such
from discreet.serve.site.site import Site
from discreet.serve.web.texts import Texts
from discreet.serve.web.wording import unit_label

_CONTENTS_LABEL = {"en": "contents", "nb": "statistikkvariabel"}
SEE_METADATA = "See the metadata of the table."


def contents_axis(units: Sequence[str], texts: Texts) -> CubeAxis:
    """The variable of units."""
    entries = tuple(CubeEntry(unit, unit_label(unit, texts), 1, is_sum=False) for unit in units)
    return CubeAxis(CONTENTS, _CONTENTS_LABEL.get(texts.code, "contents"), entries)


def with_contents(cubes: Mapping[str, Cube], texts: Texts) -> Cube:
    """Cubes of several units as one, with the units as its last variable."""
    return Cube.stack(contents_axis(list(cubes), texts), list(cubes.values()))


@dataclass(frozen=True, eq=False)
class LevelCodeList(DetailedVariable):
    """A level of a variable, by the name that programs use."""

    id: str

    @property
    def categories(self) -> tuple[CubeEntry, ...]:
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
    contents = contents_axis(dataset.source.units, describer.texts)
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
            link("self", path, describer),
            link("metadata", f"{path}/metadata", describer),
            link("data", f"{path}/data", describer),
        ],
    }


def metadata_json(
    dataset: Dataset, describer: TableDescriber, codelists: Mapping[str, LevelCodeList]
) -> dict[str, Any]:
    """All variables with their values, as a JSON-stat data set without figures."""
    axes = [_axis(v, codelists.get(v.name)) for v in dataset.variables]
    axes.append(contents_axis(dataset.source.units, describer.texts))
    updated = updated_of(dataset)
    return {
        "version": "2.0",
        "class": "dataset",
        "href": link("self", f"tables/{dataset.name}/metadata", describer)["href"],
        "label": dataset.title,
        "source": dataset.about.source or describer.site.title,
        **({"updated": updated} if updated else {}),
        "note": _notes_of(dataset),
        "role": {"metric": [CONTENTS]},
        "id": [axis.name for axis in axes],
        "size": [len(axis) for axis in axes],
        "dimension": dimensions(axes, dataset, describer),
        "value": None,
        "extension": extension_of(dataset, describer),
    }


def dimensions(axes: list[CubeAxis], dataset: Dataset, describer: TableDescriber) -> dict[str, Any]:
    """Variables and units with what can be done with them."""
    known = {v.name: v for v in dataset.variables}
    found = {axis.name: dimension(axis) for axis in axes}
    for name, variable in known.items():
        if name in found:
            found[name]["extension"] = _dimension_extension(dataset, variable, describer)
    units = axes[-1].codes
    found[CONTENTS]["category"]["unit"] = {
        unit: {"base": unit_label(unit, describer.texts), "decimals": 0} for unit in units
    }
    found[CONTENTS]["extension"] = {
        "elimination": False,
        "refperiod": dict.fromkeys(units, dataset.about.date or dataset.edition),
        "show": "value",
        "codeLists": [],
    }
    return found


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
            "heading": [CONTENTS],
            "stub": [v.name for v in dataset.variables],
        },
        "contact": [{"raw": contact}] if contact else [],
        "noteMandatory": {str(k): True for k in range(len(_notes_of(dataset)))},
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
            {"code": e.code, "label": e.label, "valueMap": found.leaves_of(e.code)}
            for e in found.categories
        ],
        "links": [link("self", f"codelists/{found.id}", describer)],
    }


def updated_of(dataset: Dataset) -> str | None:
    """The day of the edition as a time, where the data set tells a day."""
    return f"{dataset.about.day}T00:00:00Z" if dataset.about.day else None


def _codelist_named(id: str, known: Sequence[LevelCodeList], status: int) -> LevelCodeList:
    for found in known:
        if found.id == id:
            return found
    names, code = [found.id for found in known], "unknown_codelist"
    raise no_such("code list", id, names, code=code, allowed=SEE_METADATA, status=status)


def _dimension_extension(
    dataset: Dataset, variable: OfferedVariable, describer: TableDescriber
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
                "links": [link("metadata", f"codelists/{found.id}", describer)],
            }
            for found in codelists_of(dataset, variable)
        ],
    }


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
