"""Regression-based tools for microdata (Langsrud 2019a), sections 2 to 6."""
