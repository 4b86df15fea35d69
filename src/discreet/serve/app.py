"""The application: pages, interfaces for programs, the office, and the OpenAPI document."""

from __future__ import annotations

import functools
import gzip
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet import __version__
from discreet.serve.api import pxweb, reply, v1
from discreet.serve.api.reply import base_of, json_reply
from discreet.serve.data.cache import MAKING_SEATS
from discreet.serve.guard import guard
from discreet.serve.metrics import RequestCounts, describe
from discreet.serve.office import admin
from discreet.serve.office.config import Proxies
from discreet.serve.office.office import Office, OfficeMiddleware, Sender
from discreet.serve.refusals import Refusal, RequestNote, current_note
from discreet.serve.site.site import Site, SiteHolder, as_holder, current_site
from discreet.serve.web import pages
from discreet.serve.web.frame import language_of, page

_router = APIRouter()
_THREADS = 40  # beside those in which visitors wait for a seat
_API_DESCRIPTION = (
    "Protected tables for programs. Tables are asked for by the same parameters as in the address "
    "of a table's page. Every error has one shape; its offers are tables that would be answered."
)


def make_app(site: Site | SiteHolder, office: Office | None = None) -> FastAPI:
    """The application that answers for a site.

    Args:
      site: The site, or a holder that can read it again.
      office: Accounts and the audit log; without it anybody may ask and nothing is written down.
    """
    holder, office = as_holder(site), office or Office()
    app = FastAPI(
        title=holder.current.title,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,  # a redirect would repeat whatever host the visitor names
        lifespan=_lifespan,
    )
    app.state.site, app.state.office, app.state.counts = holder, office, RequestCounts()
    office.watch(holder)
    pages.mount(app)
    own = (_router, reply.router, pages.router, admin.router, v1.router)
    for router in (*own, *pxweb.routers, pxweb.older):
        app.include_router(router)
    # The layer that is added last is asked first. The office stands before the cache, so that an
    # answer from memory is limited and written down like any other; the guard before both, so that
    # their refusals have the one shape and its headers.
    app.add_middleware(ResponseCache)
    app.add_middleware(OfficeMiddleware, office=office)
    guard(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Have threads enough for those who wait for a seat and for those who need none."""
    to_thread.current_default_thread_limiter().total_tokens = 2 * MAKING_SEATS.small.line + _THREADS
    yield
    await run_in_threadpool(app.state.office.stop_jobs)


@_router.get("/live")
def live() -> dict[str, str]:
    """Whether the process answers at all."""
    return {"status": "ok", "version": __version__}


@_router.get("/ready")
@_router.get("/health")
def ready(request: Request) -> Response:
    """Whether tables are answered: the log can be written, the disk has room, builds are whole."""
    failing = [*request.app.state.office.failures(), *current_site(request).failures]
    told = {"status": "failing" if failing else "ok", "version": __version__, "failing": failing}
    return JSONResponse(told, 503 if failing else 200)


@_router.get("/metrics", include_in_schema=False)
def metrics(request: Request) -> Response:
    """Counts for Prometheus, for the addresses that the site's file names."""
    office, site = request.app.state.office, current_site(request)
    allowed, sender = Proxies(site.config.server.metrics), Sender(request.scope, office)
    if not allowed.trust(sender.address):
        raise Refusal("not_found", "There is no such page.", "The catalogue is at /.", 404)
    told = describe(request.app.state.counts, office, site)
    return Response(told, media_type="text/plain; version=0.0.4; charset=utf-8")


@_router.get("/api/openapi.json", include_in_schema=False)
def openapi(request: Request) -> Response:
    """The OpenAPI document."""
    servers = [{"url": base_of(request) or "/"}]
    found = openapi_document(current_site(request).title)
    return json_reply(request, {**found, "servers": servers})


@_router.get("/api/", include_in_schema=False)
def reference(request: Request) -> Response:
    """A page for people, drawn from the document."""
    found = openapi_document(current_site(request).title)
    return page(request, "reference.html", document=found, groups=_operations_by_tag(found))


@functools.lru_cache(maxsize=8)
def openapi_document(title: str) -> dict[str, Any]:
    """The document of a site, but for its address."""
    routes = [route for router in (v1.router, *pxweb.routers) for route in router.routes]
    description = _API_DESCRIPTION
    return get_openapi(title=title, version=__version__, description=description, routes=routes)


def _operations_by_tag(found: Mapping[str, Any]) -> dict[str, list[tuple[str, str, Any]]]:
    """The operations by their tag, each with its path and method."""
    groups: dict[str, list[tuple[str, str, Any]]] = {}
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            tag = operation.get("tags", ["Other"])[0]
            groups.setdefault(tag, []).append((path, method.upper(), operation))
    return groups


MOST_BYTES = 128_000_000
"""Bytes of responses that a process keeps."""
LARGEST_RESPONSE = 8_000_000
"""Bytes of the largest response that is kept."""
_SMALLEST_ZIPPED = 1_000
_SLOWLY_ZIPPED = 100_000  # larger answers are zipped by a thread, so that nobody waits
_ZIPPED = ("text/", "application/json", "application/xml", "image/svg+xml")
_BESIDE = 1_000  # bytes of what stands around an answer in memory


@dataclass(frozen=True)
class CachedResponse:
    """A response with what was noted of its request."""

    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    tag: str
    note: RequestNote

    @property
    def weight(self) -> int:
        """Bytes that the answer takes in memory, at most."""
        headers = sum(len(name) + len(value) for name, value in self.headers)
        return _BESIDE + headers + len(self.note.address) + len(self.body)


class ResponseCache:
    """The middleware that keeps responses.

    A response is kept for everybody who would get the same one: the same address, language, role
    and day, from the same edition of the site.

    Args:
      app: What answers.
      room: Bytes that are kept; responses that were not asked for the longest time go first.
    """

    def __init__(self, app: ASGIApp, room: int = MOST_BYTES) -> None:
        self.app, self.room = app, room
        self._kept: OrderedDict[bytes, CachedResponse] = OrderedDict()
        self._load = 0
        self._site: object = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from memory, or ask and remember."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        headers, site = Headers(scope=scope), scope["state"]["site"]
        if site is not self._site:  # the site was read again: its answers may differ
            self._kept.clear()
            self._load, self._site = 0, site
        key = _key(scope, headers)
        found = self._kept.get(key)
        if found is not None and _is_open(scope, found.note):
            self._kept.move_to_end(key)
            note = current_note()
            if note is not None:  # the audit log is told the same as of the first question
                first = found.note
                note.dataset, note.edition = first.dataset, first.edition
                note.address, note.cells = first.address, first.cells
            await _send(found, headers, send)
            return
        await self._ask(scope, receive, send, key)

    async def _ask(self, scope: Scope, receive: Receive, send: Send, key: bytes) -> None:
        """Have an answer made, and send it in one piece: marked, zipped and kept."""
        site, headers = scope["state"]["site"], Headers(scope=scope)
        start: Message = {}
        parts: list[bytes] = []

        async def take(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_whole(message):
                start.update(message)
            elif not start:
                await send(message)
            else:
                parts.append(message.get("body", b""))
                if not message.get("more_body", False):
                    await finish(start["headers"], b"".join(parts))

        async def finish(given: Iterable[tuple[bytes, bytes]], body: bytes) -> None:
            note, is_quick = current_note(), len(body) < _SLOWLY_ZIPPED
            make = partial(_finish, given, body, headers, note)
            answer = make() if is_quick else await run_in_threadpool(make)
            if note is not None and note.dataset and not note.outcome:
                self.keep(key, answer, site)
            await _send(answer, headers, send)

        await self.app(scope, receive, take)

    def keep(self, key: bytes, answer: CachedResponse, site: object) -> None:
        """Remember an answer, unless the site that gave it was exchanged meanwhile."""
        if site is not self._site or key in self._kept or len(answer.body) > LARGEST_RESPONSE:
            return
        self._kept[key] = answer
        self._load += answer.weight
        while self._load > self.room:
            _, gone = self._kept.popitem(last=False)
            self._load -= gone.weight


def _is_whole(message: Message) -> bool:
    """Whether an answer is one that all who ask the same may get."""
    names = {name.lower() for name, _ in message["headers"]}
    is_one_piece = b"content-length" in names  # a stream is neither collected nor kept
    return message["status"] == 200 and is_one_piece and b"set-cookie" not in names


def _finish(
    given: Iterable[tuple[bytes, bytes]], body: bytes, asked: Headers, note: RequestNote | None
) -> CachedResponse:
    """The answer with its tag and its length, zipped where that is wanted and worth it."""
    headers = MutableHeaders(raw=list(given))
    is_long_text = len(body) >= _SMALLEST_ZIPPED and "content-encoding" not in headers
    is_long_text &= headers.get("content-type", "").startswith(_ZIPPED)
    if is_long_text and _takes_gzip(asked):
        # Without the time equal answers are equal bytes, and so have equal tags.
        body = gzip.compress(body, 4, mtime=0)
        headers["Content-Encoding"] = "gzip"
    headers["Content-Length"] = str(len(body))
    headers.add_vary_header("Accept-Encoding")
    headers.setdefault("Cache-Control", "private, no-cache")
    tag = headers.setdefault("ETag", f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"')
    said = RequestNote() if note is None else replace(note, seat=ExitStack())
    return CachedResponse(tuple(headers.raw), body, tag, said)


def _takes_gzip(asked: Headers) -> bool:
    wishes = asked.get("accept-encoding", "").lower().replace(" ", "").split(",")
    return any(w.partition(";")[0] == "gzip" and not w.endswith(";q=0") for w in wishes)


async def _send(answer: CachedResponse, asked: Headers, send: Send) -> None:
    """The answer, or word that the visitor has it already."""
    known = asked.get("if-none-match", "").split(",")
    tags = [part.strip().removeprefix("W/") for part in known]
    if answer.tag.removeprefix("W/") in tags or tags == ["*"]:
        dropped = (b"content-length", b"content-type", b"content-encoding", b"content-disposition")
        headers = [(k, v) for k, v in answer.headers if k.lower() not in dropped]
        await send({"type": "http.response.start", "status": 304, "headers": headers})
        await send({"type": "http.response.body", "body": b""})
        return
    headers = list(answer.headers)
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def _key(scope: Any, headers: Headers) -> bytes:
    """A digest of everything that an answer may depend on."""
    visitor = scope["state"]["visitor"]
    decides = (
        scope["path"],
        scope["query_string"],
        scope.get("root_path", ""),
        scope.get("scheme"),
        headers.get("host", ""),
        headers.get("accept", ""),
        language_of(Request(scope)),
        _takes_gzip(headers),
        visitor.role,
        visitor.id if visitor.is_known else "",
        datetime.now(UTC).date(),
    )
    return hashlib.blake2b(repr(decides).encode(), digest_size=16).digest()


def _is_open(scope: Any, note: RequestNote) -> bool:
    """Whether the data set of a kept answer still answers this visitor."""
    dataset = scope["state"]["site"].datasets.get(note.dataset)
    return dataset is not None and dataset.switch.is_open_to(scope["state"]["visitor"].role)
