"""Records that stay in their engine: sources and roles, recodes, record keys, demo data."""
