"""The office of a site: its accounts, limits, audit log and decisions.

Every request passes its middleware: who asks, how often, and what is written down of it.
"""

from __future__ import annotations

import logging
import math
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, insert, select
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.serve.office.audit import OK, AuditEntry, AuditLog, Kind, now
from discreet.serve.office.config import ANYBODY, UNKNOWN, Proxies, Visitor, subscriber_network
from discreet.serve.office.credentials import (
    Pseudonyms,
    Signer,
    Token,
    all_tokens,
    ended_sessions,
    find_token,
    is_ended,
    signing_key,
    token_of,
)
from discreet.serve.office.database import RELOADS, SWITCHES, DatabaseError, OfficeDatabase
from discreet.serve.office.jobs import JobQueue, JobRunner
from discreet.serve.refusals import (
    SESSION,
    Queued,
    Refusal,
    RequestNote,
    note_request,
    refusal_of,
)
from discreet.serve.site.config import SiteConfig, read_site

if TYPE_CHECKING:
    from discreet.serve.site.site import Site, SiteHolder

_EVERY = 1.0  # seconds between two looks at the decisions of the office
_PATIENCE = 2.0  # seconds that whoever asks whether the site is well waits for a look at its store
_TOO_OLD = 30.0  # seconds after which decisions that cannot be read again are not relied on
_LEAST_ROOM = 50_000_000  # bytes on the audit log's disk: some 200,000 entries
_MOST_VISITORS = 50_000
_log = logging.getLogger("discreet.serve")


class Office:
    """What stands between visitors and data sets.

    Without a store everybody is a viewer, nothing is written down and nobody is custodian.

    Args:
      config: What the site's file says about accounts and the audit log.
      store: The office's database.
    """

    def __init__(
        self, config: SiteConfig | None = None, store: OfficeDatabase | None = None
    ) -> None:
        self.config = config or SiteConfig()
        self.store = store
        key = secrets.token_bytes(32) if store is None else signing_key(store)
        self.sessions, self.forms = Signer(key, "session"), Signer(key, "form")
        self.pseudonyms = Pseudonyms(store)
        self.audit: AuditLog | None = None
        self.jobs: JobQueue | None = None
        self._runner: JobRunner | None = None
        self._state = OfficeState()
        if store is not None:
            self.jobs = JobQueue(store)
            self.audit = AuditLog(store)
            self._state = read_state(store)
        self._read = time.monotonic()
        self._stop = threading.Event()
        self._looking, self._looked = threading.Lock(), -math.inf
        self._failures: list[str] = []
        self._look = threading.Thread()
        self._watcher: threading.Thread | None = None
        self.rate_limiter = RateLimiter(self.config.accounts.rate, self.config.accounts.burst)
        self.adopt(self.config)

    @classmethod
    def open(cls, site: SiteConfig) -> Office:
        """The office of a site, with its database brought up to date."""
        return cls(site, OfficeDatabase(site.audit.address(site.folder)))

    @property
    def state(self) -> OfficeState:
        """The office's decisions; a refusal when they cannot be read for too long."""
        if self._watcher is not None and time.monotonic() - self._read > _TOO_OLD:
            raise unavailable()
        return self._state

    def session(self, sender: Sender) -> str | None:
        """The session of a request, where it is one of ours and has not ended."""
        found = self.sessions.read(sender.cookie)
        return None if found is None or is_ended(found, self.state.ended) else found

    def adopt(self, config: SiteConfig) -> None:
        """Go by another configuration of accounts, as after a reload."""
        accounts = config.accounts
        self.config = config
        self.proxies = Proxies(accounts.trusted_proxies)
        if self.audit is not None:
            self.audit.keep_days = config.audit.keep_days
            self.audit.keep_entries = config.audit.keep_entries
        if (accounts.rate, accounts.burst) != (self.rate_limiter.rate, self.rate_limiter.burst):
            self.rate_limiter = RateLimiter(accounts.rate, accounts.burst)

    def refresh(self) -> OfficeState:
        """Read the decisions again."""
        if self.store is not None:
            self._state = read_state(self.store, self.config.accounts.session_hours)
            self._read = time.monotonic()
        return self._state

    def failures(self) -> list[str]:
        """What keeps tables from being answered, by name; looked at once a second at most.

        A store that is locked lets its writers wait for long, and whoever watches the site has no
        such patience: it is said to fail while a look is under way for too long.
        """
        with self._looking:
            look = self._look
            if not look.is_alive() and time.monotonic() - self._looked > _EVERY:
                look = self._look = threading.Thread(target=self._look_around, daemon=True)
                look.start()
        if look.ident is not None:
            look.join(_PATIENCE)
        return ["store"] if look.is_alive() else self._failures

    def _look_around(self) -> None:
        try:
            self._failures = self._find_failures()
        except Exception:  # whatever it is, the store is not as it should be
            self._failures = ["store"]
        self._looked = time.monotonic()

    def _find_failures(self) -> list[str]:
        found = []
        if self.store is not None:
            try:
                with self.store.writing():
                    pass  # a transaction counts up: it fails where nothing can be written
            except DatabaseError:
                found.append("store")
            if self.store.free_bytes() < _LEAST_ROOM:
                found.append("disk")
            if self._watcher is not None and time.monotonic() - self._read > _TOO_OLD:
                found.append("decisions")
        return found

    def watch(self, holder: SiteHolder) -> None:
        """Carry decisions out in this process, now and whenever they change."""
        self.refresh()

        def prepare(site: Site) -> None:
            if self.store is not None:  # a site without a file says nothing about accounts
                self.adopt(site.config)
            self.carry_out(site)

        holder.prepare_by(prepare)
        if self.store is not None and self._watcher is None:
            self._watcher = threading.Thread(
                target=self._watch, args=(holder,), daemon=True, name="office"
            )
            self._watcher.start()

    def carry_out(self, site: Site) -> None:
        """Set the switches of a site's data sets."""
        only = self.config.accounts.analysts_only
        for name, dataset in site.datasets.items():
            dataset.switch.is_closed = name in self._state.closed
            dataset.switch.for_analysts = name in only

    def run_jobs(self, path: str | Path, holder: SiteHolder) -> None:
        """Make the tables in the queue, one at a time, for the site of a file."""

        def open_datasets() -> list[str]:
            datasets = holder.current.datasets
            return [name for name, d in datasets.items() if d.is_live and not d.closed]

        if self.jobs is not None:
            self._runner = JobRunner.of_site(self.jobs, path, open_datasets).start()

    def enqueue(self, asked: Queued, visitor: Visitor) -> None:
        """Have an expensive table made.

        Raises:
          Refusal: There is no queue, or no place in it.
        """
        if self.jobs is None:
            raise unavailable()
        self.jobs.submit(asked, visitor.id, self.config.accounts.jobs)

    def stop_jobs(self) -> None:
        """Give a job that is under way back."""
        if self._runner is not None:
            self._runner.stop()
            self._runner = None

    def close(self) -> None:
        """Write what waits and let the database go."""
        self._stop.set()
        self.stop_jobs()
        if self._watcher is not None:
            self._watcher.join(5 * _EVERY)
        if self.audit is not None:
            self.audit.close()
        if self.store is not None:
            self.store.close()

    def _watch(self, holder: SiteHolder) -> None:
        failed = ""
        while not self._stop.wait(_EVERY):
            reloads = self._state.reloads
            try:
                if self.refresh().reloads != reloads:
                    # It may take long, and decisions are carried out meanwhile.
                    threading.Thread(target=_reload, args=(holder,), daemon=True).start()
                self.carry_out(holder.current)
            except Exception as error:  # without a watcher nobody would be answered
                if type(error).__name__ != failed:  # once for each kind of failure, not each second
                    _log.error("%s in the office; it is tried again.", type(error).__name__)
                failed = type(error).__name__
            else:
                failed = ""


def _reload(holder: SiteHolder) -> None:
    try:
        holder.reload()
    except Exception as error:  # whatever it is, the site stays as it was
        _log.error("%s while the site was read again; it stays as it was.", type(error).__name__)


def open_database(path: Path) -> OfficeDatabase:
    """The office's database of a site, without its data sets."""
    site = read_site(path)
    return OfficeDatabase(site.audit.address(site.folder))


def unavailable() -> Refusal:
    """What visitors are told when questions cannot be written down."""
    message = "The table builder cannot answer at the moment. Nothing was published."
    return Refusal("unavailable", message, "The same request, a little later.", 503, wait=5)


@dataclass(frozen=True)
class OfficeState:
    """The office's decisions.

    Attributes:
      closed: Data sets that are closed.
      reloads: How often the site was to be read again.
      tokens: The tokens in force, by their ids.
      ended: Sessions whose visitors have signed out.
    """

    closed: frozenset[str] = frozenset()
    reloads: int = 0
    tokens: Mapping[str, Token] = field(default_factory=dict)
    ended: frozenset[str] = frozenset()


def read_state(store: OfficeDatabase, session_hours: float = 8.0) -> OfficeState:
    """The decisions of this moment."""
    with store.reading() as connection:
        is_closed = SWITCHES.c.is_closed.is_(True)
        closed = connection.execute(select(SWITCHES.c.dataset).where(is_closed)).scalars()
        reloads = connection.execute(select(func.count()).select_from(RELOADS)).scalar_one()
        found = frozenset(closed), int(reloads)
    return OfficeState(*found, all_tokens(store), ended_sessions(store, session_hours))


def set_closed(store: OfficeDatabase, dataset: str, is_closed: bool, visitor: str) -> None:
    """Close or open a data set, in all processes that share the database."""
    row = {"dataset": dataset, "is_closed": is_closed, "time": now(), "visitor": visitor}
    with store.writing() as connection:
        connection.execute(delete(SWITCHES).where(SWITCHES.c.dataset == dataset))
        connection.execute(insert(SWITCHES).values(row))


def ask_for_reload(store: OfficeDatabase, visitor: str) -> None:
    """Have all processes read the site's file again."""
    with store.writing() as connection:
        connection.execute(insert(RELOADS).values(time=now(), visitor=visitor))


class RateLimiter:
    """How often a visitor may ask: a bucket of tokens for each, which fills at a steady rate.

    A visitor may ask `burst` times at once and `rate` times a second in the long run.

    Promise: memory is bounded; when there are more visitors than buckets, those who have not asked
    for the longest time start again with a full one.

    Args:
      rate: Requests a second; 0 sets no limit.
      burst: Requests at once.
      clock: Seconds that only go forward.
    """

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rate, self.burst = rate, max(1.0, burst)
        self._clock = clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, visitor: str) -> float:
        """Take one token; the seconds until there is one where the bucket is empty, else 0."""
        if self.rate <= 0:
            return 0.0
        now = self._clock()
        level, then = self._levels.pop(visitor, (self.burst, now))
        level = min(self.burst, level + (now - then) * self.rate)
        is_allowed = level >= 1
        self._levels[visitor] = (level - is_allowed, now)
        if len(self._levels) > _MOST_VISITORS:
            self._levels.popitem(last=False)
        return 0.0 if is_allowed else (1 - level) / self.rate

    def __len__(self) -> int:
        return len(self._levels)


_FREE = ("/static/", "/health", "/live", "/ready", "/metrics", "/robots.txt", "/favicon.ico")
_WITHOUT_ACCOUNT = ("/sign-in",)
_LONGEST_USER = 60  # characters; as many as the name of a token may have


def _is_program(scope: Scope) -> bool:
    """Whether a program asks, which no page to sign in would help: it wants a file or JSON."""
    path = scope["state"]["path"]
    takes_pages = b"text/html" in dict(scope["headers"]).get(b"accept", b"")
    return path.startswith("/api/") or ("/table." in path and not takes_pages)


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
            if _is_program(scope) or self.office.config.accounts.who == "proxy":
                message = "This site answers visitors with an account."
                allowed = "Requests with a token, or through the proxy of the office."
                raise Refusal("not_signed_in", message, allowed, 401)
            sign_in = RedirectResponse(f"{scope.get('root_path', '')}/sign-in", 303)
            await sign_in(scope, receive, send)
            return
        state["visitor"] = visitor
        with note_request(visitor.role, visitor.id) as note:
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
                self.note.seat.close()  # the answer is written, if not yet sent
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
        if entry is None or self.audit is None:
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
    token = office.state.tokens.get(token_of(office.session(sender) or ""))
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
