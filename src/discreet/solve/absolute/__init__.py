"""Fits by least absolute deviation."""
