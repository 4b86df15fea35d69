"""A site that follows its file: read again when the file or a build changes, or on SIGHUP."""

from __future__ import annotations

import logging
import signal
import threading
from pathlib import Path

from discreet.errors import DiscreetError
from discreet.serve.data.files import Stamp, stamp
from discreet.serve.data.folder import POINTER
from discreet.serve.site.read import read_site
from discreet.serve.site.site import SiteHolder

SECONDS = 2.0
_log = logging.getLogger("discreet.serve")


class Watch:
    """Looks at the files of a site every few seconds and exchanges the site when they change.

    Requests under way finish on the site they started with. A file that cannot be used leaves the
    old site in place; the log says so.

    Args:
      holder: The site.
      path: Its file.
      seconds: How often the files are looked at.
    """

    def __init__(self, holder: SiteHolder, path: str | Path, seconds: float = SECONDS) -> None:
        self._holder, self._path, self._seconds = holder, Path(path), seconds
        self._seen = self._stamp()
        self._asked, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="site watch")

    def start(self) -> Watch:
        """Begin to look, and take SIGHUP where signals can be taken."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGHUP, lambda *_: self._asked.set())
        self._thread.start()
        return self

    def stop(self) -> None:
        """End."""
        self._stop.set()
        self._asked.set()
        self._thread.join(10 * self._seconds)

    def _run(self) -> None:
        while not self._stop.is_set():
            is_asked = self._asked.wait(self._seconds)
            self._asked.clear()
            if self._stop.is_set():
                return
            now = self._stamp()
            if is_asked or now != self._seen:
                self._seen = now
                self._reload()

    def _reload(self) -> None:
        try:
            read_site(self._path)  # what it says about itself may be logged as it is
        except DiscreetError as error:
            _log.error("the site stays as it was: %s", error)
            return
        try:
            self._holder.reload()
        except Exception as error:  # its text may show codes of the records
            _log.error("the site stays as it was: %s; see discreet serve", type(error).__name__)
        else:
            _log.warning("the site was read again")

    def _stamp(self) -> Stamp:
        """When the files were last written."""
        folder = self._holder.current.config.cache_folder
        pointers = [folder / name / POINTER for name in self._holder.current.datasets]
        return stamp(map(str, (self._path, *pointers)))
