"""What the paper prints, digit by digit."""

from __future__ import annotations

INNER_COLUMNS = (
    "young male",
    "young female",
    "middle male",
    "middle female",
    "old male",
    "old female",
)
COLUMNS = ("young", "middle", "old", "male", "female", "Total")

TABLE_1 = """
A 0 0 8 4 4 1
B 0 1 3 5 1 0
C 2 3 9 6 2 7
"""
"""Original inner frequencies."""

TABLE_2 = """
A 0 12 5 12 5 17
B 1 8 1 4 6 10
C 5 15 9 13 16 29
Total 6 35 15 29 27 56
"""
"""Original aggregated frequencies."""

TABLE_3 = """
A 0 16 5 12 4 18
B 0 10 3 3 4 10
C 5 11 7 10 16 29
Total 5 37 15 31 29 57
"""
"""One draw of the cell key method."""

SUMS = {"published": "18", "from age": "21", "from sex": "16"}
"""Section 2: the total of party A in Table 3."""

TABLE_4 = """
A 0 12 5 12 5 17
B 3 8 0 3 8 11
C 5 15 9 13 16 29
Total 8 35 14 28 29 57
"""
"""Small count rounded frequencies."""

TABLE_5 = """
A 0 0 8 4 4 1
B 0 3 3 5 0 0
C 2 3 9 6 2 7
"""
"""The rounded inner frequencies below Table 4."""

TABLE_6 = """
A 0.0000 14.9688 3.9687 13.5937 5.3438 18.9375
B 0.0000 8.8437 1.8438 4.9688 5.7187 10.6875
C 5.8182 12.9119 8.9119 10.9460 16.6960 27.6420
Total 5.8182 36.7244 14.7244 29.5085 27.7585 57.2670
"""
"""Table 3 with additivity restored."""

TABLE_7 = """
A 0.0000 0.0000 10.7449 4.2239 2.8489 1.1199
B 0.0000 0.0000 4.1116 4.7322 0.8572 0.9866
C 2.3040 3.5142 5.1130 7.7989 3.5291 5.3829
"""
"""Expected inner frequencies from Table 6."""

TABLE_8 = """
A 0.0000 0.0000 8.4706 3.5294 3.5294 1.4706
B 0.8182 2.1818 2.1818 5.8182 0.0000 0.0000
C 2.2414 2.7586 6.7241 8.2759 4.0345 4.9655
"""
"""Expected inner frequencies from Table 4."""

TABLE_9 = """
Original 1.0000 0.7500 0.4500 0.4000 0.5714 0.8750
CKM 1.0000 1.0000 0.5381* 0.4655 0.4878* 0.7187
SCR 0.7326 0.5584 0.4875* 0.4696 0.5334* 0.7715
"""
"""Probabilities of disclosing party; a star marks a wrong guess."""

TABLE_10 = """
Original 1.0000 1.0000 0.4737 0.4286 0.6667 1.0000
CKM 1.0000 1.0000 0.5664* 0.4950 0.5660* 0.8295
SCR 1.0000 0.7001 0.5172* 0.4978 0.6146* 0.9134
"""
"""The same, given that one knows oneself."""

UTILITY = {"SCR (Table 4)": "0.9456", "CKM (Table 3)": "0.9326", "CKM (Table 6)": "0.9481"}
"""Section 5: Hellinger utility."""

INTERVALS = {"as published": ("0.8871", "0.9392"), "additivity restored": ("0.8920", "0.9659")}
"""Section 5: 95 % of the utilities of redrawn keys."""

ROUNDED_UTILITIES = ("0.9457", "0.9460")
"""Section 5: the two equally probable utilities of small count rounding."""

EXACT = {
    ("Table 9", "SCR"): ("1", "0", "0", "0.0000"),
    ("Table 9", "CKM"): ("1", "2", "1", "0.5556"),
    ("Table 10", "SCR"): ("3", "1", "1", "0.7143"),
    ("Table 10", "CKM"): ("3", "2", "2", "0.9091"),
}
"""Section 6: a, b, c and the risk."""

SHARES = {
    "Table 9": {"0.0000": "49", "0.5556": "48"},
    "Table 10": {"0.0000": "36", "0.7143": "8", "0.9091": "51", "1.0000": "4"},
}
"""Section 6: percent of redrawn keys with each risk."""

ROUNDED_RISKS = {"Table 9": ("0.0000", "0.5556"), "Table 10": ("0.7143", "0.9091")}
"""Section 6: the two equally probable risks of small count rounding."""

NOISE = {"largest perturbation": "5", "variance": "3", "smallest positive count": "3"}
"""Section 2: the perturbation table."""
