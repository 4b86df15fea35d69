"""What a data set lets visitors ask: one rule, one function."""
