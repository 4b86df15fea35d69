"""Continuous fits: inner cells recovered from published ones, each with a certificate."""
