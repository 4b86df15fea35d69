"""Releasable inner cell frequencies by post-processing protected tables (Langsrud 2019b)."""
