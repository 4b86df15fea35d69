"""One of several processes that answer for the same site."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

from discreet.errors import ParameterError

if TYPE_CHECKING:
    from fastapi import FastAPI

_SECONDS = 1.0
SITE = "DISCREET_SITE"
"""The environment variable that names the site's file."""


def app_of_site() -> FastAPI:
    """The application of the site that the environment names."""
    from discreet.serve.app import make_app  # start-up time: the parent needs none
    from discreet.serve.office.office import Office  # start-up time: the parent needs none
    from discreet.serve.site.start import held_site  # start-up time: the parent needs none
    from discreet.serve.site.watch import Watch  # start-up time: the parent needs none

    path = os.environ.get(SITE)
    if not path:
        raise ParameterError(f"environment variable {SITE} must name a site.toml.")
    _end_with(os.getppid())
    holder = held_site(path)
    Watch(holder, path).start()
    return make_app(holder, Office.open(holder.current.config))


def _end_with(parent: int) -> None:
    """Stop when the process that started this one is gone, however it ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True, name="parent watch").start()
