"""The selected cells in the format that a program asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from fastapi import Request
from fastapi.responses import Response

from discreet.release.cube import Cube
from discreet.release.formats.json import dataset as json_stat
from discreet.release.formats.json import json_bytes
from discreet.release.formats.write import Labels, Options, writer_named
from discreet.serve.answer import Answer
from discreet.serve.api.pxweb.contents import CONTENTS
from discreet.serve.api.pxweb.metadata import dimensions, extension_of, updated_of
from discreet.serve.api.pxweb.selection import Selection
from discreet.serve.api.reply import reply
from discreet.serve.api.told import Teller
from discreet.serve.refusals import Refusal
from discreet.serve.web.panel import unit_label

JSON_STAT: Final = "json-stat2"
FORMATS = {
    JSON_STAT: "json-stat",
    "csv": "csv",
    "px": "px",
    "xlsx": "xlsx",
    "html": "html",
    "parquet": "parquet",
}
_LABELS: dict[str, Labels] = {
    "UseCodes": "codes",
    "UseTexts": "labels",
    "UseCodesAndTexts": "both",
}
_SEPARATORS = {"SeparatorTab": "\t", "SeparatorSpace": " ", "SeparatorSemicolon": ";"}


def data_reply(
    request: Request, selection: Selection, form: str, params: Sequence[str]
) -> Response:
    """The selected cells as an answer."""
    teller = Teller.of(request)
    answers = selection.answered()
    cube = selection.cube(answers, teller.texts)
    options = _options(selection, answers, teller)
    if form == JSON_STAT:
        found = _json_stat(selection, cube, options, teller)
        return reply(request, json_bytes(found), "application/json")
    writer = writer_named(FORMATS[form])
    content = writer.write(cube, _laid_out(options, params))
    return reply(request, content, writer.media_type)


def _options(selection: Selection, answers: Mapping[str, Answer], teller: Teller) -> Options:
    first = next(iter(answers.values()))
    labels = [s.variable.label for s in selection.variables]
    title = f"{selection.dataset.title}: {', '.join(labels)}" if labels else selection.dataset.title
    about = replace(teller.about(first), title=title)
    columns = (*selection.in_columns, CONTENTS)
    measure = " / ".join(unit_label(unit, teller.texts) for unit in selection.units)
    return Options(layout="wide", columns=columns, measure=measure, about=about)


def _laid_out(options: Options, params: Sequence[str]) -> Options:
    """The options with the protocol's parameters of formats."""
    labels = [_LABELS[name] for name in params if name in _LABELS]
    separators = [_SEPARATORS[name] for name in params if name in _SEPARATORS]
    if len({*labels}) > 1 or len({*separators}) > 1:
        message = "Parameters of the output format contradict each other."
        raise Refusal("contradiction", message, "One of UseCodes, UseTexts, UseCodesAndTexts.")
    return replace(
        options,
        labels=labels[0] if labels else "labels",
        separator=separators[0] if separators else ",",
    )


def _json_stat(
    selection: Selection, cube: Cube, options: Options, teller: Teller
) -> dict[str, Any]:
    """JSON-stat with what the protocol adds to it."""
    dataset, columns = selection.dataset, selection.in_columns
    found, extension = json_stat(cube, options), extension_of(selection.dataset, teller)
    extension["px"]["stub"] = [s.name for s in selection.variables if s.name not in columns]
    extension["px"]["heading"] = [*columns, CONTENTS]
    symbols = found["extension"]["status"]
    found["dimension"] = dimensions(list(cube.axes), dataset, teller)
    found["extension"] = {**extension, "status": symbols, "citation": options.about.citation}
    found |= {"role": {"metric": [CONTENTS]}, "updated": updated_of(dataset)}
    return {name: value for name, value in found.items() if value is not None}
