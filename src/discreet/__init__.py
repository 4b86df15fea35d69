"""Publish tables without betraying the people in them.

A table is ``z = X'y``. Every module builds ``X``, changes ``z``, recovers ``y``, or measures the
difference. Names load on first use, so that importing the package stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Axis": "discreet.design.axis",
    "Design": "discreet.design.base",
    "Hierarchy": "discreet.design.hierarchy",
    "KeyConvention": "discreet.design.keys",
    "Release": "discreet.design.release",
    "Table": "discreet.design.table",
    "margins": "discreet.design.formula",
    "read": "discreet.design.storage",
    "read_release": "discreet.design.storage",
    "read_table": "discreet.design.storage",
    "DiscreetError": "discreet.errors",
}

if TYPE_CHECKING:
    from discreet.design.axis import Axis
    from discreet.design.base import Design
    from discreet.design.formula import margins
    from discreet.design.hierarchy import Hierarchy
    from discreet.design.keys import KeyConvention
    from discreet.design.release import Release
    from discreet.design.storage import read, read_release, read_table
    from discreet.design.table import Table
    from discreet.errors import DiscreetError

__all__ = [
    "Axis",
    "Design",
    "DiscreetError",
    "Hierarchy",
    "KeyConvention",
    "Release",
    "Table",
    "__version__",
    "margins",
    "read",
    "read_release",
    "read_table",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
