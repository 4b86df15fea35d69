"""Tables as files, in every format there is a writer for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from fastapi import APIRouter, Request
from fastapi.responses import Response

from discreet.release.formats.write import LABELS, LAYOUTS, Writer, writers
from discreet.serve.answer import Answer
from discreet.serve.api.reply import reply
from discreet.serve.api.told import Teller, written_cube
from discreet.serve.query import Query
from discreet.serve.refusals import Refusal, T, one_of
from discreet.serve.site.site import current_site

router = APIRouter()
_NOT_OF_THE_QUERY = ("layout", "labels", "lang", "format", "page", "page_size")


@router.get("/d/{dataset}/table.{ending}", include_in_schema=False)
def download(request: Request, dataset: str, ending: str) -> Response:
    """The table of an address as a file to keep."""
    answer = current_site(request).dataset(dataset).answer(query_of(request))
    known = {writer.ending: writer for writer in writers()}
    if f".{ending}" not in known:
        message = f"There is no format .{ending}."
        raise Refusal("unknown_format", message, f"Endings: {', '.join(known)}.", 404)
    name = f"{dataset}-{'-'.join(answer.rows + answer.columns)}"
    safe = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")
    file = f"{safe}.{ending}"
    headers = {"Content-Disposition": f'attachment; filename="{file}"'}
    return file_reply(request, answer, known[f".{ending}"], file, headers)


def file_reply(
    request: Request, answer: Answer, writer: Writer, file: str, headers: dict[str, str]
) -> Response:
    """An answer in a format, as a file of this name or address."""
    layout, labels = _wish(request, "layout", LAYOUTS), _wish(request, "labels", LABELS)
    options = replace(Teller.of(request).options(answer, layout, labels), file=file)
    return reply(request, writer.write(written_cube(answer), options), writer.media_type, headers)


def query_of(request: Request) -> Query:
    """The query of an address, without what belongs to files and pages of results."""
    given = request.query_params.multi_items()
    return Query.parse((k, v) for k, v in given if k not in _NOT_OF_THE_QUERY)


def format_named(name: str) -> Writer:
    """The writer of a format, or a refusal that names those there are."""
    known = {writer.name: writer for writer in writers()}
    if name not in known:
        message = f"There is no format {name!r}."
        raise Refusal("unknown_format", message, f"Formats: {', '.join(known)}.", 404)
    return known[name]


def _wish(request: Request, name: str, allowed: Sequence[T]) -> T | None:
    """How a file is laid out, where the address says so."""
    wish = request.query_params.get(name)
    return None if wish is None else one_of(name, wish, allowed)
