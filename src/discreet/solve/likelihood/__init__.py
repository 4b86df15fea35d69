"""Fits by likelihood: log-linear tables and Poisson counts."""
