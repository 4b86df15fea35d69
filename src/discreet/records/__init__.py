"""Records that stay in their engine: sources, roles, keys, codes, and engines that count them."""

from __future__ import annotations

from discreet.lazy import lazy_names

__getattr__ = lazy_names(
    __name__,
    {
        "findings": "look_through",
        "query_engine": "QueryEngine",
        "recode": "cut",
    },
)
