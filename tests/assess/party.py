"""The worked example of Langsrud & Lupp (2021): printed tables, copied."""

import numpy as np

import discreet as dc
from discreet.tables import Statement

DESIGN = dc.Design.product(
    {"party": list("ABC"), "age": ["young", "middle", "old"], "sex": ["male", "female"]},
    "party*age + party*sex + age + sex",
)
TABLE_1 = [[[0, 0], [8, 4], [4, 1]], [[0, 1], [3, 5], [1, 0]], [[2, 3], [9, 6], [2, 7]]]
TABLE_7 = [
    [[0, 0], [10.7449, 4.2239], [2.8489, 1.1199]],
    [[0, 0], [4.1116, 4.7322], [0.8572, 0.9866]],
    [[2.3040, 3.5142], [5.1130, 7.7989], [3.5291, 5.3829]],
]
TABLE_8 = [
    [[0, 0], [8.4706, 3.5294], [3.5294, 1.4706]],
    [[0.8182, 2.1818], [2.1818, 5.8182], [0, 0]],
    [[2.2414, 2.7586], [6.7241, 8.2759], [4.0345, 4.9655]],
]
# Aggregated tables: rows A, B, C, Total; columns young, middle, old, male, female, Total.
TABLE_3 = [
    [0, 16, 5, 12, 4, 18],
    [0, 10, 3, 3, 4, 10],
    [5, 11, 7, 10, 16, 29],
    [5, 37, 15, 31, 29, 57],
]
TABLE_4 = [
    [0, 12, 5, 12, 5, 17],
    [3, 8, 0, 3, 8, 11],
    [5, 15, 9, 13, 16, 29],
    [8, 35, 14, 28, 29, 57],
]
TABLE_6 = [
    [0.0000, 14.9688, 3.9687, 13.5937, 5.3438, 18.9375],
    [0.0000, 8.8437, 1.8438, 4.9688, 5.7187, 10.6875],
    [5.8182, 12.9119, 8.9119, 10.9460, 16.6960, 27.6420],
    [5.8182, 36.7244, 14.7244, 29.5085, 27.7585, 57.2670],
]  # fmt: skip
# Columns young male, young female, middle male, …; a star marks a wrong guess.
TABLE_9 = {
    "original": "1.0000 0.7500 0.4500 0.4000 0.5714 0.8750",
    "ckm": "1.0000 1.0000 0.5381* 0.4655 0.4878* 0.7187",
    "scr": "0.7326 0.5584 0.4875* 0.4696 0.5334* 0.7715",
}
TABLE_10 = {
    "original": "1.0000 1.0000 0.4737 0.4286 0.6667 1.0000",
    "ckm": "1.0000 1.0000 0.5664* 0.4950 0.5660* 0.8295",
    "scr": "1.0000 0.7001 0.5172* 0.4978 0.6146* 0.9134",
}
ROWS = ("A", "B", "C", None)
COLUMNS = [("age", "young"), ("age", "middle"), ("age", "old"), ("sex", "male"), ("sex", "female")]


def table():
    return dc.Table.from_inner(DESIGN, np.array(TABLE_1).ravel())


def aggregated(rows):
    """Published values from a printed table."""
    z = np.full(DESIGN.n_published, np.nan)
    for party, row in zip(ROWS, rows, strict=True):
        first = {} if party is None else {"party": party}
        for column, value in zip([*COLUMNS, None], row, strict=True):
            cell = first | ({} if column is None else {column[0]: column[1]})
            z[DESIGN.position(cell)] = value
    assert not np.isnan(z).any()
    return z


def release(z, y=None):
    y = None if y is None else np.array(y, dtype=float).ravel()
    return dc.Release(DESIGN, z, Statement(), y=y)


def fitted(y):
    return release(DESIGN.aggregate(np.array(y, dtype=float).ravel()), y)


RELEASES = {"original": fitted(TABLE_1), "ckm": fitted(TABLE_7), "scr": fitted(TABLE_8)}
