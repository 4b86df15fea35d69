"""A page that a disclosure review board can read. Confidential."""

from __future__ import annotations
