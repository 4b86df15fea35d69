"""Plain data that floors pass to each other: cell values, keys, true and protected tables.

What can be asked of them is computed from themselves alone; what they can be made into is said by
the floors above, and offered as methods by `discreet.facade`.
"""

from __future__ import annotations

from discreet.lazy import lazy_names

__getattr__ = lazy_names(
    __name__,
    {
        "keys": "CONVENTIONS KeyConvention",
        "protected": "CellStatus Claims Protected",
        "sketches": "SketchedTable",
        "statement": "PrivacyStatement Sentence Statement Step",
        "truth": "Bounds CellValues DataSet",
    },
)
