"""One method, one file: from a confidential table to a public release."""
