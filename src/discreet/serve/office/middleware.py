"""Every request passes here: who asks, how often, and what is written down of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.serve.office.audit import OK, AuditEntry, Kind, now
from discreet.serve.office.config import ANYBODY, UNKNOWN, Visitor, subscriber_network
from discreet.serve.office.credentials import find_token
from discreet.serve.office.office import unavailable
from discreet.serve.refusals import SESSION, Refusal, RequestNote, note_request, refusal_of

if TYPE_CHECKING:
    from discreet.serve.office.office import Office

_FREE = ("/static/", "/health", "/robots.txt", "/favicon.ico")
_WITHOUT_ACCOUNT = ("/sign-in",)
_LONGEST_USER = 60


class OfficeMiddleware:
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
        visitor = self._admit(state["sender"], state["path"])
        if visitor is None:
            if state["path"].startswith("/api/") or self.office.config.accounts.who == "proxy":
                message = "This site answers visitors with an account."
                allowed = "Requests with a token, or through the proxy of the office."
                raise Refusal("not_signed_in", message, allowed, 401)
            sign_in = RedirectResponse(f"{scope.get('root_path', '')}/sign-in", 303)
            await sign_in(scope, receive, send)
            return
        state["visitor"] = visitor
        with note_request(visitor.role) as note:
            await _AuditedRequest(self, scope, note, visitor)(receive, send)

    def _admit(self, sender: Sender, path: str) -> Visitor | None:
        """Who asks, within the limits on how often; nobody where an account is needed."""
        outsider = stranger(sender, self.office)
        try:
            found = identify(sender, self.office)
        except Refusal:
            self._limit(outsider)
            raise
        self._limit(found or outsider)
        return outsider if found is None and path in _WITHOUT_ACCOUNT else found

    def _limit(self, visitor: Visitor) -> None:
        wait = self.office.rate_limiter.wait(visitor.id)
        if wait:
            rate = self.office.config.accounts.rate
            message = "Too many requests came from you in a short time."
            raise Refusal("too_often", message, f"{rate:g} requests a second.", 429, wait=wait)


class _Unrecorded(Exception):
    """The audit log could not be written, so the answer must not leave."""


class _AuditedRequest:
    """One request whose end is written down before its answer leaves."""

    def __init__(
        self, middleware: OfficeMiddleware, scope: Scope, note: RequestNote, visitor: Visitor
    ) -> None:
        self.app, self.audit = middleware.app, middleware.office.audit
        self.scope, self.note, self.visitor = scope, note, visitor
        self.began = time.perf_counter()
        self.is_recorded = False

    async def __call__(self, receive: Receive, send: Send) -> None:
        async def record_first(message: Message) -> None:
            if message["type"] == "http.response.start":
                await self._record(self.note.outcome or self.scope["state"].get("outcome", OK))
            await send(message)

        try:
            try:
                await self.app(self.scope, receive, record_first)
            except _Unrecorded:
                raise
            except Exception as error:
                if not self.is_recorded:
                    await self._record(refusal_of(error).code)
                raise
        except _Unrecorded:
            raise unavailable() from None

    async def _record(self, outcome: str) -> None:
        entry = self._entry(outcome)
        if entry is None:
            return
        try:
            await self.audit.record_async(entry)
        except Exception as error:
            raise _Unrecorded from error
        self.is_recorded = True

    def _entry(self, outcome: str) -> AuditEntry | None:
        """The entry of a question; none for pages without one."""
        note, named = self.note, self.scope.get("path_params", {}).get("dataset", "")
        if not note.dataset and (outcome == OK or not named):
            return None
        path: str = self.scope["state"]["path"]
        kind: Kind = "download" if "/table." in path else "table"
        if path.startswith("/api/"):
            kind = "api"
        return AuditEntry(
            now(),
            self.visitor.id,
            note.dataset or str(named),
            note.edition,
            note.address or self.scope["query_string"].decode("latin-1"),
            kind,
            outcome,
            note.cells if outcome == OK else 0,
            round(1000 * (time.perf_counter() - self.began), 3),
        )


class Sender:
    """The sender of a request: headers, network address, and how the request came.

    Args:
      scope: The request as ASGI hands it over.
      office: Knows which proxies to believe.
    """

    def __init__(self, scope: Any, office: Office) -> None:
        self.values: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            self.values.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
        self.headers = {name: ", ".join(values) for name, values in self.values.items()}
        self.peer: str = (scope.get("client") or (UNKNOWN, 0))[0]
        self.is_proxied = office.proxies.trust(self.peer)
        self.address = office.proxies.client(self.peer, self.headers)
        scheme = self.headers.get("x-forwarded-proto") if self.is_proxied else None
        self.is_secure = (scheme or scope.get("scheme")) == "https"

    @property
    def cookie(self) -> str:
        """The session's cookie, where there is one."""
        return cookie_parser(self.headers.get("cookie", "")).get(SESSION, "")

    @property
    def bearer(self) -> str | None:
        """The token in the header that programs use."""
        kind, _, text = self.headers.get("authorization", "").partition(" ")
        return text.strip() if kind.lower() == "bearer" else None


def stranger(sender: Sender, office: Office) -> Visitor:
    """A visitor without an account, by a pseudonym for the day."""
    return Visitor(office.pseudonyms.of(subscriber_network(sender.address)))


def identify(sender: Sender, office: Office) -> Visitor | None:
    """Who asks; nobody where an account is needed and none is shown."""
    accounts = office.config.accounts
    if accounts.who == "proxy":
        return _proxy_visitor(sender, office)
    if sender.bearer is not None:
        token = find_token(sender.bearer, office.state.tokens)
        if token is None:
            raise Refusal("wrong_token", "The token is not valid.", "A token in force.", 401)
        return token.visitor
    token = office.state.tokens.get(office.sessions.read(sender.cookie) or "")
    if token is not None:
        return token.visitor
    return stranger(sender, office) if accounts.who == "open" else None


def _proxy_visitor(sender: Sender, office: Office) -> Visitor | None:
    """Whom the proxy names; a header that comes twice was written by somebody else."""
    accounts = office.config.accounts
    named = sender.values.get(accounts.header.lower(), [])
    if not sender.is_proxied or len(named) != 1:
        return None
    user = named[0].strip()
    if not user or len(user) > _LONGEST_USER or not user.isprintable():
        return None
    return Visitor(user, accounts.role_of(user), is_known=True)
