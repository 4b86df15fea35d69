"""Giessing & Höhne (2011), run again."""
