"""Margins of tables that are never stored: one pass that computes each cell and keeps sums only."""
