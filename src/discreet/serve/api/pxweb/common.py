"""What the addresses of PxWebApi 2 have in common: the router, parameters, and problem details."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from discreet.serve.api.pxweb import models
from discreet.serve.api.pxweb.metadata import ROOT
from discreet.serve.refusals import Refusal, malformed_request
from discreet.serve.site.site import Site

_MOST_CELLS = 100_000
MEDIA_TYPE = "application/problem+json"
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": "A problem, with what is allowed.",
        "content": {MEDIA_TYPE: {"schema": models.ProblemDetails.model_json_schema()}},
    }
    for status in (400, 403, 404)
}
Lang = Annotated[str | None, Query(description="The language, if not the default one.")]
TOO_LARGE = ("too_many_cells", "too_many_variables")
"""Refusals that the protocol answers with 403."""


def router_of() -> APIRouter:
    """A router whose refusals have the shape of the protocol."""
    return APIRouter(
        prefix=ROOT, tags=["PxWebApi 2"], responses=_PROBLEMS, route_class=ProblemRoute
    )


def by_variable(name: str, help: str) -> dict[str, Any]:
    """A parameter with a variable in brackets, as OpenAPI describes it."""
    return {
        "name": name,
        "in": "query",
        "style": "deepObject",
        "explode": True,
        "description": help,
        "schema": {"type": "object", "additionalProperties": {"type": "string"}},
    }


VALUES = by_variable(
    "valueCodes",
    "Codes of a variable, valueCodes[V]=A,B; also *, A*, ?, top(N), bottom(N), range(A,B), "
    "from(A) and to(A).",
)
LISTS = by_variable("codelist", "A code list of a variable, codelist[V]=ID.")


def by_brackets(request: Request, kind: str) -> dict[str, str]:
    """Parameters with a variable in brackets, `valueCodes[age]`; several are joined by commas."""
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        match = re.fullmatch(r"(\w+)\[(.+)\]", name)
        if match and match[1].lower() == kind:
            found[match[2]] = f"{found[match[2]]},{value}" if match[2] in found else value
    return found


def max_cells(site: Site) -> int:
    """The cells of one answer that every table allows."""
    told = [d.policy.max_cells for d in site.datasets.values() if d.policy.tells("max_cells")]
    return min([_MOST_CELLS, *told])


class ProblemRoute(APIRoute):
    """A route whose refusals are problem details; faults of ours go on to the guard."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler with refusals turned into answers."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await handler(request)
            except Refusal as refusal:
                return problem(request, refusal)
            except RequestValidationError as error:
                return problem(request, malformed_request(error.errors(), 400))
            except HTTPException:  # the body is no JSON
                message = "The body of the request cannot be read."
                return problem(request, Refusal("unreadable", message, "A body in JSON."))

        return handle


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
        "offers": refusal.offers_json,
    }
    return JSONResponse(told, status, media_type=MEDIA_TYPE)
