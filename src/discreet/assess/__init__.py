"""Measure the difference between a table and its release: risk and utility.

The package can be called: `discreet.assess(table, release)` takes every measure that applies, of
tables or of records. Whatever it says is confidential until somebody decides otherwise: it is a
function of true counts or records.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from discreet.assess.assess import Assessment, assess
from discreet.assess.measure import Measure, NotApplicableError, Score

if TYPE_CHECKING:
    from discreet.facade.table import Table
    from discreet.tables.protected import Protected

__all__ = ["Assessment", "Measure", "NotApplicableError", "Score", "assess"]


class _CallablePackage(ModuleType):
    """A package that stands for its main function, so that both share the public name."""

    def __call__(
        self,
        table: Table | Any,
        release: Protected | Any,
        measures: Sequence[str | Measure] | None = None,
        **options: Any,
    ) -> Assessment:
        """Every measure that applies; see `discreet.assess.assess`."""
        return assess(table, release, measures, **options)


def __getattr__(name: str) -> Any:
    if name != "plots":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module("discreet.assess.plots")


sys.modules[__name__].__class__ = _CallablePackage
