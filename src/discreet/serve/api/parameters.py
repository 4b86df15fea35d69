"""How an address asks for a table, as OpenAPI describes it."""

from __future__ import annotations

from typing import Any

from discreet.release.formats.write import LABELS, LAYOUTS
from discreet.serve.query import BY_VARIABLE, CHARTS, SHOWS

_MANY = {"type": "array", "items": {"type": "string"}}


def _parameter(name: str, help: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": help, "schema": schema}


def _one_of(values: Any) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


TABLE: list[dict[str, Any]] = [
    _parameter("rows", "Variables or levels in rows: region or region[province].", _MANY),
    _parameter("columns", "Variables or levels in columns.", _MANY),
    _parameter("layers", "Variables or levels of which a page shows one category.", _MANY),
    _parameter("unit", "What is counted.", _one_of(["count", "weight"])),
    _parameter("show", "Figures, or per cent of what.", _one_of(SHOWS)),
    _parameter("totals", "Whether totals are part of the table.", _one_of(["0", "1"])),
    _parameter("sort", "The column by which a page sorts rows.", {"type": "string"}),
    _parameter("chart", "The chart that a page draws.", _one_of(CHARTS)),
    {
        **_parameter(
            "by variable",
            "Parameters with a variable behind a dot: pick.V (categories that are shown), where.V "
            "(categories that make the population), group.V=LABEL|CODE|CODE (a group of "
            "categories), layer.V and fold.V (what a page shows). All but layer.V can be repeated.",
            {
                "type": "object",
                "propertyNames": {"pattern": rf"^({'|'.join(BY_VARIABLE)})\..+$"},
                "additionalProperties": _MANY,
            },
        ),
        "style": "form",
        "explode": True,
    },
]
LANGUAGE = _parameter("lang", "The language of titles and notes.", {"type": "string"})
FILE: list[dict[str, Any]] = [
    _parameter("layout", "A row per cell, or rows and columns.", _one_of(LAYOUTS)),
    _parameter("labels", "How categories stand in a file.", _one_of(LABELS)),
]
