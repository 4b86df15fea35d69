"""How much of the table survives: distances, zeros, sums, associations, ranks, totals."""

from __future__ import annotations
