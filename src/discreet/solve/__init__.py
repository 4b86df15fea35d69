"""Minimise a loss of X'y - t over a domain for y; nothing here knows of disclosure control."""
