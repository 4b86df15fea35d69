"""Suppression: which cells are sensitive, and which others must be hidden to protect them."""

from __future__ import annotations
