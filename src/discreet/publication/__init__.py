"""A publication: a set of tables from data to files, period after period.

`plan` says what is published as plain data, `editions` publishes it whole or not at all, `folder`
makes the files of an edition, `wording` says everything in other languages.
"""

from __future__ import annotations

import warnings
from typing import Any

from discreet.lazy import lazy_names
from discreet.moved import ENDS
from discreet.publication.plan import Choice, Outlet, Publication

__all__ = ["Choice", "Outlet", "Publication"]

# Loaded on first use: the command line reads a plan more often than it publishes one.
_later = lazy_names(
    __name__,
    {
        "draft": "draft_publication write_draft",
        "editions": "publish publish_periods republish withdraw",
    },
)


def __getattr__(name: str) -> Any:
    if name != "Recipe":
        return _later(name)
    warnings.warn(f"Recipe is called Publication now; {ENDS}", DeprecationWarning, stacklevel=2)
    return Publication
