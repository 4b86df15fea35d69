"""Fits by least squares over all tables."""
