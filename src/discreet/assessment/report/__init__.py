"""A page that a disclosure review board can read. Confidential."""
