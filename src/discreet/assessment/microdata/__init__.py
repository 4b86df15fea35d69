"""Risk and utility of synthetic records, measured against the records they were made from."""
