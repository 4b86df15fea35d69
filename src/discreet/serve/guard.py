"""What holds for every answer: security headers, one way to fail, nothing confidential in logs."""

from __future__ import annotations

import logging
import math
import time
import traceback

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.errors import DiscreetError
from discreet.serve.metrics import RequestCounts
from discreet.serve.refusals import (
    PROBLEM,
    Queued,
    Refusal,
    as_json,
    as_problem,
    malformed_request,
    refusal_of,
    with_own_cookies,
)
from discreet.serve.web.frame import render, root_of

# Web servers in front of a site refuse longer request lines: Apache by default beyond 8,190 bytes.
LONGEST_QUERY = 8_000
# The largest request that has a meaning selects ten thousand codes, in JSON.
LARGEST_BODY = 500_000
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "geolocation=(), camera=(), microphone=()",
}
_ORDINARY = ("queued",)  # a table that waits its turn is no fault
_log = logging.getLogger("discreet.serve")


def guard(app: FastAPI) -> None:
    """Put headers on every answer and turn every error into the one shape."""
    for kind in (DiscreetError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, refuse)
    app.add_middleware(Guard)


class Guard:
    """The outermost layer: it gives each request its site, and each answer its headers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope = {**scope, "headers": with_own_cookies(scope["headers"])}
        if scope["method"] == "HEAD":
            scope["method"], send = "GET", _without_body(send)
        state = scope.setdefault("state", {})
        state["site"] = scope["app"].state.site.current
        state["path"] = scope["path"].removeprefix(scope.get("root_path", ""))
        state.setdefault("visitor", None)
        started, began = False, time.perf_counter()

        async def with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                MutableHeaders(scope=message).update(HEADERS)
                status, code = message["status"], state.get("outcome", "")
                passed = time.perf_counter() - began
                counts: RequestCounts = scope["app"].state.counts
                counts.count(state["path"], status, code, passed)
                if code:
                    log_refusal(code, status)
            await send(message)

        try:
            _check_length(scope)
            await self.app(scope, _limit_body(receive), with_headers)
        except Exception as error:  # whatever it is, the visitor learns nothing from it
            if started:
                raise
            await refuse(Request(scope), error)(scope, receive, with_headers)


def refuse(request: Request, error: Exception) -> Response:
    """The answer to a request that failed: a page, or JSON for programs."""
    path: str = request.scope["state"]["path"]
    if isinstance(error, Queued):
        found = _enqueue(request, error)
        is_page = path.startswith("/d/") and path.endswith("/table")
        if found is error and is_page:  # whoever wants a file or is a program asks again
            request.scope["state"]["outcome"] = error.code
            to = f"{root_of(request)}/d/{error.dataset}/job?{error.query.address}"
            return RedirectResponse(to, 303)
        error = found
    refusal = _as_refusal(error)
    request.scope["state"]["outcome"] = refusal.code
    wait = refusal.wait or (5 if refusal.status == 503 else 0)
    headers = {"Retry-After": str(math.ceil(wait))} if wait else {}
    if refusal.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if {"content-length", "transfer-encoding"} <= {*request.headers}:
        headers["Connection"] = "close"
    if isinstance(error, HTTPException) and refusal.status == 405:
        headers |= {name: text for name, text in (error.headers or {}).items() if name == "Allow"}
    if path.startswith("/api/pxweb/v2/"):
        told = as_problem(refusal, path)
        return JSONResponse(told, told["status"], headers, media_type=PROBLEM)
    if path.startswith(("/api/", "/health", "/live", "/ready")):
        return JSONResponse(as_json(refusal), refusal.status, headers)
    content = render(request, "error.html", refusal=refusal)
    return HTMLResponse(content, refusal.status, headers)


def _enqueue(request: Request, asked: Queued) -> Exception:
    """Put a table into the queue; what is to be told instead where there is no place."""
    try:
        request.app.state.office.enqueue(asked, request.state.visitor)
    except DiscreetError as refusal:
        return refusal
    return asked


def _check_length(scope: Scope) -> None:
    if len(scope["query_string"]) > LONGEST_QUERY:
        message = "The request is too long."
        raise Refusal("too_long", message, f"At most {LONGEST_QUERY:,} characters.", 414)
    given = dict(scope["headers"])
    if b"content-length" in given and b"transfer-encoding" in given:
        # Two ways to say where a request ends: a proxy in front may have taken the other one.
        raise Refusal("unreadable", "The request cannot be read.", "One length of its body.", 400)
    length = given.get(b"content-length", b"0")
    if length.isdigit() and int(length) > LARGEST_BODY:
        raise _too_large()


def _without_body(send: Send) -> Send:
    """What would be answered to GET, without its body."""

    async def head_alone(message: Message) -> None:
        if message["type"] != "http.response.body":
            await send(message)
        elif not message.get("more_body", False):
            await send({"type": "http.response.body", "body": b""})

    return head_alone


def _limit_body(receive: Receive) -> Receive:
    """What a request sends, up to a limit, whatever its head says."""
    taken = 0

    async def piece() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > LARGEST_BODY:
            raise _too_large()
        return message

    return piece


def _too_large() -> Refusal:
    message = "The request is too large."
    return Refusal("too_large", message, f"At most {LARGEST_BODY:,} bytes.", 413)


_LOG_EVERY = 60.0  # seconds between two lines about the same kind of refusal
_last_logged: dict[str, tuple[float, int]] = {}
_LIMITS = (401, 403, 413, 414, 429)  # what keeps visitors out, for a reason of theirs


def log_refusal(code: str, status: int) -> None:
    """Tell the operator that requests are refused, for each reason once a minute.

    What is our own fault is an error, what keeps visitors out a warning; questions that are not on
    offer are everyday.
    """
    now = time.monotonic()
    last, silent = _last_logged.get(code, (-math.inf, 0))
    if now - last < _LOG_EVERY:
        _last_logged[code] = (last, silent + 1)
        return
    _last_logged[code] = (now, 0)
    level = logging.WARNING if status in _LIMITS else logging.INFO
    if status >= 500 and code not in _ORDINARY:
        level = logging.ERROR
    _log.log(level, "requests are refused: %s (%d more since the last line)", code, silent)


def _as_refusal(error: Exception) -> Refusal:
    if isinstance(error, HTTPException):
        status = error.status_code
        if status == 404:
            return Refusal("not_found", "There is no such page.", "The catalogue is at /.", 404)
        if status == 405:
            return Refusal("method_not_allowed", "Pages can only be read.", "GET requests.", 405)
        return Refusal("not_possible", "The request cannot be answered.", "See /api/.", status)
    if isinstance(error, RequestValidationError):
        return malformed_request(error.errors(), 422)
    refusal = refusal_of(error)
    if refusal.status >= 500 and not isinstance(error, Refusal):
        # Places in the code, never messages or values: those may hold true counts.
        frames = reversed(traceback.extract_tb(error.__traceback__)[-3:])
        where = " < ".join(f"{f.filename}:{f.lineno}" for f in frames)
        _log.error("%s at %s", type(error).__name__, where)
    return refusal
