"""Suppressed cells as decimal numbers (Langsrud 2019a, section 7)."""
