"""Suppression: which cells are sensitive, and which others must be hidden to protect them.

`Suppress` is the method; its `Pattern` says which cells are hidden and why. `Decimals` take the
place of hidden cells. `Listed`, `Exempt` and `with_apriori` follow lists of cells, `consistent`
follows an earlier release, and `write_transmission` sends a pattern to a partner.

>>> from discreet.suppress import Suppress
>>> Suppress("threshold(3)").secondary
'interval'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.suppress.apriori import (
        Exempt,
        Listed,
        consistent,
        with_apriori,
        write_transmission,
    )
    from discreet.suppress.decimals import Decimals
    from discreet.suppress.pattern import Pattern
    from discreet.suppress.suppress import Suppress

__all__ = [
    "Decimals",
    "Exempt",
    "Listed",
    "Pattern",
    "Suppress",
    "consistent",
    "with_apriori",
    "write_transmission",
]
_HOME = {"Decimals": "decimals", "Pattern": "pattern", "Suppress": "suppress"}


def __getattr__(name: str) -> Any:
    # Loaded on first use: releases need the sentences of suppression alone, and elimination loads
    # Numba, which takes longer than all the rest.
    if name in __all__:
        return getattr(import_module(f"{__name__}.{_HOME.get(name, 'apriori')}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
