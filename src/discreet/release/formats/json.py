"""JSON: the cells as rows, with everything that explains them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.arrays import Index
from discreet.frames import value_names
from discreet.release.cube import Cube, CubeAxis, CubeEntry, parents
from discreet.release.formats.columns import MEANINGS, plain_values, present, status_names, symbols
from discreet.release.formats.write import PLAIN, Options

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
    """The table as plain data; `at` as for `long_table`."""
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
        **describe(cube, options),
        "columns": [*cube.names, *names.values()],
        "cells": [list(row) for row in rows],
    }


def describe(cube: Cube, options: Options) -> dict[str, Any]:
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


class JsonStatWriter:
    """A JSON-stat 2.0 data set; figures that are not shown are null and have a status."""

    name, title = "json-stat", "JSON-stat 2.0"
    ending, media_type = ".jsonstat.json", "application/json"

    def write(self, cube: Cube, options: Options = PLAIN) -> bytes:
        """The file's content."""
        return json_bytes(dataset(cube, options))


def dataset(cube: Cube, options: Options) -> dict[str, Any]:
    """The cube as a JSON-stat data set, as plain data."""
    about = options.about
    shown = symbols(cube).reshape(-1)
    status = {str(k): str(symbol) for k, symbol in enumerate(shown) if symbol}
    notes = [*about.plain_notes(cube), *about.footnotes]
    told = {"label": about.title, "source": about.source, "updated": about.updated, "note": notes}
    names = ("name", "edition", "licence", "contact", "citation", "address")
    extension = {
        "measure": options.measure_of(cube),
        "unit": cube.unit,
        **{name: text for name in names if (text := getattr(about, name))},
        "status": {s: about.word(MEANINGS[s]) for s in sorted(set(status.values()))},
        "statement": cube.statement.to_json(),
    }
    return {
        "version": "2.0",
        "class": "dataset",
        **{name: text for name, text in told.items() if text},
        "id": list(cube.names),
        "size": [len(axis) for axis in cube.axes],
        **({"role": {"time": [options.time]}} if options.time in cube.names else {}),
        "dimension": {axis.name: dimension(axis) for axis in cube.axes},
        "value": plain_values(cube),
        **({"status": status} if status else {}),
        "extension": extension,
    }


def dimension(axis: CubeAxis) -> dict[str, Any]:
    """A variable as a JSON-stat dimension; what stands under a category is its child."""
    category: dict[str, Any] = {
        "index": {code: k for k, code in enumerate(axis.codes)},
        "label": {entry.code: entry.label for entry in axis.entries},
    }
    if children := children_of(axis.entries):
        category["child"] = children
    return {"label": axis.label, "category": category}


def children_of(entries: tuple[CubeEntry, ...]) -> Mapping[str, list[str]]:
    """For each category with others under it, those that stand directly under it."""
    found: dict[str, list[str]] = {}
    for entry, above in zip(entries, parents(entries, of_total=True), strict=True):
        if above is not None:
            found.setdefault(entries[above].code, []).append(entry.code)
    return found
