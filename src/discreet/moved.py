"""Old homes of classes and functions: packages that import from there work on, with a warning.

Stored pickles name them too. Nothing in this package imports from an old home.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_TABLES = (
    *("assembly", "canonical", "contribution_frame", "contribution_storage", "data_set", "keys"),
    *("magnitude", "method", "published_frame", "show", "statement", "uniform_keys", "values"),
)
# Where the names of an old module are looked for, one place after the other.
NEW_HOMES: dict[str, tuple[str, ...]] = {
    **{f"discreet.design.{name}": (f"discreet.tables.{name}",) for name in _TABLES},
    "discreet.design.frames": ("discreet.frames",),
    "discreet.design.table": ("discreet.facade.table",),
    "discreet.design.release": ("discreet.facade.release", "discreet.tables.protected"),
    "discreet.design.storage": ("discreet.facade.table", "discreet.tables.storage"),
    "discreet.records.microdata": ("discreet.facade.microdata",),
    "discreet.records.open": ("discreet.facade.microdata", "discreet.records.sources"),
}


class _OldHome(Loader):
    """An empty module that hands out what lies elsewhere now."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        homes = NEW_HOMES[module.__name__]
        warnings.warn(
            f"{module.__name__} has moved to {' and '.join(homes)}; the old name ends with "
            "version 0.4.",
            DeprecationWarning,
            stacklevel=2,
        )

        def look_up(name: str) -> Any:
            for home in homes:
                found = importlib.import_module(home)
                if hasattr(found, name):
                    return getattr(found, name)
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        module.__dict__["__getattr__"] = look_up


class _OldHomes(MetaPathFinder):
    """Finds modules by their old names, after everything else has looked."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, _OldHome()) if fullname in NEW_HOMES else None


def install() -> None:
    """Have imports from old homes answered."""
    if not any(isinstance(finder, _OldHomes) for finder in sys.meta_path):
        sys.meta_path.append(_OldHomes())
