"""JSON: the cells as rows, with everything that explains them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from discreet.arrays import Index
from discreet.frames import value_names
from discreet.release.cube import Cube, CubeAxis
from discreet.release.formats.columns import present
from discreet.release.formats.options import PLAIN, Options
from discreet.release.formats.symbols import plain_values, status_names

_TOLD = (
    *("title", "name", "edition", "updated", "source", "licence", "contact"),
    *("address", "citation", "language"),
)


class JsonWriter:
    """The table as one JSON object; `cells` has a row for each cell, as `columns` names them."""

    name, title = "json", "JSON"
    ending, media_type = ".json", "application/json"

    def write(self, cube: Cube, options: Options = PLAIN) -> bytes:
        """The file's content."""
        return json_bytes(document(cube, options))


def json_bytes(found: dict[str, Any]) -> bytes:
    """A document as JSON in UTF-8."""
    return json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def document(cube: Cube, options: Options, at: Index | None = None) -> dict[str, Any]:
    """The table as plain data.

    Args:
      cube: The table.
      options: What is said beside the figures.
      at: Which cells, by their places in the flattened array; all that are present if absent.
    """
    places = present(cube) if at is None else at
    names = value_names(cube.names, [options.measure_of(cube), "status"])
    where = np.unravel_index(places, cube.values.shape) if cube.axes else ()
    codes = [
        np.array(axis.codes, dtype=object)[index].tolist()
        for axis, index in zip(cube.axes, where, strict=True)
    ]
    status = status_names(cube.status.reshape(-1)[places]).tolist()
    rows = zip(*codes, plain_values(cube, places), status, strict=True)
    return {
        **described(cube, options),
        "columns": [*cube.names, *names.values()],
        "cells": [list(row) for row in rows],
    }


def described(cube: Cube, options: Options) -> dict[str, Any]:
    """All but the cells as plain data."""
    about = options.about
    return {
        **{name: getattr(about, name) for name in _TOLD},
        "unit": cube.unit,
        "measure": options.measure_of(cube),
        "variables": [_variable(axis) for axis in cube.axes],
        "notes": list(about.plain_notes(cube)),
        "footnotes": list(about.footnotes),
        "statement": cube.statement.to_json(),
    }


def _variable(axis: CubeAxis) -> dict[str, Any]:
    codes = [{"code": e.code, "label": e.label, "depth": e.depth} for e in axis.entries]
    return {"name": axis.name, "label": axis.label, "codes": codes}
