"""Signing in with a token, and out again."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from discreet.serve.cookies import SESSION
from discreet.serve.office.accounts.tokens import holder_of
from discreet.serve.office.accounts.visitor import Role
from discreet.serve.office.forms import form_page, read_form
from discreet.serve.refusals import Refusal
from discreet.serve.web.frame import root_of

router = APIRouter(include_in_schema=False)


@router.get("/sign-in")
def sign_in_page(request: Request) -> Response:
    """The form that takes a token."""
    _check_offered(request)
    return form_page(request, "sign_in.html", is_wrong=False)


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Start a session for the holder of a token."""
    _check_offered(request)
    fields, office = await read_form(request), request.state.office
    state = await run_in_threadpool(office.refresh)
    token = holder_of(fields.get("token", "").strip(), state.tokens)
    if token is None:
        return form_page(request, "sign_in.html", 401, is_wrong=True)
    start = "/admin" if token.role is Role.custodian else "/"
    response = RedirectResponse(f"{root_of(request)}{start}", 303)
    seconds = office.config.accounts.session_hours * 3600
    response.set_cookie(
        SESSION,
        office.sessions.signed(token.id, seconds),
        max_age=int(seconds),
        path=root_of(request) or "/",
        secure=request.state.sender.is_secure,
        httponly=True,
        samesite="lax",
    )
    return response


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """End the session."""
    await read_form(request)
    response = RedirectResponse(f"{root_of(request)}/", 303)
    response.delete_cookie(SESSION, path=root_of(request) or "/")
    return response


def _check_offered(request: Request) -> None:
    office = request.state.office
    if office.store is None or office.config.accounts.who == "proxy":
        message = "Nobody signs in at this site."
        raise Refusal("not_found", message, "The catalogue is at /.", 404)
