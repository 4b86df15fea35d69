"""What the paper prints, digit by digit; a star marks a suppressed cell."""

from __future__ import annotations

TABLE_1 = """
row1 3* 11* 32 30 76
row2 1* 9* 13* 8 31
row3 12 22 2* 2* 38
row4 18* 19 16 3* 56
Total 34 61 63 43 201
"""
"""The counts, with the cells to be suppressed."""

PRIMARY = (("row1", "col1"), ("row2", "col1"), ("row3", "col3"), ("row3", "col4"), ("row4", "col4"))
"""The suppressed cells with counts below four."""

TABLE_2 = """
row2,col1 1 11.1562 4.5217 0.8696 4.0870
row3,col3 2 9.3549 6.6957 1.8261 2.7826
row3,col4 2 -5.3549 -2.6957 2.1739 1.2174
row1,col1 3 0.1986 4.1739 2.9565 0.6957
row4,col4 3 10.3549 7.6957 2.8261 3.7826
row2,col2 9 6.1986 10.1739 8.9565 6.6957
row1,col2 11 13.8014 9.8261 11.0435 13.3043
row2,col3 13 5.6451 8.3043 13.1739 12.2174
row4,col1 18 10.6451 13.3043 18.1739 17.2174
"""
"""The suppressed cells: true, with a residual, fitted, and fitted modulo 4 and 10."""

TABLE_3 = """
row1 0.4449 13.5551 32 30 76
row2 4.2102 6.4449 12.3449 8 31
row3 12 22 2.6551 1.3449 38
row4 17.3449 19 16 3.6551 56
Total 34 61 63 43 201
"""
"""Modulo 10 with a tenth of the residual."""
