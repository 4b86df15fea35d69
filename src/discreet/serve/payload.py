"""The JSON twin of a table page."""

from __future__ import annotations

import math
from typing import Any

from discreet.design.release import Release
from discreet.serve.layout import entries_of
from discreet.serve.request import Asked, TableRequest
from discreet.serve.settings import Settings
from discreet.serve.source import Source


def table_json(release: Release, request: TableRequest) -> dict[str, Any]:
    """The released cells, row for row those of the CSV file, with what explains them."""
    cells = release.to_arrow()
    return {
        "title": request.title,
        "variables": [_variable(asked) for asked in request.in_public_order],
        "columns": cells.column_names,
        "cells": [
            [_plain(name, value) for name, value in row.items()] for row in cells.to_pylist()
        ],
        "unit": release.unit,
        "statement": release.statement.to_json(),
        "links": {"page": f"table?{request.query}", "csv": f"table.csv?{request.query}"},
    }


def limits_json(source: Source, settings: Settings, longest_query: int) -> dict[str, Any]:
    """What may be asked."""
    return {
        "max_variables": settings.max_variables,
        "max_cells": settings.max_cells,
        "max_query_length": longest_query,
        "variables": [
            {
                "name": variable.name,
                "label": variable.label,
                "details": [{"name": d.name, "cells": d.cells} for d in variable.details],
            }
            for variable in source.variables
        ],
    }


def _variable(asked: Asked) -> dict[str, Any]:
    return {
        "name": asked.variable.name,
        "label": asked.variable.label,
        "detail": asked.detail.name,
        "codes": [{"code": e.code, "label": e.label, "depth": e.depth} for e in entries_of(asked)],
    }


def _plain(column: str, value: Any) -> Any:
    if column == "status":
        return value.replace(" ", "_")
    return None if isinstance(value, float) and math.isnan(value) else value
