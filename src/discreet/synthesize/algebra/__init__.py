"""Matrices with many rows and few columns: projections, scores, loadings and their mixtures."""
