"""Eliminating small cells from census counts tables (Giessing & Höhne 2011)."""
