"""What the paper prints, digit by digit; a dash where it prints nothing."""

from __future__ import annotations

TABLE_2 = """
row1 1.250 6 3.750 11
row2 2.750 4 5.250 12
row3 5 8 27 40
Total 9 18 36 63
"""
"""Suppressed cells replaced by fitted values."""

TABLE_2_RESIDUALS = """
row1 0.633 - 4.367 -
row2 3.367 - 4.633 -
"""
"""The same with scaled residuals."""

TABLE_3 = """
row1 -0.333 2.667 8.667 11
row2 0.000 3.000 9.000 12
row3 9.333 12.333 18.333 40
Total 9 18 36 63
"""
"""Linear modelling."""

TABLE_3_NON_NEGATIVE = """
row1 0.000 2.500 8.500 -
row2 0.000 3.000 9.000 -
row3 9.000 12.500 18.500 -
"""
"""Non-negative estimates."""

TABLE_4 = """
row1 1.571 3.143 6.286 11
row2 1.714 3.429 6.857 12
row3 5.714 11.429 22.857 40
Total 9 18 36 63
"""
"""Log-linear modelling."""

TABLE_5 = """
row1 0.000 1.300 7.967 9.267
row2 0.000 2.300 8.967 11.267
row3 9.933 13.333 20.000 43.267
Total 9.933 16.933 36.933 63.800
"""
"""Non-negative estimates from perturbed totals."""

TABLE_5_LOG_LINEAR = """
row1 1.443 2.459 5.364 -
row2 1.754 2.990 6.522 -
row3 6.736 11.484 25.047 -
"""
"""Re-estimated by log-linear modelling."""

TABLE_6 = """
row1 0.000 6.856 10.056 16.913
row2 0.000 4.249 7.449 11.698
row3 0.415 17.005 20.205 37.625
Total 0.415 28.110 37.711 66.236
"""
"""Non-negative estimates from totals with Laplace noise."""

TABLE_6_LOG_LINEAR = """
row1 0.106 7.178 9.629 -
row2 0.073 4.965 6.660 -
row3 0.236 15.968 21.422 -
"""
"""Re-estimated by log-linear modelling."""

TABLE_7 = """
row1 0.000 3.200 7.800 11
row2 0.000 3.700 8.300 12
row3 4.168 15.616 20.216 40
Total 4.168 22.516 36.316 63
"""
"""Non-negative estimates from noisy column totals and exact row totals."""

TABLE_7_LOG_LINEAR = """
row1 0.728 3.931 6.341 -
row2 0.794 4.289 6.917 -
row3 2.646 14.296 23.058 -
"""
"""Re-estimated by log-linear modelling."""

UTILITY = {
    0.5: {
        "inner cells": "-0.008 0.898 0.731 0.733 0.981 0.932",
        "3-way (no fitting)": "- - 0.744 - - 0.817",
        "3-way (zero replace)": "- - 0.832 - - 0.887",
        "3-way": "0.659 0.928 0.870 0.690 0.978 0.914",
        "3-way (2-way exact)": "0.691 0.999 0.920 0.716 1.000 0.926",
        "nothing (2-way exact)": "0.746 1.000 0.926 0.796 1.000 0.934",
        "2-way": "0.742 0.974 0.916 0.785 0.977 0.923",
        "2-way (no fitting)": "- 0.955 - - 0.962 -",
        "2-way (zero replace)": "- 0.971 - - 0.975 -",
    },
    1.5: {
        "inner cells": "0.428 0.947 0.857 0.889 0.994 0.978",
        "3-way (no fitting)": "- - 0.863 - - 0.909",
        "3-way (zero replace)": "- - 0.908 - - 0.942",
        "3-way": "0.755 0.963 0.927 0.800 0.990 0.952",
        "3-way (2-way exact)": "0.745 0.999 0.952 0.793 1.000 0.959",
        "nothing (2-way exact)": "0.746 1.000 0.926 0.796 1.000 0.934",
        "2-way": "0.745 0.986 0.924 0.794 0.988 0.931",
        "2-way (no fitting)": "- 0.977 - - 0.982 -",
        "2-way (zero replace)": "- 0.985 - - 0.988 -",
    },
}
"""Table 9 and Table 10: Hellinger utility by ε; inner, 2-way, 3-way with zeros, then without."""

DEVIATION = {
    0.5: {
        "inner cells": "2.00 82.21 23.13 1.98 23.11 7.86",
        "3-way (no fitting)": "- - 19.92 - - 19.98",
        "3-way (zero replace)": "- - 13.36 - - 15.65",
        "3-way": "0.35 55.68 9.95 3.64 26.06 11.84",
        "3-way (2-way exact)": "0.32 0.02 6.38 3.28 0.02 9.99",
        "nothing (2-way exact)": "0.29 0.00 9.15 2.72 0.00 13.65",
        "2-way": "0.29 16.39 10.04 2.85 17.13 15.44",
        "2-way (no fitting)": "- 19.81 - - 19.83 -",
        "2-way (zero replace)": "- 17.45 - - 18.37 -",
    },
    1.5: {
        "inner cells": "0.67 27.40 7.71 0.66 7.70 2.62",
        "3-way (no fitting)": "- - 6.64 - - 6.66",
        "3-way (zero replace)": "- - 4.80 - - 5.75",
        "3-way": "0.22 17.43 3.85 2.09 8.85 4.82",
        "3-way (2-way exact)": "0.24 0.01 3.03 2.31 0.01 4.71",
        "nothing (2-way exact)": "0.29 0.00 9.15 2.72 0.00 13.65",
        "2-way": "0.29 5.79 9.36 2.75 6.04 14.07",
        "2-way (no fitting)": "- 6.60 - - 6.61 -",
        "2-way (zero replace)": "- 6.03 - - 6.32 -",
    },
}
"""Table 11 and Table 12: mean absolute deviation by ε, in the same columns."""

EXAMPLES = {
    "inner": [
        ("11", "-", "6.10"),
        ("2", "-", "5.58"),
        ("3", "-", "18.54"),
        ("0", "-", "0.00"),
        ("0", "-", "0.00"),
    ],
    "2-way": [
        ("92", "-", "92.01"),
        ("1158", "-", "1157.97"),
        ("320", "-", "319.97"),
        ("0", "-", "0.00"),
        ("0", "-", "0.05"),
    ],
    "3-way": [
        ("2", "32.10", "0.00"),
        ("356", "325.62", "347.09"),
        ("30", "20.37", "32.92"),
        ("0", "-32.96", "0.00"),
        ("0", "-7.29", "0.00"),
    ],
}
"""Table 8: original, perturbed and fitted counts of single cells, by part."""

ZEROS = ("451263", "-", "443880")
"""Section 4: inner zeros in the example of Table 8, and how many of them stay zero."""

BIAS = {
    "3-way": ("2.97", "0.84", "0.68", "0.13"),
    "3-way (2-way exact)": ("0.00", "0.00", "0.00", "0.00"),
    "2-way": ("0.06", "0.01", "0.04", "0.01"),
}
"""Table 13, in percent: with zeros at ε = 0.5 and 1.5, then without zeros."""

THRESHOLDS = ("1e-7", "1e-10", "1e-14")
WEIGHTS = {
    "0": "2.25 2.14 2.09 8.84 8.84 8.85 4.81 4.81 4.82",
    "1": "2.26 2.13 2.06 3.72 3.03 3.02 4.58 4.46 4.47",
    "3": "2.40 2.22 2.05 3.52 1.48 1.45 5.06 4.44 4.39",
    "10": "2.74 2.33 2.05 3.62 0.67 0.55 6.26 4.77 4.35",
    "100": "3.45 2.76 2.06 4.20 0.53 0.07 11.79 8.42 4.30",
    "1000": "3.51 2.80 2.31 4.50 0.37 0.01 15.28 12.60 4.71",
    "10000": "3.58 2.93 2.86 4.59 0.38 0.00 16.31 14.68 9.21",
    "∞": "3.50 2.87 2.72 1.89 0.20 0.00 16.29 14.45 13.65",
}
"""Table 14: inner, 2-way and 3-way, each at the thresholds of the paper's solver."""

SIZES = {
    "inner cells": "497952",
    "inner cells, not empty": "46689",
    "records": "478173",
    "2-way cells": "2961",
    "2-way cells, not empty": "2727",
    "3-way cells": "39262",
    "3-way cells, not empty": "24224",
    "scale of noise, inner cells, ε = 0.5": "2",
    "scale of noise, 3-way, ε = 0.5": "20",
    "scale of noise, 2-way, ε = 0.5": "20",
}
"""Section 4."""
