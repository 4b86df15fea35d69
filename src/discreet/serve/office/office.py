"""The office of a site: its accounts, limits, audit log and decisions, in one place."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.serve.office.accounts.proxies import Proxies
from discreet.serve.office.accounts.pseudonyms import Pseudonyms
from discreet.serve.office.accounts.secrets import signing_key
from discreet.serve.office.accounts.signer import Signer
from discreet.serve.office.audit.entry import Audit
from discreet.serve.office.limits import Buckets
from discreet.serve.office.state import State, read_state
from discreet.serve.refusals import Refusal
from discreet.serve.site.config import SiteConfig
from discreet.serve.site.read import read_site

if TYPE_CHECKING:
    from discreet.serve.office.store.store import Store
    from discreet.serve.site.site import Site, SiteHolder

_EVERY = 1.0  # seconds between two looks at the decisions of the office
_TOO_OLD = 30.0  # seconds after which decisions that cannot be read again are not relied on
_log = logging.getLogger("discreet.serve")


class Office:
    """What stands between visitors and data sets.

    Without a store everybody is a viewer, nothing is written down and nobody is custodian.

    Args:
      config: What the site's file says about accounts and the audit log.
      store: The office's database.
    """

    def __init__(self, config: SiteConfig | None = None, store: Store | None = None) -> None:
        self.config = config or SiteConfig()
        self.store = store
        key = secrets.token_bytes(32) if store is None else signing_key(store)
        self.sessions, self.forms = Signer(key, "session"), Signer(key, "form")
        self.pseudonyms = Pseudonyms(store)
        self.audit = _audit(self.config, store)
        self._state = State() if store is None else read_state(store)
        self._read = time.monotonic()
        self._stop = threading.Event()
        self._watcher: threading.Thread | None = None
        self.buckets = Buckets(self.config.accounts.rate, self.config.accounts.burst)
        self.adopt(self.config)

    @classmethod
    def open(cls, site: SiteConfig) -> Office:
        """The office of a site, with its database brought up to date."""
        from discreet.serve.office.store.store import Store  # start-up time: SQLAlchemy

        return cls(site, Store(site.audit.address(site.folder)))

    @property
    def state(self) -> State:
        """The office's decisions; a refusal when they cannot be read for too long."""
        if self._watcher is not None and time.monotonic() - self._read > _TOO_OLD:
            raise unavailable()
        return self._state

    def adopt(self, config: SiteConfig) -> None:
        """Go by another configuration of accounts, as after a reload."""
        accounts = config.accounts
        self.config = config
        self.proxies = Proxies(accounts.trusted_proxies)
        if (accounts.rate, accounts.burst) != (self.buckets.rate, self.buckets.burst):
            self.buckets = Buckets(accounts.rate, accounts.burst)

    def refresh(self) -> State:
        """Read the decisions again."""
        if self.store is not None:
            self._state = read_state(self.store)
            self._read = time.monotonic()
        return self._state

    def watch(self, holder: SiteHolder) -> None:
        """Carry decisions out in this process, now and whenever they change."""
        self.refresh()
        holder.prepare_by(self._prepare)
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

    def _prepare(self, site: Site) -> None:
        """Go by what the site's file says now; a site without a file says nothing."""
        if self.store is not None:
            self.adopt(site.config)
        self.carry_out(site)

    def close(self) -> None:
        """Write what waits and let the database go."""
        self._stop.set()
        if self._watcher is not None:
            self._watcher.join(5 * _EVERY)
        self.audit.close()
        if self.store is not None:
            self.store.close()

    def _watch(self, holder: SiteHolder) -> None:
        while not self._stop.wait(_EVERY):
            reloads = self._state.reloads
            try:
                if self.refresh().reloads != reloads:
                    threading.Thread(target=_reload, args=(holder,), daemon=True).start()
                self.carry_out(holder.current)
            except Exception as error:  # without a watcher nobody would be answered
                _log.error("%s in the office; it is tried again.", type(error).__name__)


def _reload(holder: SiteHolder) -> None:
    """Read the site again; it may take long, and decisions are carried out meanwhile."""
    try:
        holder.reload()
    except Exception as error:  # whatever it is, the site stays as it was
        _log.error("%s while the site was read again; it stays as it was.", type(error).__name__)


def store_of(path: Path) -> Store:
    """The office's database of a site, without its data sets."""
    from discreet.serve.office.store.store import Store  # start-up time: SQLAlchemy

    site = read_site(path)
    return Store(site.audit.address(site.folder))


def unavailable() -> Refusal:
    """What visitors are told when questions cannot be written down."""
    message = "The table builder cannot answer at the moment. Nothing was published."
    return Refusal("unavailable", message, "The same request, a little later.", 503, wait=5)


def _audit(config: SiteConfig, store: Store | None) -> Audit:
    if store is None:
        return Audit()
    from discreet.serve.office.audit.log import AuditLog  # start-up time: SQLAlchemy

    return AuditLog(store, config.audit.keep_days or None)
