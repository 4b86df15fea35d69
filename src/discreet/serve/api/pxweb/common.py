"""What the addresses of PxWebApi 2 have in common."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from discreet.serve.api.pxweb import models
from discreet.serve.api.pxweb.metadata import ROOT
from discreet.serve.api.pxweb.problem import MEDIA_TYPE, ProblemRoute
from discreet.serve.site.site import Site

_MOST_CELLS = 100_000
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": "A problem, with what is allowed.",
        "content": {MEDIA_TYPE: {"schema": models.Problem.model_json_schema()}},
    }
    for status in (400, 403, 404)
}
Lang = Annotated[str | None, Query(description="The language, if not the default one.")]


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


def named(request: Request, kind: str) -> dict[str, str]:
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
