"""Fits by least squares over tables without negative cells."""
