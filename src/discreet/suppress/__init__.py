"""Suppression: which cells are sensitive, and which others must be hidden to protect them.

`Suppress` is the method; its `Pattern` says which cells are hidden and why. `Decimals` take the
place of hidden cells. `Listed`, `Exempt` and `with_apriori` follow lists of cells, `consistent`
follows an earlier release, and `write_transmission` sends a pattern to a partner.

>>> from discreet.suppress import Suppress
>>> Suppress("threshold(3)").secondary
'interval'
"""

from __future__ import annotations

from discreet.lazy import lazy_names

# Loaded on first use: releases need the sentences of suppression alone, and elimination loads
# Numba, which takes longer than all the rest.
__getattr__ = lazy_names(
    __name__,
    {
        "apriori": "consistent with_apriori write_transmission",
        "decimals": "Decimals",
        "exceptions": "Exempt Listed",
        "pattern": "PUBLISHED Pattern",
        "report": "describe_pattern",
        "suppress": "Suppress",
    },
)
