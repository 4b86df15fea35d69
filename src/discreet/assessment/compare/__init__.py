"""Fair comparison: methods × fitters × measures, replicated, with uncertainty.

Every method is brought to the same thing, expected inner frequencies, and judged by the same
measures. Everything here is confidential: scores are functions of true counts, and the mean of
many draws of a table is nearly the table.
"""
