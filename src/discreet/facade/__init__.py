"""What users hold: `Microdata`, `Table`, `Release` and `Trial`, with their verbs.

Each is the plain class that lower floors pass to each other, and methods that call these floors.
"""

from __future__ import annotations

from discreet.lazy import lazy_names

__getattr__ = lazy_names(__name__, {"table": "read_release read_table"})
