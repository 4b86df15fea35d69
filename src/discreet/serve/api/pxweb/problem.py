"""Errors as problem details (RFC 9457), the shape that clients of the protocol expect."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from discreet.serve.refusals import Refusal, unreadable

MEDIA_TYPE = "application/problem+json"
TOO_LARGE = ("too_many_cells", "too_many_variables")
"""Refusals that the protocol answers with 403."""


class ProblemRoute(APIRoute):
    """A route whose refusals are problem details; faults of ours go on to the guard."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler with refusals turned into answers."""
        handler = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handler(request)
            except Refusal as refusal:
                return problem(request, refusal)
            except RequestValidationError as error:
                return problem(request, unreadable(error.errors(), 400))
            except HTTPException:  # the body is no JSON
                message = "The body of the request cannot be read."
                return problem(request, Refusal("unreadable", message, "A body in JSON."))

        return handled


def problem(request: Request, refusal: Refusal) -> Response:
    """A refusal as problem details; `offers` are tables that would be answered."""
    status = 403 if refusal.code in TOO_LARGE else refusal.status
    request.scope["state"]["outcome"] = refusal.code
    told = {
        "type": f"urn:discreet:{refusal.code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": f"{refusal.public()} {refusal.allowed}",
        "instance": request.scope["state"]["path"],
        "offers": refusal.offered,
    }
    return JSONResponse(told, status, media_type=MEDIA_TYPE)
