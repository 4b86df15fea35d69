"""Tables as files, in every format there is a writer for."""

from __future__ import annotations

import re
from typing import get_args

from fastapi import APIRouter, Request
from fastapi.responses import Response

from discreet.release.formats.options import Labels, Layout
from discreet.release.formats.write import Writer, writer_named, writers
from discreet.serve.answer import Answer
from discreet.serve.api.reply import base_of, reply, texts_of
from discreet.serve.api.told import options_of, written_cube
from discreet.serve.query import Query
from discreet.serve.refusals import Refusal
from discreet.serve.site.site import current_site

router = APIRouter()
OF_FILES = {"layout": get_args(Layout), "labels": get_args(Labels)}
"""Parameters that belong to files, with their values."""
_OTHERS = ("lang", "format", "page", "page_size")


@router.get("/d/{dataset}/table.{ending}", include_in_schema=False)
def download(request: Request, dataset: str, ending: str) -> Response:
    """The table of an address as a file to keep."""
    answer = current_site(request).dataset(dataset).answer(query_of(request))
    writer = _with_ending(ending)
    name = f"{dataset}-{'-'.join(answer.rows + answer.columns)}"
    safe = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")
    headers = {"Content-Disposition": f'attachment; filename="{safe}{writer.ending}"'}
    return file_reply(request, answer, writer, headers)


def file_reply(
    request: Request, answer: Answer, writer: Writer, headers: dict[str, str] | None = None
) -> Response:
    """An answer in a format."""
    site, texts = current_site(request), texts_of(request)
    options = options_of(answer, site, base_of(request), texts, **layout_of(request))
    content = writer.write(written_cube(answer), options)
    return reply(request, content, writer.media_type, headers)


def query_of(request: Request) -> Query:
    """The query of an address, without what belongs to files and pages of results."""
    own = (*OF_FILES, *_OTHERS)
    return Query.parse((k, v) for k, v in request.query_params.multi_items() if k not in own)


def layout_of(request: Request) -> dict[str, str]:
    """How a file is laid out, where the address says so."""
    found = {name: request.query_params[name] for name in OF_FILES if name in request.query_params}
    for name, value in found.items():
        if value not in OF_FILES[name]:
            allowed = f"One of {', '.join(OF_FILES[name])}."
            raise Refusal("unknown_value", f"{name} cannot be {value!r}.", allowed)
    return found


def format_named(name: str) -> Writer:
    """The writer of a format, or a refusal that names those there are."""
    known = [writer.name for writer in writers()]
    if name not in known:
        message = f"There is no format {name!r}."
        raise Refusal("unknown_format", message, f"Formats: {', '.join(known)}.", 404)
    return writer_named(name)


def _with_ending(ending: str) -> Writer:
    for writer in writers():
        if writer.ending == f".{ending}":
            return writer
    known = ", ".join(writer.ending for writer in writers())
    raise Refusal("unknown_format", f"There is no format .{ending}.", f"Endings: {known}.", 404)
