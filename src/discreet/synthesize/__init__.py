"""Synthetic and hybrid microdata that keep regression fits and covariances exactly."""
