"""The custodian's page: usage, refusals, the switches of data sets, and reading the site again."""

from __future__ import annotations

from dataclasses import astuple

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from discreet.serve.office import sign_in
from discreet.serve.office.accounts.visitor import Role
from discreet.serve.office.audit.entry import Entry, now
from discreet.serve.office.audit.usage import exported, usage
from discreet.serve.office.forms import form_page, read_form
from discreet.serve.office.state import ask_for_reload, set_closed
from discreet.serve.office.store.store import Store
from discreet.serve.refusals import Refusal, refusal_of
from discreet.serve.site.site import current_site
from discreet.serve.web.frame import root_of, texts_for
from discreet.serve.web.texts import Texts

router = APIRouter(include_in_schema=False)
router.include_router(sign_in.router)
DAYS = 30
_SAID = ("closed_now", "opened_now", "reloaded")


@router.get("/admin")
def admin(request: Request) -> Response:
    """What was asked, and the switches."""
    return _page(request, _store(request), _said(request, texts_for(request)))


@router.get("/admin/log.csv")
def log(request: Request) -> Response:
    """The whole audit log."""
    headers = {"Content-Disposition": 'attachment; filename="audit.csv"'}
    return StreamingResponse(exported(_store(request)), media_type="text/csv", headers=headers)


@router.post("/admin/switch")
async def switch(request: Request) -> Response:
    """Close or open a data set."""
    store, fields = _store(request), await read_form(request)
    dataset = current_site(request).dataset(fields.get("dataset", ""))
    is_closed = fields.get("closed") == "1"
    await run_in_threadpool(set_closed, store, dataset.name, is_closed, request.state.visitor.id)
    outcome = "closed_now" if is_closed else "opened_now"
    await _carried_out(request, dataset.name, outcome)
    return RedirectResponse(f"{root_of(request)}/admin?said={outcome}&of={dataset.name}", 303)


@router.post("/admin/reload")
async def reload(request: Request) -> Response:
    """Read the site's file again, here first, so that a mistake in it is told at once."""
    store, _ = _store(request), await read_form(request)
    try:
        await run_in_threadpool(request.app.state.site.reload)
    except Exception as error:  # whatever it is, the custodian is told and the site stays
        await _carried_out(request, "", "not_reloaded")
        said = texts_for(request).admin.failed.format(refusal_of(error).public())
        return await run_in_threadpool(_page, request, store, said, 422)
    await run_in_threadpool(ask_for_reload, store, request.state.visitor.id)
    await _carried_out(request, "", "reloaded")
    return RedirectResponse(f"{root_of(request)}/admin?said=reloaded", 303)


def _page(request: Request, store: Store, said: str, status: int = 200) -> Response:
    found = usage(store, DAYS)
    days = [astuple(day) for day in reversed(found.days)]
    return form_page(request, "admin.html", status, usage=found, days=days, n=DAYS, said=said)


def _store(request: Request) -> Store:
    """The office's database, for custodians."""
    office, visitor = request.state.office, request.state.visitor
    if office.store is None:
        raise Refusal("not_found", "This site has no office.", "The catalogue is at /.", 404)
    if not visitor.role.covers(Role.custodian):
        status = 403 if visitor.is_known else 401
        raise Refusal("not_allowed", "This page is for custodians.", "Sign in at /sign-in.", status)
    store: Store = office.store
    return store


async def _carried_out(request: Request, dataset: str, outcome: str) -> None:
    """Write a step of the custodian down, and let it take effect here at once."""
    office = request.state.office
    entry = Entry(now(), request.state.visitor.id, dataset, "", "", "admin", outcome, 0, 0.0)
    await office.audit.recorded(entry)
    await run_in_threadpool(office.refresh)
    office.carry_out(request.app.state.site.current)


def _said(request: Request, texts: Texts) -> str:
    """What was done a moment ago; only sentences of our own are shown."""
    said = request.query_params.get("said", "")
    if said not in _SAID:
        return ""
    found = current_site(request).datasets.get(request.query_params.get("of", ""))
    sentence: str = getattr(texts.admin, said)
    return sentence.format("" if found is None else found.title)
