"""What holds for every answer: security headers, one way to fail, nothing confidential in logs."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException

from discreet.errors import DiscreetError
from discreet.serve.pages import error_page
from discreet.serve.refusals import Refusal, as_json, refusal_of
from discreet.serve.settings import Settings

LONGEST_QUERY = 2_000
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "geolocation=(), camera=(), microphone=()",
}
_log = logging.getLogger("discreet.serve")


def guard(app: FastAPI, settings: Settings) -> None:
    """Put headers on every answer and turn every error into the one shape."""

    def refused(request: Request, error: Exception) -> Response:
        return _answer(request, _as_refusal(error), settings)

    app.add_exception_handler(DiscreetError, refused)
    app.add_exception_handler(HTTPException, refused)

    @app.middleware("http")
    async def _guarded(
        request: Request, follow: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        try:
            _check_length(request)
            response = await follow(request)
        except Exception as error:  # whatever it is, the visitor learns nothing from it
            response = refused(request, error)
        response.headers.update(HEADERS)
        return response


def _check_length(request: Request) -> None:
    if len(request.scope["query_string"]) > LONGEST_QUERY:
        message = "The request is too long."
        raise Refusal("too_long", message, f"At most {LONGEST_QUERY:,} characters.", 414)


def _as_refusal(error: Exception) -> Refusal:
    if isinstance(error, HTTPException):
        return _http_refusal(error.status_code)
    refusal = refusal_of(error)
    if refusal.status >= 500:
        _log.error("%s at %s", type(error).__name__, _where(error))
    return refusal


def _http_refusal(status: int) -> Refusal:
    if status == 404:
        allowed = "/, /table, /table.csv, /table.json, /limits.json and /health."
        return Refusal("not_found", "There is no such page.", allowed, 404)
    if status == 405:
        return Refusal("method_not_allowed", "Pages can only be read.", "GET requests.", 405)
    return Refusal("not_possible", "The request cannot be answered.", "See /limits.json.", status)


def _where(error: BaseException) -> str:
    """Places in the code, never messages or values: those may hold true counts."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    return " < ".join(f"{f.filename}:{f.lineno}" for f in reversed(frames))


def _answer(request: Request, refusal: Refusal, settings: Settings) -> Response:
    if request.scope["path"].endswith((".json", ".csv", "/health")):
        return JSONResponse(as_json(refusal), refusal.status)
    root = request.scope.get("root_path", "")
    return HTMLResponse(error_page(refusal, settings, root), refusal.status)
