"""Forms that change something: read with care, and only when they come from our own pages."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from discreet.serve.refusals import Refusal
from discreet.serve.web.frame import page

FIELD = "form"
_HOURS = 8.0
_LARGEST_FORM = 10_000
_TYPE = "application/x-www-form-urlencoded"


def form_mark(request: Request) -> str:
    """What a form carries to prove that it was made for this visitor."""
    mark: str = request.state.office.forms.signed(request.state.visitor.id, _HOURS * 3600)
    return mark


def form_page(request: Request, template: str, status: int = 200, **parts: Any) -> Response:
    """A page with forms for this visitor alone, which nobody keeps."""
    response = page(request, template, status, mark=form_mark(request), **parts)
    response.headers["Cache-Control"] = "no-store"
    return response


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form; a form of another site is refused."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise _foreign_form()
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _TYPE:
        raise Refusal("unreadable", "The form cannot be read.", f"Content of type {_TYPE}.", 415)
    content = await request.body()  # the guard has its own limit
    if len(content) > _LARGEST_FORM:
        raise Refusal("too_long", "The form is too long.", f"At most {_LARGEST_FORM:,} bytes.", 413)
    found = dict(parse_qsl(content.decode("utf-8", "replace")))
    if request.state.office.forms.read(found.pop(FIELD, "")) != request.state.visitor.id:
        raise _foreign_form()
    return found


def _foreign_form() -> Refusal:
    message = "The form did not come from this site, or it is too old."
    return Refusal("foreign_form", message, "Open the page again and repeat the step.", 403)
