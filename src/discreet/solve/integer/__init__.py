"""Whole numbers: minimise a loss of `X'y - t` over a lattice of inner cells."""
