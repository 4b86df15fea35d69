"""The office's database: SQLite in a file, or PostgreSQL by its address."""
