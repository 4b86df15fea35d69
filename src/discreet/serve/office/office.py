"""The office of a site: its accounts, limits, audit log and decisions, in one place."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import DiscreetError
from discreet.serve.office.accounts.proxies import Proxies
from discreet.serve.office.accounts.pseudonyms import Pseudonyms
from discreet.serve.office.accounts.secrets import signing_key
from discreet.serve.office.accounts.signer import Signer
from discreet.serve.office.audit.entry import Audit, NoAudit
from discreet.serve.office.config import OfficeConfig
from discreet.serve.office.limits import Buckets
from discreet.serve.office.state import State, read_state
from discreet.serve.refusals import Refusal

if TYPE_CHECKING:
    from discreet.serve.office.store.store import Store
    from discreet.serve.site.config import SiteConfig
    from discreet.serve.site.site import SiteHolder

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

    def __init__(self, config: OfficeConfig | None = None, store: Store | None = None) -> None:
        self.config = config or OfficeConfig()
        self.store = store
        key = secrets.token_bytes(32) if store is None else signing_key(store)
        self.sessions, self.forms = Signer(key, "session"), Signer(key, "form")
        self.pseudonyms = Pseudonyms(store)
        self.audit = _audit(self.config, store)
        self._state = State() if store is None else read_state(store)
        self._read = time.monotonic()
        self._stop = threading.Event()
        self._watcher: threading.Thread | None = None
        self.adopt(self.config)

    @classmethod
    def open(cls, site: SiteConfig, folder: Path | None = None) -> Office:
        """The office of a site, with its database brought up to date."""
        from discreet.serve.office.store.store import Store

        config = OfficeConfig.of(site.accounts, site.audit)
        return cls(config, Store(config.audit.address(folder or site.folder)))

    @property
    def state(self) -> State:
        """The office's decisions; a refusal when they cannot be read for too long."""
        if self._watcher is not None and time.monotonic() - self._read > _TOO_OLD:
            raise unavailable()
        return self._state

    def adopt(self, config: OfficeConfig) -> None:
        """Go by another configuration of accounts, as after a reload."""
        self.config = config
        self.proxies = Proxies(config.accounts.trusted_proxies)
        self.buckets = Buckets(config.accounts.rate, config.accounts.burst)

    def refresh(self) -> State:
        """Read the decisions again."""
        if self.store is not None:
            self._state = read_state(self.store)
            self._read = time.monotonic()
        return self._state

    def watch(self, holder: SiteHolder) -> None:
        """Carry decisions out in this process, now and whenever they change."""
        self.carry_out(holder)
        if self.store is not None and self._watcher is None:
            target: Callable[[], None] = lambda: self._watch(holder)  # noqa: E731
            self._watcher = threading.Thread(target=target, daemon=True, name="office")
            self._watcher.start()

    def carry_out(self, holder: SiteHolder) -> None:
        """Set the switches of the data sets of the moment."""
        only = self.config.accounts.analysts_only
        for name, dataset in holder.current.datasets.items():
            dataset.switch.is_closed = name in self._state.closed
            dataset.switch.for_analysts = name in only

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
                    self.reload(holder)
                self.carry_out(holder)
            except DiscreetError as error:
                _log.error("%s in the office; it is tried again.", type(error).__name__)

    def reload(self, holder: SiteHolder) -> None:
        """Read the site's file again; what cannot be read leaves everything as it is."""
        site = holder.reload()
        self.adopt(OfficeConfig.of(site.config.accounts, site.config.audit))
        self.carry_out(holder)


def unavailable() -> Refusal:
    """What visitors are told when questions cannot be written down."""
    message = "The table builder cannot answer at the moment. Nothing was published."
    return Refusal("unavailable", message, "The same request, a little later.", 503, wait=5)


def _audit(config: OfficeConfig, store: Store | None) -> Audit:
    if store is None:
        return NoAudit()
    from discreet.serve.office.audit.log import AuditLog

    return AuditLog(store, config.audit.keep_days or None)
