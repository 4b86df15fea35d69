"""Benchmarks: one file, one case; time, peak memory and quality side by side."""
