"""Tables and their metadata, as the protocol describes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.release.cube import CubeAxis
from discreet.release.formats.json_stat import dimension
from discreet.serve.api.pxweb.codelists import CodeList, codelists_of, widest
from discreet.serve.api.pxweb.contents import CONTENTS, contents_axis
from discreet.serve.data.dataset import Dataset
from discreet.serve.data.source import Variable
from discreet.serve.site.site import Site
from discreet.serve.web.panel import unit_label
from discreet.serve.web.texts import Texts

ROOT = "/api/pxweb/v2"
PATH = "tables"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def link(rel: str, href: str, texts: Texts) -> dict[str, str]:
    """A link with its language."""
    return {"rel": rel, "hreflang": texts.code, "href": href}


def table_json(dataset: Dataset, site: Site, base: str, texts: Texts) -> dict[str, Any]:
    """A table as lists show it."""
    address = f"{base}{ROOT}/tables/{dataset.name}"
    contents = contents_axis(dataset.source.units, texts)
    names = [contents.label, *(v.label for v in dataset.variables)]
    return {
        "type": "Table",
        "id": dataset.name,
        "label": dataset.title,
        "description": dataset.about.description,
        "updated": updated_of(dataset),
        "firstPeriod": period_of(dataset),
        "lastPeriod": period_of(dataset),
        "category": "public",
        "variableNames": names,
        "discontinued": False,
        "source": dataset.about.source or site.title,
        "timeUnit": "Other",
        "paths": [[{"id": PATH, "label": site.title}]],
        "links": [
            link("self", address, texts),
            link("metadata", f"{address}/metadata", texts),
            link("data", f"{address}/data", texts),
        ],
    }


def metadata_json(
    dataset: Dataset,
    site: Site,
    base: str,
    texts: Texts,
    codelists: Mapping[str, CodeList] | None = None,
) -> dict[str, Any]:
    """All variables with their values, as a JSON-stat data set without figures."""
    chosen = codelists or {}
    axes = [_axis(v, chosen.get(v.name)) for v in dataset.variables]
    contents = contents_axis(dataset.source.units, texts)
    address = f"{base}{ROOT}/tables/{dataset.name}"
    dimensions = {v.name: _dimension(dataset, v, a, base, texts) for v, a in _both(dataset, axes)}
    dimensions[CONTENTS] = contents_dimension(contents, dataset, texts)
    listed = [*axes, contents]
    return {
        "version": "2.0",
        "class": "dataset",
        "href": f"{address}/metadata",
        "label": dataset.title,
        "source": dataset.about.source or site.title,
        **({"updated": day} if (day := updated_of(dataset)) else {}),
        "note": notes_of(dataset),
        "role": {"metric": [CONTENTS]},
        "id": [axis.name for axis in listed],
        "size": [len(axis) for axis in listed],
        "dimension": dimensions,
        "value": None,
        "extension": extension_of(dataset, site, texts),
    }


def contents_dimension(axis: CubeAxis, dataset: Dataset, texts: Texts) -> dict[str, Any]:
    """The variable of units."""
    found = dimension(axis)
    found["category"]["unit"] = {
        code: {"base": unit_label(code, texts), "decimals": 0} for code in axis.codes
    }
    found["extension"] = {
        "elimination": False,
        "refperiod": dict.fromkeys(axis.codes, dataset.about.date or dataset.edition),
        "show": "value",
        "codeLists": [],
    }
    return found


def extension_of(dataset: Dataset, site: Site, texts: Texts) -> dict[str, Any]:
    """What the protocol keeps beside JSON-stat."""
    contact = dataset.about.contact or site.config.contact
    heading = [CONTENTS]
    return {
        "px": {
            "tableid": dataset.name,
            "matrix": dataset.name,
            "decimals": 0,
            "official-statistics": False,
            "aggregallowed": False,
            "copyright": False,
            "language": texts.code,
            "contents": dataset.title,
            "heading": heading,
            "stub": [v.name for v in dataset.variables],
        },
        "contact": [{"raw": contact}] if contact else [],
        "noteMandatory": {str(k): True for k in range(len(notes_of(dataset)))},
        "edition": dataset.edition,
        "licence": dataset.about.licence,
        "statement": dataset.statement.to_json(),
    }


def codelist_json(found: CodeList, site: Site, base: str, texts: Texts) -> dict[str, Any]:
    """A code list with what each of its values holds."""
    return {
        "id": found.id,
        "label": codelist_label(found),
        "language": texts.code,
        "languages": list(site.config.languages),
        "elimination": True,
        "eliminationValueCode": found.variable.axis.total,
        "type": "Aggregation",
        "values": [
            {"code": e.code, "label": e.label, "valueMap": found.leaves_of(e.code)}
            for e in found.categories
        ],
        "links": [link("self", f"{base}{ROOT}/codelists/{found.id}", texts)],
    }


def codelist_label(found: CodeList) -> str:
    """The level for readers."""
    return f"{found.variable.label}: {found.detail.label or found.detail.name}"


def notes_of(dataset: Dataset) -> list[str]:
    """What readers must know, in plain words."""
    plain = dataset.statement.plain
    return [*([plain] if plain else []), *dataset.about.footnotes]


def updated_of(dataset: Dataset) -> str | None:
    """The day of the edition as a time, where the data set tells a day."""
    day = dataset.about.date
    return f"{day}T00:00:00Z" if _DAY.fullmatch(day) else None


def period_of(dataset: Dataset) -> str:
    """The year of the figures, or their edition where the data set tells no year."""
    year = re.search(r"\b\d{4}\b", dataset.about.date)
    return year[0] if year else dataset.edition


def _both(dataset: Dataset, axes: Sequence[CubeAxis]) -> zip[tuple[Variable, CubeAxis]]:
    return zip(dataset.variables, axes, strict=True)


def _axis(variable: Variable, codelist: CodeList | None) -> CubeAxis:
    entries = codelist.categories if codelist else widest(variable).entries
    return CubeAxis(variable.name, variable.label, entries)


def _dimension(
    dataset: Dataset, variable: Variable, axis: CubeAxis, base: str, texts: Texts
) -> dict[str, Any]:
    return {
        **dimension(axis),
        "extension": dimension_extension(dataset, variable, base, texts),
    }


def dimension_extension(
    dataset: Dataset, variable: Variable, base: str, texts: Texts
) -> dict[str, Any]:
    """What can be done with a variable: leave it out, or take another code list."""
    return {
        "elimination": True,
        "eliminationValueCode": variable.axis.total,
        "show": "value",
        "codeLists": [
            {
                "id": found.id,
                "label": codelist_label(found),
                "type": "Aggregation",
                "links": [link("metadata", f"{base}{ROOT}/codelists/{found.id}", texts)],
            }
            for found in codelists_of(dataset, variable)
        ],
    }
