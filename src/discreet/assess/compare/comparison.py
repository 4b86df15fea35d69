"""Methods side by side on the same table, by the same measures, with uncertainty."""

from __future__ import annotations
