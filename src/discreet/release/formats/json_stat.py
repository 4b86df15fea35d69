"""JSON-stat 2.0: one data set, a dimension for each variable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.release.cube import Cube, CubeAxis
from discreet.release.formats.json import json_bytes
from discreet.release.formats.options import PLAIN, Options
from discreet.release.formats.symbols import MEANINGS, plain_values, symbols
from discreet.release.outline import Entry, parents


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
    return {
        "version": "2.0",
        "class": "dataset",
        **{name: text for name, text in told.items() if text},
        "id": list(cube.names),
        "size": [len(axis) for axis in cube.axes],
        "dimension": {axis.name: dimension(axis) for axis in cube.axes},
        "value": plain_values(cube),
        **({"status": status} if status else {}),
        "extension": _extension(cube, options, set(status.values())),
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


def children_of(entries: tuple[Entry, ...]) -> Mapping[str, list[str]]:
    """For each category with others under it, those that stand directly under it."""
    found: dict[str, list[str]] = {}
    for entry, above in zip(entries, parents(entries, of_total=True), strict=True):
        if above is not None:
            found.setdefault(entries[above].code, []).append(entry.code)
    return found


def _extension(cube: Cube, options: Options, used: set[str]) -> dict[str, Any]:
    names = ("name", "edition", "licence", "contact", "citation", "address")
    named = {name: getattr(options.about, name) for name in names}
    return {
        "measure": options.measure_of(cube),
        "unit": cube.unit,
        **{name: text for name, text in named.items() if text},
        "status": {symbol: MEANINGS[symbol] for symbol in sorted(used)},
        "statement": cube.statement.to_json(),
    }
