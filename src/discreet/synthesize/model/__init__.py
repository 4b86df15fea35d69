"""From formulas and records to the matrices of a regression."""
