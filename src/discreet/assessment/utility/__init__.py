"""How much of the table survives: distances, zeros, sums, associations, ranks, totals."""
