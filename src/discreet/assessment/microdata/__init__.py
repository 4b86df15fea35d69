"""Risk and utility of synthetic records, measured against the records they were made from."""

from __future__ import annotations
