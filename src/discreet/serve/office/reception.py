"""Every request passes here: who asks, how often, and what is written down of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.serve.noted import Note, noting
from discreet.serve.office.accounts.identify import Sender, identified, needs_account, stranger
from discreet.serve.office.accounts.visitor import ANYBODY, Visitor
from discreet.serve.office.audit.entry import OK, Entry, Kind, now
from discreet.serve.office.office import unavailable
from discreet.serve.refusals import Refusal, refusal_of

if TYPE_CHECKING:
    from discreet.serve.office.office import Office

_FREE = ("/static/", "/health", "/robots.txt", "/favicon.ico")
_WITHOUT_ACCOUNT = ("/sign-in",)


class Reception:
    """The layer that knows visitors.

    Promise: an answer that holds a table leaves after its entry in the audit log is on the disk;
    when it cannot be written, the visitor gets a refusal instead.

    Args:
      app: What answers.
      office: The office of the site.
    """

    def __init__(self, app: ASGIApp, office: Office) -> None:
        self.app, self.office = app, office

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or refuse it."""
        state = scope.setdefault("state", {})
        if scope["type"] != "http" or state["path"].startswith(_FREE):
            state["visitor"] = ANYBODY
            await self.app(scope, receive, send)
            return
        state["office"], state["sender"] = self.office, Sender(scope, self.office)
        visitor = self._admitted(state["sender"], state["path"])
        if visitor is None:
            await self._sent_to_sign_in(scope)(scope, receive, send)
            return
        state["visitor"] = visitor
        with noting(visitor.role) as note:
            await _Recorded(self, scope, note, visitor)(receive, send)

    def _admitted(self, sender: Sender, path: str) -> Visitor | None:
        """Who asks, within the limits on how often; nobody where an account is needed."""
        outsider = stranger(sender, self.office)
        try:
            found = identified(sender, self.office)
        except Refusal:
            self._limit(outsider)
            raise
        self._limit(found or outsider)
        return outsider if found is None and path in _WITHOUT_ACCOUNT else found

    def _sent_to_sign_in(self, scope: Scope) -> ASGIApp:
        """Where a browser goes that shows no account; programs are told what is missing."""
        is_program = scope["state"]["path"].startswith("/api/")
        if is_program or self.office.config.accounts.who == "proxy":
            raise needs_account()
        return RedirectResponse(f"{scope.get('root_path', '')}/sign-in", 303)

    def _limit(self, visitor: Visitor) -> None:
        wait = self.office.buckets.wait(visitor.id)
        if wait:
            rate = self.office.config.accounts.rate
            message = "Too many requests came from you in a short time."
            raise Refusal("too_often", message, f"{rate:g} requests a second.", 429, wait=wait)


class _Unrecorded(Exception):
    """The audit log could not be written, so the answer must not leave."""


class _Recorded:
    """One request whose end is written down before its answer leaves."""

    def __init__(self, desk: Reception, scope: Scope, note: Note, visitor: Visitor) -> None:
        self.desk, self.scope, self.note, self.visitor = desk, scope, note, visitor
        self.began = time.perf_counter()
        self.is_recorded = False

    async def __call__(self, receive: Receive, send: Send) -> None:
        async def recorded(message: Message) -> None:
            if message["type"] == "http.response.start":
                await self._record(self.note.outcome or self.scope["state"].get("outcome", OK))
            await send(message)

        try:
            await self.desk.app(self.scope, receive, recorded)
        except _Unrecorded:
            raise unavailable() from None
        except Exception as error:
            if not self.is_recorded:
                await self._record_failure(refusal_of(error).code)
            raise

    async def _record_failure(self, outcome: str) -> None:
        try:
            await self._record(outcome)
        except _Unrecorded:
            raise unavailable() from None

    async def _record(self, outcome: str) -> None:
        entry = self._entry(outcome)
        if entry is None:
            return
        try:
            await self.desk.office.audit.recorded(entry)
        except Exception as error:
            raise _Unrecorded from error
        self.is_recorded = True

    def _entry(self, outcome: str) -> Entry | None:
        """The entry of a question; none for pages without one."""
        note, named = self.note, self.scope.get("path_params", {}).get("dataset", "")
        if not note.dataset and (outcome == OK or not named):
            return None
        return Entry(
            now(),
            self.visitor.id,
            note.dataset or str(named),
            note.edition,
            note.address or self.scope["query_string"].decode("latin-1"),
            _kind(self.scope),
            outcome,
            note.cells if outcome == OK else 0,
            round(1000 * (time.perf_counter() - self.began), 3),
        )


def _kind(scope: Any) -> Kind:
    path: str = scope["state"]["path"]
    if path.startswith("/api/"):
        return "api"
    return "download" if "/table." in path else "table"
