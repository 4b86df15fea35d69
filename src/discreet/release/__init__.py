"""From a protected table to what is handed out: whole numbers, records, files."""
