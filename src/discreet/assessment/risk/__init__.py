"""What a reader can learn about people: cells that survive, guesses that come true, proofs."""

from __future__ import annotations
