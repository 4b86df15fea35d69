"""A site: its file, its settings, and the data sets it serves."""
