"""From a request to who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.requests import cookie_parser

from discreet.serve.cookies import SESSION
from discreet.serve.office.accounts.proxies import UNKNOWN, household
from discreet.serve.office.accounts.tokens import holder_of
from discreet.serve.office.accounts.visitor import Visitor
from discreet.serve.refusals import Refusal

if TYPE_CHECKING:
    from discreet.serve.office.office import Office

_LONGEST_USER = 60


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
    return Visitor(office.pseudonyms.of(household(sender.address)))


def identified(sender: Sender, office: Office) -> Visitor | None:
    """Who asks; nobody where an account is needed and none is shown."""
    accounts = office.config.accounts
    if accounts.who == "proxy":
        return _vouched(sender, office)
    if sender.bearer is not None:
        token = holder_of(sender.bearer, office.state.tokens)
        if token is None:
            raise Refusal("wrong_token", "The token is not valid.", "A token in force.", 401)
        return token.visitor
    token = office.state.tokens.get(office.sessions.read(sender.cookie) or "")
    if token is not None:
        return token.visitor
    return stranger(sender, office) if accounts.who == "open" else None


def _vouched(sender: Sender, office: Office) -> Visitor | None:
    """Whom the proxy names; a header that comes twice was written by somebody else."""
    accounts = office.config.accounts
    named = sender.values.get(accounts.header.lower(), [])
    if not sender.is_proxied or len(named) != 1:
        return None
    user = named[0].strip()
    if not user or len(user) > _LONGEST_USER or not user.isprintable():
        return None
    return Visitor(user, accounts.role_of(user), is_known=True)


def needs_account() -> Refusal:
    """What a visitor without an account is told where one is needed."""
    message = "This site answers visitors with an account."
    return Refusal(
        "not_signed_in", message, "Requests with a token, or through the proxy of the office.", 401
    )
