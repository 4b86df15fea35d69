"""File formats of tables: one writer per file, each on a `Cube`."""
