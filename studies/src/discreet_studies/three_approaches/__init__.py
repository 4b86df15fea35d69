"""Three post-tabular approaches for survey weighted tables (Shlomo, Krenzke & Li 2019)."""
