"""The office's pages: use and switches for custodians, signing in and out, tables that wait."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from discreet.serve.answer import Question
from discreet.serve.data.dataset import Dataset
from discreet.serve.office.audit import AuditEntry, export_log, now, usage
from discreet.serve.office.config import Role
from discreet.serve.office.credentials import end_session, find_token, new_session
from discreet.serve.office.database import OfficeDatabase
from discreet.serve.office.jobs import UNDER_WAY, JobQueue, job_id
from discreet.serve.office.office import ask_for_reload, set_closed
from discreet.serve.query import Query
from discreet.serve.refusals import LANGUAGE, SESSION, Refusal, refusal_of
from discreet.serve.site.site import current_site
from discreet.serve.web.frame import Addresses, page, root_of, texts_for

router = APIRouter(include_in_schema=False)
_DAYS = 30  # of use that the page shows
_STEPS = ("closed_now", "opened_now", "reloaded")
_FIELD = "form"  # of the proof that a form is ours
_FORM_SECONDS = 8 * 3600.0
_LARGEST_FORM = 10_000
_LOOK_AGAIN = 2  # seconds after which a browser asks again how far a table is
_TYPE = "application/x-www-form-urlencoded"


@router.get("/admin")
def admin(request: Request) -> Response:
    """What was asked, and the switches."""
    return _admin_page(request, _database(request), _last_step(request))


@router.get("/admin/log.csv")
def log(request: Request) -> Response:
    """The whole audit log."""
    headers = {"Content-Disposition": 'attachment; filename="audit.csv"'}
    return StreamingResponse(export_log(_database(request)), media_type="text/csv", headers=headers)


@router.post("/admin/switch")
async def switch(request: Request) -> Response:
    """Close or open a data set."""
    store, fields = _database(request), await _read_form(request)
    dataset = current_site(request).dataset(fields.get("dataset", ""))
    is_closed = fields.get("closed") == "1"
    await run_in_threadpool(set_closed, store, dataset.name, is_closed, request.state.visitor.id)
    outcome = "closed_now" if is_closed else "opened_now"
    await _record_step(request, dataset.name, outcome)
    return RedirectResponse(f"{root_of(request)}/admin?said={outcome}&of={dataset.name}", 303)


@router.post("/admin/reload")
async def reload(request: Request) -> Response:
    """Read the site's file again, here first, so that a mistake in it is told at once."""
    store, _ = _database(request), await _read_form(request)
    try:
        await run_in_threadpool(request.app.state.site.reload)
    except Exception as error:  # whatever it is, the custodian is told and the site stays
        await _record_step(request, "", "not_reloaded")
        said = texts_for(request).admin.failed.format(refusal_of(error).public())
        return await run_in_threadpool(_admin_page, request, store, said, 422)
    await run_in_threadpool(ask_for_reload, store, request.state.visitor.id)
    await _record_step(request, "", "reloaded")
    return RedirectResponse(f"{root_of(request)}/admin?said=reloaded", 303)


@router.get("/sign-in")
def sign_in_page(request: Request) -> Response:
    """The form that takes a token."""
    _check_offered(request)
    return _form_page(request, "sign_in.html", is_wrong=False)


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Start a session for the holder of a token."""
    _check_offered(request)
    fields, office = await _read_form(request), request.state.office
    state = await run_in_threadpool(office.refresh)
    token = find_token(fields.get("token", "").strip(), state.tokens)
    if token is None:
        await _record(request, request.state.visitor.id, "", "sign_in_failed")
        return _form_page(request, "sign_in.html", 401, is_wrong=True)
    await _record(request, token.name, "", "signed_in")
    start = "/admin" if token.role is Role.custodian else "/"
    response = RedirectResponse(f"{root_of(request)}{start}", 303)
    seconds = office.config.accounts.session_hours * 3600
    response.set_cookie(
        SESSION,
        office.sessions.sign(new_session(token), seconds),
        max_age=int(seconds),
        path=root_of(request) or "/",
        secure=request.state.sender.is_secure,
        httponly=True,
        samesite="lax",
    )
    return response


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """End the session, here and in whatever copies its cookie."""
    await _read_form(request)
    office, session = request.state.office, request.state.office.session(request.state.sender)
    if office.store is not None and session is not None:
        await run_in_threadpool(end_session, office.store, session)
        await _record(request, request.state.visitor.id, "", "signed_out")
        await run_in_threadpool(office.refresh)
    response = RedirectResponse(f"{root_of(request)}/", 303)
    response.delete_cookie(SESSION, path=root_of(request) or "/")
    return response


@router.get("/d/{dataset}/job")
def job(request: Request, dataset: str) -> Response:
    """How far an expensive table is; the table itself once it is there."""
    found, question, jobs = _queued_table(request, dataset)
    at = Addresses(root_of(request), found.name)
    if found.is_quick(question):
        return RedirectResponse(at.table(question.query), 303)
    current = jobs.find(job_id(found.queued(question)))
    is_under_way = current is not None and current.state in UNDER_WAY
    response = _form_page(
        request,
        "job.html",
        dataset=found,
        at=at,
        question=question,
        job=current,
        is_own=is_under_way and current is not None and current.visitor == request.state.visitor.id,
        before=jobs.before(current) if is_under_way and current is not None else 0,
        price=found.price(question),
        offers=found.quick_tables(question),
        states=vars(texts_for(request).job.states),
    )
    if is_under_way:
        response.headers["Refresh"] = str(_LOOK_AGAIN)
    return response


@router.post("/d/{dataset}/job")
async def cancel_job(request: Request, dataset: str) -> Response:
    """End a table of one's own that is under way; its seat is free within seconds."""
    await _read_form(request)
    found, question, jobs = await run_in_threadpool(_queued_table, request, dataset)
    name = job_id(found.queued(question))
    if await run_in_threadpool(jobs.cancel, name, request.state.visitor.id):
        await _record(request, request.state.visitor.id, found.name, "cancelled")
    return RedirectResponse(
        f"{root_of(request)}/d/{quote(found.name)}/job?{question.query.address}", 303
    )


def _queued_table(request: Request, name: str) -> tuple[Dataset, Question, JobQueue]:
    """The data set, the question of the address, and the queue that may have its table."""
    dataset, jobs = current_site(request).dataset(name), request.state.office.jobs
    dataset.switch.check(dataset.title)
    given = [(k, v) for k, v in request.query_params.multi_items() if k != LANGUAGE]
    question = Question.checked(dataset, Query.parse(given))
    dataset.policy.check(question)
    if jobs is None:
        message = "This site has no queue."
        raise Refusal("not_found", message, "The catalogue is at /.", 404)
    return dataset, question, jobs


def _database(request: Request) -> OfficeDatabase:
    """The office's database, for custodians."""
    office, visitor = request.state.office, request.state.visitor
    if office.store is None:
        raise Refusal("not_found", "This site has no office.", "The catalogue is at /.", 404)
    if not visitor.role.covers(Role.custodian):
        status = 403 if visitor.is_known else 401
        raise Refusal("not_allowed", "This page is for custodians.", "Sign in at /sign-in.", status)
    store: OfficeDatabase = office.store
    return store


async def _record_step(request: Request, dataset: str, outcome: str) -> None:
    """Write a step of the custodian down, and let it take effect here at once."""
    office = request.state.office
    await _record(request, request.state.visitor.id, dataset, outcome)
    await run_in_threadpool(office.refresh)
    office.carry_out(request.app.state.site.current)


async def _record(request: Request, visitor: str, dataset: str, outcome: str) -> None:
    entry = AuditEntry(now(), visitor, dataset, "", "", "admin", outcome, 0, 0.0)
    await request.state.office.audit.record_async(entry)


def _admin_page(request: Request, store: OfficeDatabase, said: str, status: int = 200) -> Response:
    found = usage(store, _DAYS)
    days = [astuple(day) for day in reversed(found.days)]
    return _form_page(request, "admin.html", status, usage=found, days=days, n=_DAYS, said=said)


def _last_step(request: Request) -> str:
    """What was done a moment ago; only sentences of our own are shown."""
    said = request.query_params.get("said", "")
    if said not in _STEPS:
        return ""
    found = current_site(request).datasets.get(request.query_params.get("of", ""))
    sentence: str = getattr(texts_for(request).admin, said)
    return sentence.format("" if found is None else found.title)


def _check_offered(request: Request) -> None:
    office = request.state.office
    if office.store is None or office.config.accounts.who == "proxy":
        message = "Nobody signs in at this site."
        raise Refusal("not_found", message, "The catalogue is at /.", 404)


def _form_page(request: Request, template: str, status: int = 200, **parts: Any) -> Response:
    """A page with forms for this visitor alone, which nobody keeps."""
    office, visitor = request.state.office, request.state.visitor
    mark = office.forms.sign(visitor.id, _FORM_SECONDS)  # proves that the form was made for them
    response = page(request, template, status, mark=mark, **parts)
    response.headers["Cache-Control"] = "no-store"
    return response


async def _read_form(request: Request) -> dict[str, str]:
    """The fields of a form; a form of another site is refused."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is None and origin is not None:  # an older browser
        site = "same-origin" if urlsplit(origin).netloc == request.headers.get("host") else origin
    if site not in (None, "same-origin", "none"):
        raise _foreign_form()
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _TYPE:
        raise Refusal("unreadable", "The form cannot be read.", f"Content of type {_TYPE}.", 415)
    content = await request.body()  # the guard has its own limit
    if len(content) > _LARGEST_FORM:
        raise Refusal("too_long", "The form is too long.", f"At most {_LARGEST_FORM:,} bytes.", 413)
    found = dict(parse_qsl(content.decode("utf-8", "replace")))
    if request.state.office.forms.read(found.pop(_FIELD, "")) != request.state.visitor.id:
        raise _foreign_form()
    return found


def _foreign_form() -> Refusal:
    message = "The form did not come from this site, or it is too old."
    return Refusal("foreign_form", message, "Open the page again and repeat the step.", 403)
