"""Linear programs and exact elimination on sums of inner cells."""
